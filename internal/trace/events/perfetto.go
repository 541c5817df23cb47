package events

import (
	"fmt"
	"io"

	"sdtconvert/internal/message"
)

// PerfettoSink writes a trace as JSON, in the Trace Event Format, which Perfetto and Chrome read: an array, which may lack its end.
type PerfettoSink struct {
	W     io.Writer
	begun bool
	named map[*Process]bool
	err   error
}

// Event implements Sink.
func (s *PerfettoSink) Event(e *Event, c *Clock) bool {
	if s.named == nil {
		s.named = map[*Process]bool{}
	}
	if !s.named[e.Process] && e.Process.Name != "" {
		s.named[e.Process] = true
		s.write(`{"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}}`, e.Process.ID, jsonString(e.Process.Name))
	}
	nanoseconds := max(0, c.since(e.Time))
	arguments := string(appendArguments(nil, e))
	if arguments != "" {
		arguments = "," + arguments
	}
	s.write(`{"name":%s,"cat":%s,"ph":"i","s":"t","ts":%d.%03d,"pid":%d,"tid":%d,"args":{"function":%s%s}}`,
		jsonString(e.Provider+":"+e.Name), jsonString(e.Provider), nanoseconds/1000, nanoseconds%1000, e.Process.ID, e.Thread, jsonString(e.Function),
		arguments)
	return s.err == nil
}

// write writes an element of the array.
func (s *PerfettoSink) write(format string, args ...any) {
	prefix := ",\n"
	if !s.begun {
		s.begun, prefix = true, "[\n"
	}
	if s.err == nil {
		_, s.err = fmt.Fprintf(message.JSONWriter{W: s.W}, prefix+format, args...)
	}
}

// Flush implements Flusher.
func (s *PerfettoSink) Flush() error { return flush(s.W, s.err) }

// Close implements Sink.
func (s *PerfettoSink) Close() error {
	end := "\n]\n"
	if !s.begun {
		end = "[]\n"
	}
	if s.err == nil {
		_, s.err = io.WriteString(s.W, end)
	}
	return s.err
}
