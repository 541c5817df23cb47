package events

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/trace/probe"
)

// event makes an event of a probe with the arguments -5, 7 and "tea".
func event() *Event {
	signed, unsigned := arch.Operand{Size: 4, Signed: true}, arch.Operand{Size: 8}
	s := &probe.Site{Probe: listing.Probe{Provider: "shop", Module: "orders", Function: "main", Name: "placed"}}
	s.Text = s.Probe.String()
	s.Arguments = []probe.Argument{{Operand: signed}, {Operand: unsigned}, {Operand: unsigned, Format: probe.Text}}
	minus := int64(-5)
	return &Event{Site: s, Thread: 42, Process: &Process{}, Values: []uint64{uint64(minus), 7, 0x1000}, Texts: []Copied{{}, {}, {Text: "tea"}}}
}

// manyArguments makes an event with arguments of each format: event's, one that cannot be read, true, a null pointer and RED.
func manyArguments() *Event {
	e := event()
	e.Process = &Process{ID: 9}
	byte1 := arch.Operand{Size: 1}
	e.Arguments[1].Name = "count"
	e.Arguments = append(e.Arguments, probe.Argument{Format: probe.Unreadable}, probe.Argument{Operand: byte1, Format: probe.Boolean, Type: "bool"},
		probe.Argument{Operand: arch.Operand{Size: 8}, Format: probe.Text, Type: "char *"},
		probe.Argument{Operand: byte1, Type: "enum colour", Enumerators: map[int64]string{1: "RED"}},
		probe.Argument{Operand: arch.Operand{Size: 8}, Format: probe.Pointer})
	e.Values = append(e.Values, 0, 1, 0, 1, 5)
	e.Texts = append(e.Texts, Copied{}, Copied{}, Copied{Unreadable: true}, Copied{}, Copied{})
	return e
}

// A comparison that no site can fulfil is explained, others are not.
func TestNever(t *testing.T) {
	sites := []*probe.Site{manyArguments().Site}
	for text, want := range map[string]string{
		`arg2 == "x" && arg0 == 1 && count > 3 && arg4 == "false" && arg6 == "RED" && name == "placed" && name != "x" && arg5 == ""`: "",
		`arg7 == "two"`:      "nothing tells that the argument arg7 of shop:orders:main:placed is a text: give its type by -s FILE.d",
		`arg7 ~ "t*"`:        "nothing tells that the argument arg7",
		`arg4 == "yes"`:      "is true or false",
		`arg6 == "GREEN"`:    "of the type enum colour, has no value GREEN",
		"arg11 == 1":         "no probe that is traced has the argument arg11",
		"nothing == 1":       "no probe that is traced has the argument nothing",
		"arg3 == 1":          "nothing tells where the argument arg3",
		`name == "pl*"`:      `no probe that is traced has the name "pl*"; name ~ "pl*" compares with a glob`,
		`provider == "shoq"`: `has the provider "shoq"`,
	} {
		f := expect.Value(ParseFilter(text))(t)
		if err := f.Never(sites); want == "" {
			expect.OK(t, err)
		} else {
			expect.Error(t, err, want)
		}
		expect.OK(t, f.Never(nil))
	}
}

