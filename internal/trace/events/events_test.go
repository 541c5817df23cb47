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
		probe.Argument{Operand: arch.Operand{Size: 8}, Format: probe.Pointer}, probe.Argument{Operand: arch.Operand{Size: 4}, Format: probe.Float, Type: "float"})
	e.Values = append(e.Values, 0, 1, 0, 1, 5, math.Float64bits(-1.25))
	e.Texts = append(e.Texts, Copied{}, Copied{}, Copied{Unreadable: true}, Copied{}, Copied{}, Copied{})
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
		"arg8 == -1.25": true, "arg8 < -1": true, "arg8 > -2": true, "-1.5 > arg8": false, "arg8 < arg1": true, "arg1 > 6.5": true, "arg1 < 7.5e0": true, "arg8 == true": false,
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
		"arg0 > 1e": "exponent has no digits", "arg0 > 1 &&": "want argN", "arg0 > 1 & arg1 > 2": "unexpected \"&\"",
	} {
		_, err := ParseFilter(text)
		expect.Error(t, err, part, "%s", text)
	}
}

func TestHistograms(t *testing.T) {
	var h Histogram
	for value, want := range map[uint64]string{
		0: "[0, 1)", 1: "[1, 2)", 2: "[2, 4)", 3: "[2, 4)", 512: "[512, 1K)", 1024: "[1K, 2K)", 1 << 20: "[1M, 2M)", math.MaxInt64: "[4E, 8E)",
		minus(1): "(-2, -1]", minus(2): "(-4, -2]", 1 << 63: "(-16E, -8E]",
	} {
		expect.Equal(t, want, h.name(h.Of(value, true)))
		h.addCount(h.Of(value, true), 1)
	}
	expect.Equal(t, "[8E, 16E)", h.name(h.Of(math.MaxUint64, false)), "an unsigned number from 2^63 on")
	expect.Equal(t, uint64(2), h.counts[h.Of(2, true)])
	_, linear, err := parseLinear("arg0,-10,10,4")
	expect.OK(t, err)
	for value, name := range map[uint64]string{minus(11): "(..., -10)", minus(10): "[-10, -6)", 9: "[6, 10)", 10: "[10, ...)", 0: "[-2, 2)"} {
		expect.Equal(t, name, linear.name(linear.Of(value, true)), "%d", value)
	}
	expect.Equal(t, "[10, ...)", linear.name(linear.Of(math.MaxUint64, false)))
	_, widest, err := parseLinear("arg0,-0x8000000000000000,0x7fffffffffffffff,0x4000000000000000")
	expect.OK(t, err)
	expect.Equal(t, "[4611686018427387904, 9223372036854775807)", widest.name(widest.Of(1<<62, true)))
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
	expect.Error(t, s.Close(), "lacks 2 hits")
	expect.Contains(t, b.String(), "unknown arg1\nnot counted: 2 hits that were dropped\nnot counted: 1 hit that was made with an argument that could not be read\n")
	expect.Contains(t, b.String(), "shop:orders:main:placed arg1\n")
	expect.Contains(t, b.String(), "[4, 8)          1 |@@@")
}

func minus(n int64) uint64 { return uint64(-n) }

// The name of a type is where the std::type_info points to, or it is not known.
func TestTypeNames(t *testing.T) {
	memory := make(fakeMemory, 2048)
	put := func(at int, name string) {
		memory.Store(uint64(at)+8, uint64(at)+16)
		copy(memory[at+16:], name)
	}
	put(0, "*N4shop8sold_outE\x00")
	put(64, "i\x00")
	put(128, "@\x1b type\x00")
	memory.Store(192+8, 1<<40)
	p := &Process{Memory: boundMemory{memory}}
	for address, want := range map[uint64]string{0: "shop::sold_out", 64: "int", 128: `@\x1b type`, 192: "", 2044: "", 1 << 50: ""} {
		expect.Equal(t, want, p.typeName(address, binary.LittleEndian), "%d", address)
	}
	expect.Equal(t, "", (&Process{}).typeName(0, binary.LittleEndian))
	e := event()
	site := *e.Site
	e.Site, site.Arguments = &site, slices.Clone(site.Arguments)
	site.Arguments[1].Format = probe.TypeName
	site.Layout.HasTypeNames = true
	e.Process, e.Values[1] = p, 64
	e.nameTypes(binary.LittleEndian)
	expect.Equal(t, "int", formatValue(&e.Arguments[1], 64, &e.Texts[1]))
	expect.Equal(t, `"int"`, jsonValue(&e.Arguments[1], 64, &e.Texts[1]))
	expect.Equal(t, "0x40", formatValue(&e.Arguments[1], 64, &Copied{}))
}

