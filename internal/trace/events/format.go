package events

import (
	"errors"
	"io"
)

// Format is a form in which events are written, besides lines.
type Format struct {
	Name string // of its flag
	// New returns its sink: value is that of the flag, and w takes what has no file of its own. An error that is ErrFormat is of the value.
	New func(value string, w io.Writer) (Sink, error)
}

// ErrFormat says that the value of a format's flag makes no sense.
var ErrFormat = errors.New("invalid format")

// Formats are all formats but lines.
var Formats = []Format{
	{"count", func(string, io.Writer) (Sink, error) { return &CountSink{}, nil }},
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
	{"output", func(value string, _ io.Writer) (Sink, error) { return NewCTFSink(value) }},
	{"perfetto", func(value string, _ io.Writer) (Sink, error) { return NewPerfettoSink(value) }},
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