func TestFilters(t *testing.T) {
	for text, want := range map[string]bool{
		"arg0 == -5": true, "arg0 < 0": true, "arg0 > 4000000000": false, "arg1 >= 7": true, "arg1 != 7": false,
		"arg0 < arg1": true, "arg1 > 0x6 && arg0 < 0": true, "arg1 > 7 || tid == 42": true, "!(arg1 > 7)": true, "! arg1 > 7": true,
		`arg2 == "tea"`: true, `arg2 != "milk"`: true, `"tea" <= arg2`: true, `name == "placed" && function == "main"`: true,
		"arg9 == 0": false, "!(arg9 == 0)": true, "arg1 < 18446744073709551615": true, "arg1>=7&&arg1<=7": true, "-1 < arg1": true,
		"count == 7": true, "other == 7": false, `provider == "shop" && module == "orders"`: true, "pid == 9": true,
		`name ~ "pl*d"`: true, `arg2 ~ "t?a" && !(name ~ "tea")`: true, "arg3 == true": false,
		`arg4 == "true"`: true, "arg4 == true": true, "arg4 == false": false, `arg5 == ""`: false, `arg5 != "x"`: false, "arg5 == 0": true, `arg6 == "RED"`: true, `arg6 != ""`: true,
	} {
		f, err := ParseFilter(text)
		expect.OK(t, err, "%s", text)
		expect.Equal(t, want, f.matches(manyArguments()), "%s", text)
	}
	for text, part := range map[string]string{
		"": "got \"\"", "arg0": "want ==", "arg0 = 1": "want ==", "arg0 > +": "want argN", `name ~ name`: "want a text ~ a glob", `arg0 ~ ""`: "want a text ~ a glob", `name ~ "["`: "is not a glob", "arg12 > 1": "want argN", "(arg0 > 1": "missing )",
		"arg0 > 1 arg1": "unexpected \"arg1\"", `arg0 > "a`: "without an end", "name > 1": "a text and a number", "arg0 > 99999999999999999999": "no number of 64 bits",
		"arg0 > 1 &&": "want argN", "arg0 > 1 & arg1 > 2": "unexpected \"&\"",
	} {
		_, err := ParseFilter(text)
		expect.Error(t, err, part, "%s", text)
	}
}

func TestHistograms(t *testing.T) {
	var h Histogram
	for _, value := range []int64{0, 1, 2, 3, 4, 1 << 20, -1, -2, math.MaxInt64, math.MinInt64} {
		h.add(uint64(value), true)
	}
	h.add(math.MaxUint64, false)
	expect.Equal(t, uint64(1), h.counts[64], "an unsigned number from 2^63 on")
	for name, n := range map[string]int{"[0, 1)": 0, "[1, 2)": 1, "[2, 4)": 2, "[1M, 2M)": 21, "[512, 1K)": 10, "[1K, 2K)": 11, "[8E, 16E)": 64, "(-2, -1]": -1, "(-4, -2]": -2, "[4E, 8E)": 63} {
		expect.Equal(t, name, h.name(n))
	}
	expect.Equal(t, uint64(2), h.counts[2])
	_, linear, err := parseLinear("arg0,-10,10,4")
	expect.OK(t, err)
	for value, name := range map[int64]string{-11: "(..., -10)", -10: "[-10, -6)", 9: "[6, 10)", 10: "[10, ...)", 0: "[-2, 2)"} {
		expect.Equal(t, name, linear.name(linear.rangeOf(uint64(value), true)), "%d", value)
	}
	expect.Equal(t, "[10, ...)", linear.name(linear.rangeOf(math.MaxUint64, false)))
	for _, text := range []string{"arg0", "arg0,1,2", "arg0,2,1,1", "arg0,0,10,0", "arg0,0,1000000,1", "arg12,0,1,1", ",0,1,1", "arg0,a,1,1"} {
		_, _, err := parseLinear(text)
		expect.Error(t, err, "", "%s", text)
	}
	var b strings.Builder
	s := HistogramSink{W: &b, Argument: Reference{index: 1}}
	s.Event(event(), nil)
	unknown := event()
	site := *unknown.Site
	site.Text, site.Arguments = "unknown", slices.Clone(site.Arguments)
	site.Arguments[1].Format = probe.Unreadable
	unknown.Site = &site
	s.Event(unknown, nil)
	s.Dropped(unknown.Site, 2)
	expect.OK(t, s.Close())
	expect.Contains(t, b.String(), "unknown arg1\nnot counted: 2 hits that were dropped\nnot counted: 1 hit that was made with an argument that could not be read\n")
	expect.Contains(t, b.String(), "shop:orders:main:placed arg1\n")
	expect.Contains(t, b.String(), "[4, 8)          1 |@@@")
}

