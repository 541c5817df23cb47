package trace

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm64"
	"sdtconvert/image"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/testkit/expect"
)

// event makes an event of a probe with the arguments -5, 7 and "tea".
func event() *Event {
	signed, unsigned := arch.Operand{Size: 4, Signed: true}, arch.Operand{Size: 8}
	s := &Site{Probe: listing.Probe{Provider: "shop", Module: "orders", Function: "main", Name: "placed"}}
	s.Text = s.Probe.String()
	s.Arguments = []Argument{{Operand: signed}, {Operand: unsigned}, {Operand: unsigned, Format: Text}}
	minus := int64(-5)
	return &Event{Site: s, Thread: 42, Values: []uint64{uint64(minus), 7, 0x1000}, Texts: []Copied{{}, {}, {Text: "tea"}}}
}

func TestFilters(t *testing.T) {
	for text, want := range map[string]bool{
		"arg0 == -5": true, "arg0 < 0": true, "arg0 > 4000000000": false, "arg1 >= 7": true, "arg1 != 7": false,
		"arg0 < arg1": true, "arg1 > 0x6 && arg0 < 0": true, "arg1 > 7 || tid == 42": true, "!(arg1 > 7)": true, "! arg1 > 7": true,
		`arg2 == "tea"`: true, `arg2 != "milk"`: true, `"tea" <= arg2`: true, `name == "placed" && function == "main"`: true,
		"arg3 == 0": false, "!(arg3 == 0)": true, "arg1 < 18446744073709551615": true, "arg1>=7&&arg1<=7": true, "-1 < arg1": true,
	} {
		f, err := ParseFilter(text)
		expect.OK(t, err, "%s", text)
		expect.Equal(t, want, f.matches(event()), "%s", text)
	}
	for text, part := range map[string]string{
		"": "got \"\"", "arg0": "want ==", "arg0 = 1": "want ==", "arg0 > x": "want argN", "arg12 > 1": "want argN", "(arg0 > 1": "missing )",
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
		h.add(value)
	}
	for name, n := range map[string]int{"[0, 1)": 0, "[1, 2)": 1, "[2, 4)": 2, "[1M, 2M)": 21, "(-2, -1]": -1, "(-4, -2]": -2, "[4E, 8E)": 63} {
		expect.Equal(t, name, h.name(n))
	}
	expect.Equal(t, uint64(2), h.counts[2])
	_, linear, err := ParseLinear("arg0,-10,10,4")
	expect.OK(t, err)
	for value, name := range map[int64]string{-11: "(..., -10)", -10: "[-10, -6)", 9: "[6, 10)", 10: "[10, ...)", 0: "[-2, 2)"} {
		expect.Equal(t, name, linear.name(linear.rangeOf(value)), "%d", value)
	}
	for _, text := range []string{"arg0", "arg0,1,2", "arg0,2,1,1", "arg0,0,10,0", "arg0,0,1000000,1", "x,0,1,1", "arg0,a,1,1"} {
		_, _, err := ParseLinear(text)
		expect.Error(t, err, "", "%s", text)
	}
	var b strings.Builder
	s := HistogramSink{W: &b, Argument: 1}
	s.Event(event(), nil)
	expect.OK(t, s.Close())
	expect.Contains(t, b.String(), "shop:orders:main:placed arg1\n")
	expect.Contains(t, b.String(), "[4, 8)          1 |@@@")
}