// boundMemory is memory with an end.
type boundMemory struct{ fakeMemory }

func (m boundMemory) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 || at > int64(len(m.fakeMemory)) {
		return 0, errors.New("nothing is there")
	}
	return m.fakeMemory.ReadAt(b, at)
}

// Floating-point numbers are in the range that holds them.
func TestFloats(t *testing.T) {
	_, linear, err := parseLinear("arg0,-2,3,1")
	expect.OK(t, err)
	var powers Histogram
	for value, want := range map[float64][2]string{
		-0.5: {"[-1, 0)", "[0, 1)"}, 2.99: {"[2, 3)", "[2, 4)"}, 3: {"[3, ...)", "[2, 4)"}, -2.01: {"(..., -2)", "(-4, -2]"}, -1.5: {"[-2, -1)", "(-2, -1]"},
		1e300: {"[3, ...)", "[8E, 16E)"}, -1e300: {"(..., -2)", "(-16E, -8E]"}, math.Inf(1): {"[3, ...)", "[8E, 16E)"}, 1 << 63: {"[3, ...)", "[8E, 16E)"},
	} {
		n := number{bits: math.Float64bits(value), isFloat: true}
		expect.Equal(t, want, [2]string{linear.name(linear.indexOf(n)), powers.name(powers.indexOf(n))}, "%g", value)
	}
	expect.Equal(t, powers.Unread(), powers.indexOf(number{bits: math.Float64bits(math.NaN()), isFloat: true}))
	e := manyArguments()
	expect.Equal(t, "-1.25", jsonValue(&e.Arguments[8], e.Values[8], &Copied{}))
	expect.Equal(t, `"NaN"`, jsonValue(&e.Arguments[8], math.Float64bits(math.NaN()), &Copied{}))
	expect.Equal(t, "0.1", formatValue(&e.Arguments[8], extend(uint64(math.Float32bits(0.1)), &e.Arguments[8]), &Copied{}))
	site := *e.Site
	site.Layout = probe.NewLayout(site.Arguments, 0)
	_, ok := (&HistogramSink{Argument: Reference{index: 8}}).Bins(&site, false)
	expect.Equal(t, false, ok)
	_, isWhole := expect.Value(ParseFilter("arg8 > 1"))(t).Conditions(&site)
	expect.Equal(t, false, isWhole)
}

// What trampolines have counted is drawn, whatever a program writes into its counters; a histogram that lacks hits is an error.
func TestCountedHistograms(t *testing.T) {
	var b strings.Builder
	_, empty, err := parseLinear("arg1,0,20,10")
	expect.OK(t, err)
	s := &HistogramSink{W: &b, Argument: Reference{index: 1}, Empty: empty}
	site := event().Site
	site.Layout = probe.NewLayout(site.Arguments, 0)
	bins, ok := s.Bins(site, false)
	expect.Equal(t, true, ok)
	expect.Equal(t, 5, bins.Count())
	s.Counted(site, []uint64{0, 1 << 63, math.MaxUint64, 0, 2, 7})
	expect.OK(t, s.Close())
	expect.Contains(t, b.String(), "[0, 10) 9223372036854775808 |@@@@@@@@@@@@@@@@@@@@@@@@@  ")
	expect.Contains(t, b.String(), "not counted: 2 hits that were made with an argument that could not be read")
	s.Dropped(site, 3)
	expect.Error(t, s.Close(), "the histogram lacks 3 hits")
	bins, ok = (&HistogramSink{Argument: Reference{name: "none"}}).Bins(site, false)
	expect.Equal(t, true, ok && bins == nil)
	unreadable := manyArguments().Site
	unreadable.Layout = probe.NewLayout(unreadable.Arguments, 0)
	bins, _ = (&HistogramSink{Argument: Reference{index: 3}}).Bins(unreadable, false)
	expect.Equal(t, 0, bins.Size)
}

