package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sdtconvert/internal/replace"
	"sdtconvert/internal/trace/probe"
)

// CTFSink writes a trace in the Common Trace Format, version 1.8: a directory with one stream, whose metadata describes
// each site as a class of events.
//
// The metadata of a class is written before the first packet with an event of it, and packets are written whole, soon and one after
// the other: what a full disk or SIGKILL leaves can be read.
type CTFSink struct {
	path      string
	directory *replace.Directory // nil until the first event
	stream    wholeFile
	metadata  wholeFile
	packet    []byte
	first     uint64 // time of the first event of the packet
	last      uint64
	flushed   time.Time
	classes   map[uint32]bool
	err       error
}

// wholeFile is a file of pieces. It never ends within one.
type wholeFile struct {
	truncater
	size int64
}

type truncater interface {
	io.WriteCloser
	Truncate(size int64) error
}

func (f *wholeFile) write(piece []byte) error {
	n, err := f.Write(piece)
	if err != nil && n > 0 {
		err = errors.Join(err, f.Truncate(f.size))
	}
	if err == nil {
		f.size += int64(n)
	}
	return err
}

// The header and the context of a packet, in bytes.
const (
	packetHeader = 4 + 4              // magic, stream
	packetBytes  = packetHeader + 4*8 // begin, end, content size, packet size
	packetMost   = 16 << 10
)

// mostDelay is how long a packet waits for more events.
const mostDelay = 200 * time.Millisecond

// NewCTFSink returns a sink that makes the directory of a trace with the first event.
func NewCTFSink(path string) *CTFSink {
	return &CTFSink{path: path, classes: map[uint32]bool{}}
}

// open makes the directory of a trace. Time 0 is at wall, nanoseconds since 1970.
func (s *CTFSink) open(wall int64) (err error) {
	if s.directory, err = replace.MakeDirectory(s.path, 0o777); err != nil {
		return err
	}
	for name, to := range map[string]*wholeFile{"metadata": &s.metadata, "stream": &s.stream} {
		file, err := s.directory.Create(name, 0o666)
		if err != nil {
			return err
		}
		to.truncater = file
	}
	return s.metadata.write(fmt.Appendf(nil, ctfTypes, wall/1e9, wall%1e9))
}

// Event implements Sink.
func (s *CTFSink) Event(e *Event, c *Clock) bool {
	at := uint64(max(0, c.since(e.Time)))
	if s.directory == nil && s.err == nil {
		s.err = s.open(c.wall(c.ticks).UnixNano())
	}
	if !s.classes[e.Number] && s.err == nil {
		s.classes[e.Number] = true
		s.err = s.metadata.write([]byte(ctfClass(e.Site)))
	}
	if s.err != nil {
		return false
	}
	at = max(at, s.last) // readers ask for order
	if len(s.packet) == 0 {
		s.packet, s.first = append(s.packet, make([]byte, packetBytes)...), at
	}
	s.last = at
	order := binary.LittleEndian
	s.packet = order.AppendUint32(s.packet, e.Number)
	s.packet = order.AppendUint64(s.packet, at)
	s.packet = order.AppendUint32(s.packet, uint32(e.Process.ID))
	s.packet = order.AppendUint32(s.packet, uint32(e.Thread))
	for i := range e.Arguments {
		a, text := &e.Arguments[i], &e.Texts[i]
		if isCTFString(a) {
			shown := text.Text
			if a.Format != probe.Text || text.Unreadable {
				shown = formatValue(a, e.Values[i], text)
			}
			s.packet = append(append(s.packet, strings.ReplaceAll(shown, "\x00", "")...), 0)
			continue
		}
		value := e.Values[i]
		if text.Unreadable {
			value = 0
		}
		s.packet = order.AppendUint64(s.packet, value)
	}
	if len(s.packet) > packetMost {
		s.writePacket()
	}
	return s.err == nil
}

// Flush implements Flusher.
func (s *CTFSink) Flush() error {
	if time.Since(s.flushed) > mostDelay {
		s.writePacket()
	}
	return s.err
}

// writePacket writes the packet.
func (s *CTFSink) writePacket() {
	if s.flushed = time.Now(); len(s.packet) == 0 || s.err != nil {
		return
	}
	order, size := binary.LittleEndian, uint64(len(s.packet))*8
	order.PutUint32(s.packet, 0xc1fc1fc1)
	for i, value := range []uint64{s.first, s.last, size, size} {
		order.PutUint64(s.packet[packetHeader+8*i:], value)
	}
	s.err = s.stream.write(s.packet)
	s.packet = s.packet[:0]
}

// Close implements Sink.
func (s *CTFSink) Close() error {
	if s.directory == nil && s.err == nil { // no event
		s.err = s.open(time.Now().UnixNano())
	}
	s.writePacket()
	if s.directory == nil {
		return s.err
	}
	for _, f := range []*wholeFile{&s.stream, &s.metadata} {
		if f.truncater != nil {
			s.err = errors.Join(s.err, f.Close())
		}
	}
	return errors.Join(s.err, s.directory.Close())
}

const ctfTypes = `/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := pointer_t;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := float64_t;
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
	event.context := struct { uint32_t pid; uint32_t tid; };
};
`

// ctfClass describes the events of a site.
func ctfClass(site *probe.Site) string {
	var b strings.Builder
	fmt.Fprintf(&b, "event {\n\tid = %d; stream_id = 0; name = %s;\n\tfields := struct {\n", site.Number, ctfString(site.Text))
	for i, a := range site.Arguments {
		typ := "uint64_t"
		switch {
		case isCTFString(&a):
			typ = "string"
		case a.Enumerators != nil:
			typ = ctfEnumeration(&a)
		case a.Format == probe.Float:
			typ = "float64_t"
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
	return b.String()
}

// isCTFString reports whether an argument is a string in CTF.
func isCTFString(a *probe.Argument) bool {
	return a.Format == probe.Text || a.Format == probe.TypeName || a.Format == probe.Unreadable
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