func TestOperands(t *testing.T) {
	symbols := func(name string) (uint64, bool) { return 0x4000, name == "table" }
	x86 := &operandReader{threads: &amd64.Machine.Traits().Threads, address: symbols}
	rax, rbp := x86.threads.Registers()["rax"], x86.threads.Registers()["rbp"]
	none := arch.Operand{Base: -1, Index: -1}
	memory := func(size int, signed bool, base, index int, scale, value uint64) arch.Operand {
		return arch.Operand{Kind: arch.InMemory, Size: size, Signed: signed, Base: base, Index: index, Scale: scale, Value: value}
	}
	atSymbol := func(value uint64) arch.Operand {
		return arch.Operand{Kind: arch.InMemory, Size: 4, Base: -1, Index: -1, Scale: 1, Address: true, Value: value}
	}
	minus := func(n int64) uint64 { return uint64(-n) }
	for text, want := range map[string][]arch.Operand{
		"-4@%eax 1@%al": {
			{Kind: arch.InRegister, Size: 4, Signed: true, Base: rax, Index: -1, Scale: 1}, {Kind: arch.InRegister, Size: 1, Base: rax, Index: -1, Scale: 1},
		},
		"8@$-7":                 {{Kind: arch.Constant, Size: 8, Value: minus(7), Base: -1, Index: -1, Scale: 1}},
		"8@-24(%rbp)":           {memory(8, false, rbp, -1, 1, minus(24))},
		"-2@8(%rbp,%rax,4)":     {memory(2, true, rbp, rax, 4, 8)},
		"4@table(%rip)":         {atSymbol(0x4000)},
		"4@16+table-8(%rip)":    {atSymbol(0x4008)},
		"8@$table+1":            {{Kind: arch.Constant, Size: 8, Address: true, Value: 0x4001, Base: -1, Index: -1, Scale: 1}},
		"4@other(%rip) 4@%edx":  {none, {Kind: arch.InRegister, Size: 4, Base: x86.threads.Registers()["rdx"], Index: -1, Scale: 1}},
		"8f@%xmm0 3@%eax 8@%k1": {none, none, none},
		"":                      nil,
	} {
		expect.Equal(t, want, x86.read(text), "%s", text)
	}
	a64 := &operandReader{threads: &arm64.Machine{}.Traits().Threads, address: symbols}
	sp := a64.threads.SP
	expect.Equal(t, []arch.Operand{
		{Kind: arch.InRegister, Size: 8, Base: 24, Index: -1, Scale: 1}, memory(4, true, sp, -1, 1, 16), memory(8, false, sp, -1, 1, 0),
		{Kind: arch.Constant, Size: 4, Value: 5, Base: -1, Index: -1, Scale: 1},
	}, a64.read("8@x3 -4@[sp, 16] 8@[sp] 4@5"))
}

func TestFormats(t *testing.T) {
	word, small := arch.Operand{Kind: arch.InRegister, Size: 8}, arch.Operand{Kind: arch.InRegister, Size: 4}
	for typ, want := range map[string]Format{
		"char *": Text, "const char*": Text, "char **": Pointer, "struct shop *": Pointer, "_Bool": Boolean, "unsigned long": Number,
		"": Pointer, "string": Text, "char [16]": Text, "uintptr_t": Pointer,
	} {
		expect.Equal(t, want, formatOf(typ, &word, 8), "%s", typ)
	}
	expect.Equal(t, Number, formatOf("", &small, 8))
	var b bytes.Buffer
	s := &TextSink{W: &b}
	e := event()
	s.Event(e, newClock())
	expect.Contains(t, b.String(), " 42 shop:orders:main:placed(-5, 7, \"tea\")\n")
	e.Texts[2] = Copied{Text: "caf\xc3", Cut: true}
	expect.Equal(t, `"caf"...`, quote(&e.Texts[2]))
	expect.Equal(t, `"a\x1b[31m\n"`, quote(&Copied{Text: "a\x1b[31m\n"}))
	expect.Equal(t, "(null)", formatValue(&e.Arguments[2], 0, &Copied{Unreadable: true}))
}

// fakeMemory is memory that a program has written.
type fakeMemory []byte

func (m fakeMemory) ReadAt(b []byte, at int64) (int, error)  { return copy(b, m[at:]), nil }
func (m fakeMemory) WriteAt(b []byte, at int64) (int, error) { return copy(m[at:], b), nil }
func (m fakeMemory) load(at uint64) (uint64, error)          { return binary.LittleEndian.Uint64(m[at:]), nil }
func (m fakeMemory) store(at, value uint64) error {
	binary.LittleEndian.PutUint64(m[at:], value)
	return nil
}