func TestLines(t *testing.T) {
	var b bytes.Buffer
	s := &TextSink{W: &b}
	e := event()
	s.Event(e, NewClock())
	expect.Contains(t, b.String(), " 42 shop:orders:main:placed(-5, 7, \"tea\")\n")
	e.Texts[2] = Copied{Text: "caf\xc3", Cut: true}
	expect.Equal(t, `"caf"...`, quote(&e.Texts[2]))
	expect.Equal(t, `"a\x1b[31m\n"`, quote(&Copied{Text: "a\x1b[31m\n"}))
	expect.Equal(t, "(null)", formatValue(&e.Arguments[2], 0, &Copied{Unreadable: true}))
}

// A histogram of times forgets threads rather than grow without end, and says so; threads of two processes are two.
func TestThreadsBetween(t *testing.T) {
	var b bytes.Buffer
	s := expect.Value(Summaries[slices.IndexFunc(Summaries, func(s Summary) bool { return s.Name == "between" })].New("from,to", &b))(t)
	from, to := event(), event()
	first, second := *from.Site, *to.Site
	first.Name, second.Name = "from", "to"
	from.Site, to.Site = &first, &second
	hit := func(e *Event, process int, thread int32, time uint64) {
		e.Process, e.Thread, e.Time = &Process{ID: process}, thread, newClockOnce.ticks+time
		s.Event(e, newClockOnce)
	}
	for i := range 3 * mostThreads {
		hit(from, 1, int32(i+1), uint64(i))
	}
	expect.Equal(t, true, len(s.(*BetweenSink).begun) <= mostThreads)
	hit(from, 1, 7, 1<<20)
	hit(to, 2, 7, 1<<21) // of another process
	hit(to, 1, 0, 1<<21)
	expect.Error(t, s.Close(), "no thread")
	hit(to, 1, 7, 1<<21)
	expect.OK(t, s.Close())
	expect.Contains(t, b.String(), "not counted: 1 hit that was made by a thread whose ID is not known")
	expect.Contains(t, b.String(), "          1 |@")
}

// Nothing that a program names or passes reaches a terminal but as text.
func TestHostileNames(t *testing.T) {
	const hostile = "x\x1b]0;t\a\n\x9b31m\u202e\u2028\xff\u009b"
	e := event()
	s := *e.Site
	e.Site, s.Probe = &s, listing.Probe{Provider: hostile, Module: hostile, Function: hostile, Name: hostile}
	s.Text = message.Escape(s.Probe.String())
	s.Arguments = slices.Clone(s.Arguments)
	s.Arguments[1].Enumerators = map[int64]string{7: message.Escape(hostile)}
	s.Arguments[1].Name = message.Escape(hostile)
	e.Process.Name = hostile
	e.Texts[2] = Copied{Text: hostile, Cut: true}
	directory := t.TempDir() + "/ctf"
	for name, value := range map[string]string{"text": "", "json": "", "perfetto": "", "ctf": "", "hist": "arg1", "lhist": "arg1,0,10,1", "between": "*,*"} {
		var b bytes.Buffer
		var sink Sink
		for _, f := range Formats {
			if f.Name == name {
				sink = f.New(directory, &b)
			}
		}
		for _, s := range Summaries {
			if s.Name == name {
				sink = expect.Value(s.New(value, &b))(t)
			}
		}
		for range 2 {
			expect.Equal(t, true, sink.Event(e, newClockOnce), "%s", name)
		}
		expect.OK(t, sink.Close())
		shown := b.String()
		switch name {
		case "ctf":
			shown = string(disk.Read(t, directory+"/metadata"))
		case "perfetto":
			var events []map[string]any
			expect.OK(t, json.Unmarshal([]byte(shown), &events))
		case "json":
			for line := range strings.Lines(shown) {
				var event map[string]any
				expect.OK(t, json.Unmarshal([]byte(line), &event))
				expect.Equal(t, strings.ToValidUTF8(hostile, "\ufffd"), event["name"].(string))
			}
		}
		if shown == "" {
			t.Errorf("%s writes nothing", name)
		}
		for i := range len(shown) {
			if c := shown[i]; c != '\n' && c != '\t' && (c < ' ' || c > '~') {
				t.Fatalf("%q: byte %#x in %q", name, c, shown)
			}
		}
		if strings.Contains(shown, "\n\\x9b") {
			t.Errorf("a name has broken a line: %q", shown)
		}
	}
}