// A filter is whole if trampolines can test all of it.
func TestConditions(t *testing.T) {
	site := event().Site
	site.Layout = probe.NewLayout(site.Arguments, 0)
	for text, want := range map[string]bool{
		"arg0 > 1": true, "arg0 > 1 && 7 >= arg1": true, "arg0 > 1 || arg0 < -1": false, "!(arg0 > 1)": false, `arg0 > 1 && arg2 == "x"`: false, "arg1 > -1": false,
		"arg9 == 1": false, "arg0 > 1 && tid == 1": false, "arg0 == arg1": false,
	} {
		_, isWhole := expect.Value(ParseFilter(text))(t).Conditions(site)
		expect.Equal(t, want, isWhole, "%s", text)
	}
}

func TestLines(t *testing.T) {
	var b bytes.Buffer
	s := &TextSink{W: &b}
	e := event()
	s.Event(e, NewClock())
	expect.Contains(t, b.String(), " 42 shop:orders:main:placed(-5, 7, \"tea\")\n")
	e.Process = &Process{ID: 7}
	s.Event(e, NewClock())
	e.Process = &Process{ID: 8}
	s.Event(e, NewClock())
	expect.Contains(t, b.String(), " 8/42 shop:orders:")
	expect.Equal(t, 1, strings.Count(b.String(), "/42 "))
	e.Texts[2] = Copied{Text: "caf\xc3", Cut: true}
	expect.Equal(t, `"caf"...`, quote(&e.Texts[2]))
	expect.Equal(t, `"a\x1b[31m\n"`, quote(&Copied{Text: "a\x1b[31m\n"}))
	expect.Equal(t, "(null)", formatValue(&e.Arguments[2], 0, &Copied{Unreadable: true}))
}

