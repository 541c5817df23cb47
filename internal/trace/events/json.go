package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// JSONSink writes a line of JSON for each event.
type JSONSink struct {
	W    io.Writer
	line []byte
	err  error
}

// Event implements Sink.
func (s *JSONSink) Event(e *Event, c *Clock) bool {
	line := append(s.line[:0], `{"time":"`...)
	line = c.wall(e.Time).AppendFormat(line, time.RFC3339Nano)
	line = append(line, `","pid":`...)
	line = strconv.AppendInt(line, int64(e.Process.ID), 10)
	line = append(line, `,"tid":`...)
	if e.Thread == 0 {
		line = append(line, "null"...)
	} else {
		line = strconv.AppendInt(line, int64(e.Thread), 10)
	}
	for _, part := range [][2]string{{"provider", e.Provider}, {"module", e.Probe.Module}, {"function", e.Function}, {"name", e.Name}} {
		line = append(append(append(line, `,"`...), part[0]...), `":`...)
		line = append(line, jsonString(part[1])...)
	}
	line = append(line, `,"args":{`...)
	line = appendArguments(line, e)
	line = append(line, '}')
	for i := range e.Texts {
		if e.Texts[i].Cut {
			line = append(line, `,"cut":true`...)
			break
		}
	}
	s.line = append(line, "}\n"...)
	_, s.err = message.JSONWriter{W: s.W}.Write(s.line)
	return s.err == nil
}

// appendArguments appends the members of an object of JSON.
func appendArguments(line []byte, e *Event) []byte {
	for i := range e.Arguments {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, jsonString(cmp.Or(e.Arguments[i].Name, fmt.Sprintf("arg%d", i)))...)
		line = append(append(line, ':'), jsonValue(&e.Arguments[i], e.Values[i], &e.Texts[i])...)
	}
	return line
}

// jsonValue writes an argument: a number, true or false, or a string for a text, a pointer, an infinite number and a name of an enumeration. What is null, or could not be
// read, is null.
func jsonValue(a *probe.Argument, value uint64, text *Copied) string {
	shown := formatValue(a, value, text)
	switch {
	case a.Format == probe.Unreadable, text.Lost, a.Format == probe.Text && text.Unreadable:
		return "null"
	case a.Format == probe.Text:
		return jsonString(text.Text)
	case a.Format == probe.Float && !isFinite(value), a.Format == probe.Pointer, a.Format == probe.TypeName, a.Enumerators[int64(value)] != "":
		return jsonString(shown)
	}
	return shown
}

// isFinite reports whether a floating-point number is one of JSON.
func isFinite(bits uint64) bool {
	f := math.Float64frombits(bits)
	return !math.IsNaN(f) && !math.IsInf(f, 0)
}

// jsonString writes a string of JSON.
func jsonString(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(data)
}

// Flush implements Flusher.
func (s *JSONSink) Flush() error { return flush(s.W, s.err) }

// Close implements Sink.
func (s *JSONSink) Close() error { return s.err }