// fakeMemory is memory that a program has written.
type fakeMemory []byte

func (m fakeMemory) ReadAt(b []byte, at int64) (int, error) { return copy(b, m[at:]), nil }
func (m fakeMemory) Load(at uint64) (uint64, error)         { return binary.LittleEndian.Uint64(m[at:]), nil }
func (m fakeMemory) Store(at, value uint64) error {
	binary.LittleEndian.PutUint64(m[at:], value)
	return nil
}
func (m fakeMemory) Close() error { return nil }

// Whatever a program writes into its rings, the reader neither fails nor reads without end, and events that are whole are
// read once.
func TestHostileRings(t *testing.T) {
	site := &probe.Site{Number: 1, Arguments: []probe.Argument{{Operand: arch.Operand{Size: 8}, Format: probe.Text}, {Operand: arch.Operand{Size: 4, Kind: arch.InMemory, Base: 8, Index: -1}}}}
	site.Layout = probe.NewLayout(site.Arguments, 0)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		ring := arch.Ring{Count: 2, Slots: 8, Size: site.Layout.Size, Stride: arch.RingHeader + 8*site.Layout.Size}
		memory := make(fakeMemory, RingLength(ring))
		c := &Collector{Sites: func() []*probe.Site { return []*probe.Site{site} }, Clock: newClockOnce, Sink: &CountSink{}}
		collected := &Rings{newRingReader(ring, memory, binary.LittleEndian), &Process{ID: 1}, 1}
		for range 50 {
			for range r.IntN(40) {
				at := r.IntN(len(memory)/8) * 8
				if r.IntN(2) == 0 {
					at = r.IntN(2)*int(ring.Stride) + 8*r.IntN(3)
				}
				value := []uint64{r.Uint64(), uint64(r.IntN(20)), uint64(r.IntN(20))<<32 | 1, 0, ^uint64(0)}[r.IntN(5)]
				memory.Store(uint64(at), value)
			}
			if n := c.drain(collected, r.IntN(2) == 0); n > 2*8 {
				t.Fatalf("seed %d: %d events of rings with room for 16", seed, n)
			}
		}
	}
}

var newClockOnce = NewClock()

// Events come in order, each once, also when the ring has gone round.
func TestRing(t *testing.T) {
	ring := arch.Ring{Count: 1, Slots: 4, Size: 64, Stride: arch.RingHeader + 4*64}
	memory := make(fakeMemory, RingLength(ring))
	reader := newRingReader(ring, memory, binary.LittleEndian)
	write := func(position uint64) {
		at := arch.RingHeader + position%4*64
		memory.Store(at+arch.EventTime, position*10)
		memory.Store(at, position<<32|3)
	}
	var got []uint64
	read := func(last bool) {
		reader.read(last, func(events []byte) {
			for event := range slices.Chunk(events, 64) {
				expect.Equal(t, 3, siteNumber(event, binary.LittleEndian))
				got = append(got, binary.LittleEndian.Uint64(event[arch.EventTime:])/10)
			}
		})
	}
	for position := range uint64(10) {
		memory.Store(0, position+1)
		read(false) // not yet whole
		write(position)
		read(false)
	}
	expect.Equal(t, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got)
	memory.Store(0, 12) // 10 is never finished
	write(11)
	read(false)
	expect.Equal(t, 10, len(got))
	read(true)
	expect.Equal(t, uint64(11), got[10])
	expect.Equal(t, uint64(1), reader.abandoned)
}

