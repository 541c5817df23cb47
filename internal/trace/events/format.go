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
	Name string // of its flag
	// New returns its sink: value is that of the flag. An error that is ErrFormat is of the value.
	New func(value string, w io.Writer) (Sink, error)
}

// ErrFormat says that the value of a summary's flag makes no sense.
var ErrFormat = errors.New("invalid format")

// Summaries are all summaries.
var Summaries = []Summary{
	{"count", func(string, io.Writer) (Sink, error) { return &CountSink{}, nil }},
	{"by", func(value string, w io.Writer) (Sink, error) {
		keys, err := ParseKeys(value)
		return &CountSink{Keys: keys, W: w}, invalid(err)
	}},
	{"hist", func(value string, w io.Writer) (Sink, error) {
		n, err := parseReference(value)
		return &HistogramSink{W: w, Argument: n}, invalid(err)
	}},
	{"lhist", func(value string, w io.Writer) (Sink, error) {
		n, empty, err := parseLinear(value)
		return &HistogramSink{W: w, Argument: n, Empty: empty}, invalid(err)
	}},
	{"between", func(value string, w io.Writer) (Sink, error) {
		from, to, err := parseBetween(value)
		return &BetweenSink{W: w, From: from, To: to}, invalid(err)
	}},
}

// formatError is an error of a flag's value.
type formatError struct{ error }

// Is implements errors.Is.
func (formatError) Is(target error) bool { return target == ErrFormat }

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return formatError{err}
}
