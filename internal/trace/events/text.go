package events

import (
	"bufio"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"sdtconvert/internal/trace/probe"
)

// TextSink writes a line for each event.
type TextSink struct {
	W      io.Writer
	Colour bool

	line   []byte
	second int64  // of the last event
	clock  []byte // shows it
	err    error
}

// The colours of a terminal.
const (
	nameColour  = "\x1b[36m"
	textColour  = "\x1b[32m"
	plainColour = "\x1b[0m"
)

// Event implements Sink.
func (s *TextSink) Event(e *Event, c *Clock) bool {
	line := s.appendTime(s.line[:0], c.wall(e.Time))
	line = append(line, ' ')
	if e.Thread == 0 {
		line = append(line, '?') // the C library is not known
	} else {
		line = strconv.AppendInt(line, int64(e.Thread), 10)
	}
	line = append(line, ' ')
	line = s.coloured(line, nameColour, e.Text)
	line = append(line, '(')
	for i := range e.Arguments {
		if i > 0 {
			line = append(line, ", "...)
		}
		if name := e.Arguments[i].Name; name != "" {
			line = append(append(line, name...), '=')
		}
		line = s.argument(line, e, i)
	}
	s.line = append(line, ")\n"...)
	if _, err := s.W.Write(s.line); err != nil {
		s.err = err
	}
	return s.err == nil
}

// appendTime appends the time of day in microseconds. What all events of a second have in common is made once.
func (s *TextSink) appendTime(line []byte, t time.Time) []byte {
	if second := t.Unix(); second != s.second || s.clock == nil {
		s.second, s.clock = second, t.AppendFormat(s.clock[:0], "15:04:05.")
	}
	microseconds := t.Nanosecond() / 1000
	line = append(line, s.clock...)
	for unit := 100000; unit > 0; unit /= 10 {
		line = append(line, byte('0'+microseconds/unit%10))
	}
	return line
}

func (s *TextSink) coloured(line []byte, colour, text string) []byte {
	if !s.Colour {
		return append(line, text...)
	}
	return append(append(append(line, colour...), text...), plainColour...)
}

// Flush implements Flusher.
func (s *TextSink) Flush() error {
	s.err = flush(s.W, s.err)
	return s.err
}

// flush writes what a writer has buffered, unless there was an error.
func flush(w io.Writer, err error) error {
	if w, ok := w.(*bufio.Writer); ok && err == nil {
		return w.Flush()
	}
	return err
}

// Close implements Sink.
func (s *TextSink) Close() error { return s.err }

func (s *TextSink) argument(line []byte, e *Event, i int) []byte {
	a, value, text := &e.Arguments[i], e.Values[i], &e.Texts[i]
	if a.Format == probe.Text && !text.Unreadable {
		return s.coloured(line, textColour, quote(text))
	}
	return appendValue(line, a, value, text)
}

// appendValue appends an argument, but for a text that could be read.
func appendValue(line []byte, a *probe.Argument, value uint64, text *Copied) []byte {
	appendHexadecimal := func() []byte { return strconv.AppendUint(append(line, "0x"...), value, 16) }
	switch {
	case a.Format == probe.Unreadable:
		return append(line, '?')
	case text.Lost:
		return append(line, "(not readable)"...)
	case a.Format == probe.Text && value == 0:
		return append(line, "(null)"...)
	case a.Format == probe.Text:
		return append(appendHexadecimal(), " (not readable)"...)
	case a.Format == probe.Pointer:
		return appendHexadecimal()
	case a.Enumerators[int64(value)] != "":
		return append(line, a.Enumerators[int64(value)]...)
	case a.Format == probe.Boolean:
		return strconv.AppendBool(line, value != 0)
	case a.Signed:
		return strconv.AppendInt(line, int64(value), 10)
	}
	return strconv.AppendUint(line, value, 10)
}

// formatValue shows what appendValue appends.
func formatValue(a *probe.Argument, value uint64, text *Copied) string {
	return string(appendValue(nil, a, value, text))
}

// quote writes a text as a string of C. A character that the copy has cut in two is left out.
func quote(t *Copied) string {
	text := t.Text
	if t.Cut {
		for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
			if r, size := utf8.DecodeLastRuneInString(text[:len(text)-n+1]); r != utf8.RuneError || size != 1 {
				text = text[:len(text)-n+1]
				break
			}
		}
		return strconv.Quote(text) + "..."
	}
	return strconv.Quote(text)
}
