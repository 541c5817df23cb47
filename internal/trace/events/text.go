package events

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"sdtconvert/internal/trace/probe"
)

// TextSink writes a line for each event.
type TextSink struct {
	W       io.Writer
	Colour  bool
	Several bool // there are several processes, so lines have both IDs

	process int // of the first event

	line []byte
	err  error
}

// The colours of a terminal.
const (
	nameColour  = "\x1b[36m"
	textColour  = "\x1b[32m"
	plainColour = "\x1b[0m"
)

// Event implements Sink.
func (s *TextSink) Event(e *Event, c *Clock) bool {
	line := c.wall(e.Time).AppendFormat(s.line[:0], "15:04:05.000000")
	line = append(line, ' ')
	if s.process == 0 {
		s.process = e.Process.ID
	}
	if s.Several = s.Several || s.process != e.Process.ID; s.Several {
		line = append(strconv.AppendInt(line, int64(e.Process.ID), 10), '/')
	}
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
	return append(line, formatValue(a, value, text)...)
}

// formatValue shows an argument, but for a text that could be read.
func formatValue(a *probe.Argument, value uint64, text *Copied) string {
	hexadecimal := "0x" + strconv.FormatUint(value, 16)
	switch {
	case a.Format == probe.Unreadable:
		return "?"
	case text.Lost:
		return "(not readable)"
	case a.Format == probe.Text && value == 0:
		return "(null)"
	case a.Format == probe.Text:
		return hexadecimal + " (not readable)"
	case a.Format == probe.TypeName && text.Text != "":
		return text.Text
	case a.Format == probe.Pointer, a.Format == probe.TypeName:
		return hexadecimal
	case a.Format == probe.Float:
		return strconv.FormatFloat(math.Float64frombits(value), 'g', -1, 8*a.Size)
	case a.Enumerators[int64(value)] != "":
		return a.Enumerators[int64(value)]
	case a.Format == probe.Boolean:
		return strconv.FormatBool(value != 0)
	case a.Signed:
		return strconv.FormatInt(int64(value), 10)
	}
	return strconv.FormatUint(value, 10)
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
