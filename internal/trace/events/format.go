package events

import (
	"errors"
	"io"
)

// Format is a form in which events are written.
type Format struct {
	Name        string
	IsDirectory bool // the output is a new directory, and not a file or a stream
	// New returns the sink, for a path or for what writes to it.
	New func(path string, w io.Writer) Sink
}

// Formats are all formats. The first is used if none is asked for.
var Formats = []Format{
	{"text", false, func(_ string, w io.Writer) Sink { return &TextSink{W: w} }},
	{"json", false, func(_ string, w io.Writer) Sink { return &JSONSink{W: w} }},
	{"ctf", true, func(path string, _ io.Writer) Sink { return NewCTFSink(path) }},
	{"perfetto", false, func(_ string, w io.Writer) Sink { return &PerfettoSink{W: w} }},
}

// Summary is what is written at the end, in the place of events.
type Summary struct {
	Name  string // of its flag
	Value string // of its flag
	// By has keys, of which each has a count or a histogram of its own, and Pair those by which hits belong together; "" for none.
	By, Pair string
}

// ErrFormat says that the value of a summary's flag makes no sense.
var ErrFormat = errors.New("invalid format")

// NewSink returns the sink of a summary. An error that is ErrFormat is of the value of a flag.
func (s *Summary) NewSink(w io.Writer) (sink Sink, err error) {
	var by, pair *Keys
	if s.By != "" {
		by, err = ParseKeys(s.By)
	}
	if s.Pair != "" && err == nil {
		pair, err = ParseKeys(s.Pair)
	}
	if err != nil {
		return nil, formatError{err}
	}
	switch s.Name {
	case "hist":
		h := &HistogramSink{W: w, Keys: by}
		h.Argument, err = parseReference(s.Value)
		sink = h
	case "lhist":
		h := &HistogramSink{W: w, Keys: by}
		h.Argument, h.Empty, err = parseLinear(s.Value)
		sink = h
	case "between":
		b := &BetweenSink{W: w, Keys: by, Pairs: pair}
		b.From, b.To, err = parseBetween(s.Value)
		sink = b
	default:
		sink = &CountSink{Keys: by, W: w}
	}
	if err != nil {
		return nil, formatError{err}
	}
	return sink, nil
}

// formatError is an error of a flag's value.
type formatError struct{ error }

// Is implements errors.Is.
func (formatError) Is(target error) bool { return target == ErrFormat }