// Whatever a program writes into its rings, the reader neither fails nor reads without end, and events that are whole are
// read once.
func TestHostileRings(t *testing.T) {
	site := &Site{Number: 1, Arguments: []Argument{{Operand: arch.Operand{Size: 8}, Format: Text}, {Operand: arch.Operand{Size: 4, Kind: arch.InMemory, Base: 8, Index: -1}}}}
	site.layout = newEventLayout(site.Arguments, 0)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		ring := arch.Ring{Count: 2, Slots: 8, Size: site.layout.size, Stride: arch.RingHeader + 8*site.layout.size}
		memory := make(fakeMemory, ringLength(ring))
		c := &collector{sites: func() []*Site { return []*Site{site} }, clock: newClockOnce, sink: &CountSink{}}
		collected := &collectedRing{newRingReader(ring, memory, binary.LittleEndian), 1, 1}
		for range 50 {
			for range r.IntN(40) {
				at := r.IntN(len(memory)/8) * 8
				if r.IntN(2) == 0 {
					at = r.IntN(2)*int(ring.Stride) + 8*r.IntN(3)
				}
				value := []uint64{r.Uint64(), uint64(r.IntN(20)), uint64(r.IntN(20))<<32 | 1, 0, ^uint64(0)}[r.IntN(5)]
				memory.store(uint64(at), value)
			}
			if n := c.drain(collected, r.IntN(2) == 0); n > 2*8 {
				t.Fatalf("seed %d: %d events of rings with room for 16", seed, n)
			}
		}
	}
}

var newClockOnce = newClock()

// Events come in order, each once, also when the ring has gone round.
func TestRing(t *testing.T) {
	ring := arch.Ring{Count: 1, Slots: 4, Size: 64, Stride: arch.RingHeader + 4*64}
	memory := make(fakeMemory, ringLength(ring))
	reader := newRingReader(ring, memory, binary.LittleEndian)
	write := func(position uint64) {
		at := arch.RingHeader + position%4*64
		memory.store(at+arch.EventTime, position*10)
		memory.store(at, position<<32|3)
	}
	var got []uint64
	read := func(last bool) {
		reader.read(last, func(site uint32, event []byte) {
			expect.Equal(t, uint32(3), site)
			got = append(got, binary.LittleEndian.Uint64(event[arch.EventTime:])/10)
		})
	}
	for position := range uint64(10) {
		memory.store(0, position+1)
		read(false) // not yet whole
		write(position)
		read(false)
	}
	expect.Equal(t, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got)
	memory.store(0, 12) // 10 is never finished
	write(11)
	read(false)
	expect.Equal(t, 10, len(got))
	read(true)
	expect.Equal(t, uint64(11), got[10])
	expect.Equal(t, uint64(1), reader.abandoned)
}

func TestAddressSpace(t *testing.T) {
	s := newAddressSpace([]image.Mapping{
		{Start: 0x5555_5555_0000, End: 0x5555_5556_0000}, {Start: 0x5555_5560_0000, End: 0x5555_5570_0000, Path: "[heap]"},
		{Start: 0x7fff_f000_0000, End: 0x7fff_f002_0000, Path: "[stack]"},
	}, 4096, 0x5555_5560_0000)
	for _, c := range []struct {
		start uint64
		want  bool
	}{
		{0x5555_5555_0000, false}, {0x5555_5554_f000, true}, {0x5555_5556_0000, true}, {0x5555_5570_0000, false},
		{0x5555_5570_0000 + heapRoom, true}, {0x7fff_efff_f000, false}, {0x7fff_e000_0000 - 4096, true}, {0, false}, {highest, false},
	} {
		expect.Equal(t, c.want, s.isFree(c.start, c.start+4096), "%#x", c.start)
	}
	expect.Equal(t, uint64(0x5555_5540_0000), s.near(0x5555_5555_8000, 1<<20, 1<<30))
	expect.Equal(t, uint64(0), s.near(0x1000_0000_0000, 1<<20, 1<<20))
}