// A histogram of times forgets threads rather than grow without end, and says so; threads of two processes are two.
func TestThreadsBetween(t *testing.T) {
	var b bytes.Buffer
	s := expect.Value((&Summary{Name: "between", Value: "from,to"}).NewSink(&b))(t)
	from, to := event(), event()
	first, second := *from.Site, *to.Site
	first.Name, second.Name = "from", "to"
	from.Site, to.Site = &first, &second
	hit := func(e *Event, process int, thread int32, time uint64) {
		e.Process, e.Thread, e.Time = &Process{ID: process}, thread, newClockOnce.ticks+time
		s.Event(e, newClockOnce)
	}
	for i := range 3 * mostPairs {
		hit(from, 1, int32(i+1), uint64(i))
	}
	expect.Equal(t, true, len(s.(*BetweenSink).begun) <= mostPairs)
	hit(from, 1, 7, 1<<20)
	hit(to, 2, 7, 1<<21) // of another process
	hit(to, 1, 0, 1<<21)
	expect.Error(t, s.Close(), "nothing has reached")
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
		if sink == nil {
			sink = expect.Value((&Summary{Name: name, Value: value}).NewSink(&b))(t)
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

// Histograms by a key have one for each, and pairs are found by a key of both.
func TestSummariesByKeys(t *testing.T) {
	var b strings.Builder
	s := expect.Value((&Summary{Name: "hist", Value: "arg1", By: "arg2"}).NewSink(&b))(t)
	for _, text := range []string{"tea", "milk", "tea"} {
		e := event()
		e.Texts[2].Text = text
		s.Event(e, nil)
	}
	_, ok := s.(Counting).Bins(event().Site, false)
	expect.Equal(t, false, ok, "trampolines count by texts")
	expect.OK(t, s.Close())
	expect.Equal(t, "\"milk\" arg1\n              [4, 8)          1 |"+strings.Repeat("@", 50)+"|\n\"tea\" arg1\n              [4, 8)          2 |"+strings.Repeat("@", 50)+"|\n", b.String())
	s.(View).Clear()
	b.Reset()
	expect.OK(t, s.(View).Show())
	expect.Equal(t, "", b.String())

	s = expect.Value((&Summary{Name: "hist", Value: "arg1", By: "function"}).NewSink(&b))(t)
	site := event().Site
	site.Layout = probe.NewLayout(site.Arguments, 0)
	_, ok = s.(Counting).Bins(site, false)
	expect.Equal(t, true, ok, "trampolines count by functions")

	b.Reset()
	s = expect.Value((&Summary{Name: "between", Value: "from,to", By: "arg2", Pair: "arg0,arg1"}).NewSink(&b))(t)
	hit := func(name, text string, thread int32, values ...uint64) {
		e := event()
		site := *e.Site
		site.Name, site.Arguments = name, site.Arguments[:len(values)]
		e.Site, e.Process, e.Thread, e.Time, e.Values = &site, &Process{ID: int(thread)}, thread, newClockOnce.ticks+uint64(thread)*1000, values
		e.Texts[2].Text = text
		s.Event(e, newClockOnce)
	}
	hit("from", "tea", 1, 1, 1, 8)
	hit("from", "milk", 1, 1, 2, 8)
	hit("to", "", 2, 1, 2)
	hit("to", "", 3, 1, 2) // whose pair is complete
	hit("to", "", 4, 1, 1)
	hit("to", "", 5, 1) // without a key
	expect.OK(t, s.Close())
	expect.Equal(t, 1, strings.Count(b.String(), "\"milk\" nanoseconds\n"), "%s", &b)
	expect.Equal(t, 1, strings.Count(b.String(), "\"tea\" nanoseconds\n"), "%s", &b)
	expect.Equal(t, 2, strings.Count(b.String(), "          1 |@@@"), "%s", &b)
	expect.Contains(t, b.String(), "not counted: 1 hit that was made without a key\n")
	_, err := (&Summary{Name: "count", By: "arg12"}).NewSink(&b)
	expect.Equal(t, true, errors.Is(err, ErrFormat))
}

// Pairs of probes are slices: complete ones of one thread, and asynchronous ones from one thread to another. Other probes are instants.
func TestSlices(t *testing.T) {
	var b strings.Builder
	s := expect.Value((&Summary{Name: "between", Value: "from,to", Pair: "arg1"}).NewSink(&b))(t).(*BetweenSink)
	s.Slices = &PerfettoSink{W: &b}
	process := &Process{ID: 1 << 30, Name: "shop"}
	for i, hit := range []struct {
		name   string
		thread int32
	}{{"from", 1}, {"other", 1}, {"to", 1}, {"from", 1}, {"to", 2}, {"to", 2}} {
		e := event()
		site := *e.Site
		site.Name = hit.name
		e.Site, e.Process, e.Thread, e.Time = &site, process, hit.thread, newClockOnce.ticks+uint64(i)*1e6
		expect.Equal(t, true, s.Event(e, newClockOnce))
	}
	expect.OK(t, s.Close())
	var all []struct {
		Name, Ph string
		Tid, ID  int
		Ts, Dur  float64
	}
	expect.OK(t, json.Unmarshal([]byte(b.String()), &all))
	var got []string
	for _, one := range all {
		got = append(got, fmt.Sprintf("%s %s %d %d %t", one.Ph, one.Name, one.Tid, one.ID, one.Dur > 0))
	}
	expect.Equal(t, []string{
		"M process_name 0 0 false", "i shop:other 1 0 false", "X shop:from to to 1 0 true", "b shop:from to to 1 1 false", "e shop:from to to 2 1 false",
	}, got)
	expect.Equal(t, true, all[2].Ts < all[1].Ts)
}

// Counters are handed over once, whatever a program writes to them.
func TestHandOver(t *testing.T) {
	site := &probe.Site{Number: 1, Text: "a"}
	layout := NewCounterLayout(1, 2)
	memory := make(fakeMemory, layout.Length())
	var b strings.Builder
	c := &Collector{Sites: func() []*probe.Site { return []*probe.Site{site} }, Clock: newClockOnce, Sink: &CountSink{W: &b}}
	table := &Counters{CounterLayout: layout, Memory: memory, ForSink: true}
	c.AddCounters(table)
	for _, n := range []uint64{5, 7, 3, 4, math.MaxUint64} {
		memory.Store(layout.At(1), n)
		c.show()
		c.Sink.(*CountSink).Clear()
	}
	memory.Store(layout.At(1)+uint64(layout.Stride), 2) // of another ring
	c.Release(nil, []*Counters{table})
	expect.OK(t, c.Close())
	want := ""
	for _, n := range []uint64{5, 2, 0, 1, math.MaxUint64 - 4, 0} {
		want += fmt.Sprintf("%12d a\n", n)
	}
	expect.Equal(t, want, b.String())
}

// BenchmarkCollector reads the rings of two processors, and writes lines: an operation is an event.
func BenchmarkCollector(b *testing.B) {
	for _, sink := range []Sink{nil, &CountSink{W: io.Discard}, &TextSink{W: bufio.NewWriter(io.Discard)}} {
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