// Nothing is made before the first event, and programs are never replaced.
func TestFile(t *testing.T) {
	directory := t.TempDir()
	path := directory + "/out"
	expect.OK(t, CheckPath(path, false))
	expect.OK(t, os.WriteFile(path, []byte("precious"), 0o666))
	f := &File{Path: path}
	expect.OK(t, CheckPath(path, false))
	expect.OK(t, f.Close())
	expect.Equal(t, "precious", string(disk.Read(t, path)))
	expect.Value(f.Write([]byte("x")))(t)
	expect.Value(f.Write([]byte("y")))(t)
	expect.OK(t, f.Close())
	expect.Equal(t, "xy", string(disk.Read(t, path)))
	expect.Error(t, CheckPath(path, true), "is there already")
	expect.Error(t, CheckPath(directory, false), "is a directory: name a file in it")
	expect.Error(t, CheckPath(directory+"/none/x", false), "no such file")
	expect.Error(t, CheckPath("/proc/self/exe", false), "is a program or an object")
}

// smallFile is a file on a disk that is soon full.
type smallFile struct {
	bytes.Buffer
	room int
}

func (f *smallFile) Write(data []byte) (int, error) {
	n := min(len(data), f.room-f.Len())
	f.Buffer.Write(data[:n])
	if n < len(data) {
		return n, errors.New("the disk is full")
	}
	return n, nil
}

func (f *smallFile) Truncate(size int64) error {
	f.Buffer.Truncate(int(size))
	return nil
}

func (f *smallFile) Close() error { return nil }

// A piece for which there is no room is taken back.
func TestWholeFile(t *testing.T) {
	small := &smallFile{room: 8}
	whole := wholeFile{truncater: small}
	expect.OK(t, whole.write([]byte("first")))
	expect.Error(t, whole.write([]byte("second")), "the disk is full")
	expect.Equal(t, "first", small.String())
}

func TestKeys(t *testing.T) {
	var b bytes.Buffer
	s := &CountSink{Keys: expect.Value(ParseKeys("arg2,count, tid,function,nothing,arg4"))(t), W: &b}
	for range 3 {
		s.Event(manyArguments(), nil)
	}
	s.Dropped(manyArguments().Site, 2)
	expect.OK(t, s.Close())
	expect.Equal(t, "           3 \"tea\", 7, 42, main, ?, true\nnot counted: 2 hits that were dropped\n", b.String())
	for text, part := range map[string]string{"": "want argN", "arg0,": "want argN", "arg0 arg1": "unexpected", "1": "the same for all events", `"x"`: "the same for all events"} {
		_, err := ParseKeys(text)
		expect.Error(t, err, part, "%s", text)
	}
}

// BenchmarkCollector reads the rings of two processors, and writes lines: an operation is an event.
func BenchmarkCollector(b *testing.B) {
	for _, sink := range []Sink{nil, &CountSink{}, &TextSink{W: bufio.NewWriter(io.Discard)}} {
		b.Run(fmt.Sprintf("%T", sink), func(b *testing.B) { readMany(b, sink) })
	}
}

func readMany(b *testing.B, sink Sink) {
	site := &probe.Site{Number: 1, Arguments: []probe.Argument{{Operand: arch.Operand{Size: 4, Signed: true}}, {Operand: arch.Operand{Size: 8}}}}
	site.Probe = listing.Probe{Provider: "shop", Module: "orders", Function: "main", Name: "placed"}
	site.Text = site.Probe.String()
	site.Layout = probe.NewLayout(site.Arguments, 0)
	ring := NewRing(site.Layout.Size, 2)
	memory := make(fakeMemory, RingLength(ring))
	sites := []*probe.Site{site}
	c := &Collector{Sites: func() []*probe.Site { return sites }, Clock: NewClock(), Sink: sink}
	rings := c.AddRings(ring, memory, binary.LittleEndian, &Process{ID: 1})
	for done := uint64(0); done < uint64(b.N); {
		b.StopTimer()
		for i := range ring.Count {
			start, tail := uint64(i)*uint64(ring.Stride), rings.tails[i]
			for k := tail; k < tail+uint64(ring.Slots); k++ {
				at := start + arch.RingHeader + k%uint64(ring.Slots)*uint64(ring.Size)
				memory.Store(at+arch.EventTime, c.Clock.ticks+done)
				memory.Store(at, k<<32|1)
				done++
			}
			memory.Store(start, tail+uint64(ring.Slots))
		}
		b.StartTimer()
		c.pass(false)
		c.deliver(c.ready(^uint64(0)))
	}
}
