package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sdtconvert/internal/paths"
	"sdtconvert/internal/trace/probe"
)

// CTFSink writes a trace in the Common Trace Format, version 1.8: a directory with one stream, whose metadata describes
// each site as a class of events.
type CTFSink struct {
	directory string
	stream    *os.File
	packet    []byte
	first     uint64 // time of the first event of the packet
	last      uint64
	classes   map[uint32]*probe.Site
	order     []uint32
	wall      int64 // of time 0, nanoseconds since 1970
	err       error
}

// The header and the context of a packet, in bytes.
const (
	packetHeader = 4 + 4              // magic, stream
	packetBytes  = packetHeader + 4*8 // begin, end, content size, packet size
	packetMost   = 256 << 10
)

// NewCTFSink makes the directory of a trace.
func NewCTFSink(directory string) (*CTFSink, error) {
	if err := os.Mkdir(directory, 0o777); err != nil {
		return nil, err
	}
	stream, err := os.OpenFile(paths.Join(directory, "stream"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &CTFSink{directory: directory, stream: stream, classes: map[uint32]*probe.Site{}}, nil
}

// Event implements Sink.
func (s *CTFSink) Event(e *Event, c *Clock) bool {
	time := uint64(max(0, c.since(e.Time)))
	if s.wall == 0 {
		s.wall = c.wall(c.ticks).UnixNano()
	}
	if s.classes[e.Number] == nil {
		s.classes[e.Number] = e.Site
		s.order = append(s.order, e.Number)
	}
	time = max(time, s.last) // readers ask for order
	if len(s.packet) == 0 {
		s.packet, s.first = append(s.packet, make([]byte, packetBytes)...), time
	}
	s.last = time
	order := binary.LittleEndian
	s.packet = order.AppendUint32(s.packet, e.Number)
	s.packet = order.AppendUint64(s.packet, time)
	s.packet = order.AppendUint32(s.packet, uint32(e.Thread))
	for i := range e.Arguments {
		a, text := &e.Arguments[i], &e.Texts[i]
		if a.Format == probe.Text || a.Format == probe.Unreadable || text.Unreadable {
			shown := text.Text
			if a.Format != probe.Text || text.Unreadable {
				shown = formatValue(a, e.Values[i], text)
			}
			if a.Format != probe.Text && a.Format != probe.Unreadable { // a number that could not be read
				s.packet = order.AppendUint64(s.packet, 0)
				continue
			}
			s.packet = append(append(s.packet, strings.ReplaceAll(shown, "\x00", "")...), 0)
			continue
		}
		s.packet = order.AppendUint64(s.packet, e.Values[i])
	}
	if len(s.packet) > packetMost {
		s.flush()
	}
	return s.err == nil
}

// flush writes a packet.
func (s *CTFSink) flush() {
	if len(s.packet) == 0 {
		return
	}
	order, size := binary.LittleEndian, uint64(len(s.packet))*8
	order.PutUint32(s.packet, 0xc1fc1fc1)
	for i, value := range []uint64{s.first, s.last, size, size} {
		order.PutUint64(s.packet[packetHeader+8*i:], value)
	}
	_, err := s.stream.Write(s.packet)
	s.err = errors.Join(s.err, err)
	s.packet = s.packet[:0]
}

// Close implements Sink.
func (s *CTFSink) Close() error {
	s.flush()
	err := errors.Join(s.err, s.stream.Close())
	return errors.Join(err, os.WriteFile(paths.Join(s.directory, "metadata"), []byte(s.metadata()), 0o666))
}

const ctfTypes = `/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := pointer_t;
trace {
	major = 1; minor = 8; byte_order = le;
	packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
env { tracer_name = "sdtconvert"; };
clock { name = monotonic; freq = 1000000000; offset_s = %d; offset = %d; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time_t;
stream {
	id = 0;
	packet.context := struct { time_t timestamp_begin; time_t timestamp_end; uint64_t content_size; uint64_t packet_size; };
	event.header := struct { uint32_t id; time_t timestamp; };
	event.context := struct { uint32_t tid; };
};
`

// metadata describes the stream.
func (s *CTFSink) metadata() string {
	var b strings.Builder
	fmt.Fprintf(&b, ctfTypes, s.wall/1e9, s.wall%1e9)
	for _, number := range s.order {
		site := s.classes[number]
		fmt.Fprintf(&b, "event {\n\tid = %d; stream_id = 0; name = %s;\n\tfields := struct {\n", number, ctfString(site.Text))
		for i, a := range site.Arguments {
			typ := "uint64_t"
			switch {
			case a.Format == probe.Text, a.Format == probe.Unreadable:
				typ = "string"
			case a.Enumerators != nil:
				typ = ctfEnumeration(&a)
			case a.Format == probe.Pointer:
				typ = "pointer_t"
			case a.Signed:
				typ = "int64_t"
			}
			name := fmt.Sprintf("arg%d", i)
			if a.Name != "" {
				name = "_" + a.Name // which readers leave out; a word of the language may be behind it
			}
			fmt.Fprintf(&b, "\t\t%s %s;\n", typ, name)
		}
		b.WriteString("\t};\n};\n")
	}
	return b.String()
}

// ctfEnumeration describes an enumeration.
func ctfEnumeration(a *probe.Argument) string {
	container := map[bool]string{true: "int64_t", false: "uint64_t"}[a.Signed]
	var labels []string
	for _, value := range slices.Sorted(maps.Keys(a.Enumerators)) {
		if a.Signed || value >= 0 {
			labels = append(labels, fmt.Sprintf("%s = %d", ctfString(a.Enumerators[value]), value))
		}
	}
	if len(labels) == 0 {
		return container
	}
	return fmt.Sprintf("enum : %s { %s }", container, strings.Join(labels, ", "))
}

// ctfString writes a string of CTF's metadata. Names come from files, and may have anything in them.
func ctfString(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return `"` + clean + `"`
}
