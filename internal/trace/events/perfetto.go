package events

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// PerfettoSink writes a trace as JSON, in the Trace Event Format, which Perfetto and Chrome read.
type PerfettoSink struct {
	file   *os.File
	w      *bufio.Writer
	prefix string
	err    error
}

// NewPerfettoSink makes the file of a trace.
func NewPerfettoSink(path string) (*PerfettoSink, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &PerfettoSink{file: file, w: bufio.NewWriterSize(file, 64<<10), prefix: "{\"traceEvents\":[\n"}, nil
}

// Event implements Sink.
func (s *PerfettoSink) Event(e *Event, c *Clock) bool {
	var args strings.Builder
	for i := range e.Arguments {
		if i > 0 {
			args.WriteByte(',')
		}
		a, text := &e.Arguments[i], &e.Texts[i]
		shown := formatValue(a, e.Values[i], text)
		if a.Format == probe.Text && !text.Unreadable {
			shown = text.Text
		}
		fmt.Fprintf(&args, `%s:%s`, jsonString(cmp.Or(a.Name, fmt.Sprintf("arg%d", i))), jsonString(shown))
	}
	nanoseconds := max(0, c.since(e.Time))
	_, s.err = fmt.Fprintf(message.JSONWriter{W: s.w}, `%s{"name":%s,"cat":%s,"ph":"i","s":"t","ts":%d.%03d,"pid":%d,"tid":%d,"args":{%s}}`, s.prefix,
		jsonString(e.Provider+":"+e.Name), jsonString(e.Provider), nanoseconds/1000, nanoseconds%1000, e.Process, e.Thread, args.String())
	s.prefix = ",\n"
	return s.err == nil
}

// Close implements Sink.
func (s *PerfettoSink) Close() error {
	if s.prefix != ",\n" {
		s.w.WriteString(s.prefix)
	}
	s.w.WriteString("\n],\"displayTimeUnit\":\"ns\"}\n")
	return errors.Join(s.err, s.w.Flush(), s.file.Close())
}

// jsonString writes a string of JSON.
func jsonString(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(data)
}
