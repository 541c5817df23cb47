package events

import (
	"fmt"
	"io"
	"os"
	"strings"

	"sdtconvert/image"
	"sdtconvert/internal/message"
)

// PerfettoSink writes a trace as JSON, in the Trace Event Format, which Perfetto and Chrome read: an array, which may lack its end.
type PerfettoSink struct {
	W       io.Writer
	begun   bool
	named   map[*Process]bool
	threads map[pairKey]bool // whose names were asked for
	slices  uint64           // from one thread to another
	err     error
}

// Event implements Sink.
func (s *PerfettoSink) Event(e *Event, c *Clock) bool {
	s.nameThread(e)
	s.write(`{"name":%s,"cat":%s,"ph":"i","s":"t","ts":%s,"pid":%d,"tid":%d,"args":{"function":%s%s}}`,
		jsonString(e.Provider+":"+e.Name), jsonString(e.Provider), microseconds(c.since(e.Time)), e.Process.ID, e.Thread, jsonString(e.Function), moreArguments(e))
	return s.err == nil
}

// microseconds writes nanoseconds since the beginning.
func microseconds(nanoseconds int64) string {
	nanoseconds = max(0, nanoseconds)
	return fmt.Sprintf("%d.%03d", nanoseconds/1000, nanoseconds%1000)
}

// moreArguments returns the arguments of an event as further members of an object.
func moreArguments(e *Event) string {
	if len(e.Arguments) == 0 {
		return ""
	}
	return "," + string(appendArguments(nil, e))
}

// nameThread writes the names of an event's process and thread, once, if the kernel still has them.
func (s *PerfettoSink) nameThread(e *Event) {
	key := pairKey{process: e.Process.ID, thread: e.Thread}
	if s.threads[key] {
		return
	}
	if s.threads == nil {
		s.named, s.threads = map[*Process]bool{}, map[pairKey]bool{}
	}
	if s.threads[key] = true; !s.named[e.Process] && e.Process.Name != "" {
		s.named[e.Process] = true
		s.write(`{"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}}`, e.Process.ID, jsonString(e.Process.Name))
	}
	name, err := os.ReadFile(fmt.Sprintf("%s/task/%d/comm", image.ProcessDirectory(e.Process.ID), e.Thread))
	if err == nil && e.Thread != 0 {
		s.write(`{"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}}`, e.Process.ID, e.Thread, jsonString(strings.TrimSuffix(string(name), "\n")))
	}
}

// begin returns what the beginning of a slice needs of an event.
func (s *PerfettoSink) begin(e *Event) sliceStart {
	s.nameThread(e)
	return sliceStart{e.Process.ID, e.Thread, e.Provider, e.Name, jsonString(e.Function) + moreArguments(e)}
}

// sliceStart is where a slice begins.
type sliceStart struct {
	process        int
	thread         int32
	provider, name string
	arguments      string
}

// end writes the slice that an event ends.
func (s *PerfettoSink) end(begun *beginning, e *Event, c *Clock) {
	s.nameThread(e)
	start := &begun.slice
	names := jsonString(start.provider+":"+start.name+" to "+e.Name) + `,"cat":` + jsonString(start.provider)
	from, to := c.since(begun.time), c.since(e.Time)
	if start.process == e.Process.ID && start.thread == e.Thread {
		s.write(`{"name":%s,"ph":"X","ts":%s,"dur":%s,"pid":%d,"tid":%d,"args":{"function":%s}}`,
			names, microseconds(from), microseconds(to-from), start.process, start.thread, start.arguments)
		return
	}
	s.slices++
	s.write(`{"name":%s,"ph":"b","id":%d,"ts":%s,"pid":%d,"tid":%d,"args":{"function":%s}}`, names, s.slices, microseconds(from), start.process, start.thread, start.arguments)
	s.write(`{"name":%s,"ph":"e","id":%d,"ts":%s,"pid":%d,"tid":%d,"args":{"function":%s%s}}`,
		names, s.slices, microseconds(to), e.Process.ID, e.Thread, jsonString(e.Function), moreArguments(e))
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
