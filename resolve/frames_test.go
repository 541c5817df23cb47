package resolve

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// frameWriter writes .eh_frame.
type frameWriter struct {
	layout elfreloc.Encoding
	long   bool // lengths of 64 bits
	data   []byte
}

func (w *frameWriter) u(n int, v uint64) {
	var b [8]byte
	switch {
	case n == 1:
		b[0] = byte(v)
	case n == 2:
		w.layout.Order.PutUint16(b[:], uint16(v))
	case n == 4:
		w.layout.Order.PutUint32(b[:], uint32(v))
	default:
		w.layout.Order.PutUint64(b[:], v)
	}
	w.data = append(w.data, b[:n]...)
}

// entry writes a CIE or FDE and returns where it starts.
func (w *frameWriter) entry(body func()) int {
	start := len(w.data)
	if w.long {
		w.u(4, 0xffffffff)
		w.u(8, 0)
	} else {
		w.u(4, 0)
	}
	from := len(w.data)
	body()
	length := uint64(len(w.data) - from)
	if w.long {
		w.layout.Order.PutUint64(w.data[start+4:], length)
	} else {
		w.layout.Order.PutUint32(w.data[start:], uint32(length))
	}
	return start
}

func (w *frameWriter) cie(version byte, augmentation string, data ...byte) int {
	return w.entry(func() {
		w.u(4, 0)
		w.data = append(w.data, version)
		w.data = append(append(w.data, augmentation...), 0)
		w.data = append(w.data, 1, 0x78, 16) // alignment of code and data, return address
		if augmentation != "" {
			w.data = append(append(w.data, byte(len(data))), data...)
		}
		w.data = append(w.data, 0, 0, 0) // DW_CFA_nop
	})
}

// fde writes an FDE with pointers of some size.
func (w *frameWriter) fde(cie, size int, start, length uint64, augmented bool) {
	w.entry(func() {
		w.u(4, uint64(len(w.data)-cie))
		w.u(size, start)
		w.u(size, length)
		if augmented {
			w.u(1, 0)
		}
	})
}

var layouts = map[string]elfreloc.Encoding{
	"64 little": {Class: elf.ELFCLASS64, Order: binary.LittleEndian},
	"64 big":    {Class: elf.ELFCLASS64, Order: binary.BigEndian},
	"32 little": {Class: elf.ELFCLASS32, Order: binary.LittleEndian},
	"32 big":    {Class: elf.ELFCLASS32, Order: binary.BigEndian},
}

func TestFrames(t *testing.T) {
	const addr = 0x10000
	for name, layout := range layouts {
		for _, long := range []bool{false, true} {
			w := &frameWriter{layout: layout, long: long}
			field := func() uint64 { // of the first pointer of the next FDE
				return addr + uint64(len(w.data)) + map[bool]uint64{false: 8, true: 16}[long]
			}
			cie := w.cie(1, "")
			w.fde(cie, layout.Word(), 0x2000, 0x10, false)
			cie = w.cie(3, "zR", 0x1b) // pcrel, sdata4
			w.fde(cie, 4, 0x3000-field(), 0x20, true)
			w.fde(cie, 4, 0x40000-field(), 0x21, true)
			w.u(4, 0) // the end, and another file's entries behind it
			cie = w.cie(1, "zPLR", 0x9b, 1, 2, 3, 4, 0x1b, 0x03)
			w.fde(cie, 4, 0x5000, 0x30, true)
			cie = w.cie(1, "zRSB", 0x04)
			w.fde(cie, 8, 0x6000, 0x40, true)
			cie = w.cie(1, "zPR", 0xff, 0x12) // no personality; pcrel, udata2
			w.fde(cie, 2, 0x10ff0-field(), 0x50, true)
			for n := range layout.Word() { // an aligned personality, wherever a CIE begins
				begin := len(w.data) + map[bool]int{false: 17, true: 25}[long]
				data := bytes.Repeat([]byte{0x77}, 1+(-(begin+1)&(layout.Word()-1))+layout.Word())
				data[0] = 0x50
				w.fde(w.cie(1, "zPR", append(data, 0x03)...), 4, 0x7000+0x100*uint64(n), 0x60, true)
			}
			want := []frame{{0x2000, 0x10, 0}, {0x3000, 0x20, 0}, {0x40000, 0x21, 0}, {0x5000, 0x30, 0}, {0x6000, 0x40, 0}, {0x10ff0, 0x50, 0}}
			for n := range layout.Word() {
				want = append(want, frame{0x7000 + 0x100*uint64(n), 0x60, 0})
			}
			got, _, err := parseFrames(w.data, addr, layout, false)
			if diff := gocmp.Diff(want, got, cmpopts.EquateComparable(frame{})); diff != "" || err != nil {
				t.Errorf("%s, long lengths %v: %v\n%s", name, long, err, diff)
			}
			got, _, err = parseFrames(w.data, addr, layout, true)
			if diff := gocmp.Diff(want[:3], got, cmpopts.EquateComparable(frame{})); diff != "" || err != nil {
				t.Errorf("%s, long lengths %v, up to the end: %v\n%s", name, long, err, diff)
			}
		}
	}
}

// What makes no sense is said, with what came before it kept.
func TestBadFrames(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(w *frameWriter)
		want  string
	}{
		{"a length beyond the end", func(w *frameWriter) { w.u(4, 5); w.u(4, 0) }, "0x5 bytes, 0x4 are left"},
		{"a long length beyond the end", func(w *frameWriter) { w.u(4, 0xffffffff); w.u(8, 1<<63); w.u(4, 0) }, "0x8000000000000000 bytes, 0x4 are left"},
		{"half a length", func(w *frameWriter) { w.u(2, 5) }, "0x4 bytes, 0x2 are left"},
		{"half an ID", func(w *frameWriter) { w.u(4, 2); w.u(2, 0) }, "0x4 bytes, 0x2 are left"},
		{"no CIE", func(w *frameWriter) { w.fde(len(w.data)-4, 8, 1, 1, false) }, "no CIE 0x8 bytes before the pointer to it"},
		{"a CIE that is an FDE", func(w *frameWriter) {
			w.fde(0, 8, 1, 1, false)
			w.fde(len(w.data)-24, 8, 1, 1, false)
		}, "no CIE"},
		{"a CIE behind it", func(w *frameWriter) { w.fde(len(w.data)+24, 8, 1, 1, false); w.cie(1, "") }, "no CIE"},
		{"an unknown version", func(w *frameWriter) { w.cie(4, "") }, "CIE of version 4"},
		{"an old augmentation", func(w *frameWriter) { w.cie(1, "eh") }, `CIE of augmentation "eh"`},
		{"an unknown augmentation", func(w *frameWriter) { w.cie(1, "zQ", 0) }, `CIE of augmentation 'Q'`},
		{"an indirect pointer", func(w *frameWriter) { w.cie(1, "zR", 0x9b) }, "pointer encoding 0x9b"},
		{"an omitted pointer", func(w *frameWriter) { w.cie(1, "zR", 0xff) }, "pointer encoding 0xff"},
		{"a pointer relative to data", func(w *frameWriter) { w.cie(1, "zR", 0x3b) }, "pointer encoding 0x3b"},
		{"a LEB128 pointer", func(w *frameWriter) { w.cie(1, "zR", 0x01) }, "pointer encoding 0x1"},
		{"a personality cut off", func(w *frameWriter) { w.cie(1, "zPR", 0x04, 0x1b) }, "0x8 bytes, 0x1 are left"},
		{"no encoding", func(w *frameWriter) { w.cie(1, "zR") }, "0x1 bytes, 0x0 are left"},
		{"an FDE cut off", func(w *frameWriter) { w.entry(func() { w.u(4, uint64(len(w.data))); w.u(8, 0) }) }, "0x8 bytes, 0x0 are left"},
		{"augmentation data cut off", func(w *frameWriter) {
			cie := w.cie(1, "zR", 0x03)
			w.entry(func() { w.u(4, uint64(len(w.data)-cie)); w.u(4, 1); w.u(4, 1); w.u(1, 9) })
		}, "0x9 bytes, 0x0 are left"},
		{"an endless LEB128", func(w *frameWriter) {
			w.entry(func() {
				w.data = append(w.data, append([]byte("\x00\x00\x00\x00\x01z\x00\x01\x78\x10"), strings.Repeat("\xff", 20)...)...)
			})
		}, "a LEB128 of more than 64 bits"},
		{"an augmentation without end", func(w *frameWriter) { w.entry(func() { w.data = append(w.data, "\x00\x00\x00\x00\x01zR"...) }) }, "a string without end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &frameWriter{layout: layouts["64 little"]}
			w.fde(w.cie(1, ""), 8, 0x1000, 0x10, false)
			c.write(w)
			frames, _, err := parseFrames(w.data, 0, w.layout, false)
			expect.Error(t, err, c.want)
			if len(frames) == 0 || frames[0] != (frame{0x1000, 0x10, 0}) {
				t.Errorf("the frame before it is lost: %v", frames)
			}
		})
	}
}

func FuzzFDEs(f *testing.F) {
	for _, layout := range layouts {
		w := &frameWriter{layout: layout}
		w.fde(w.cie(1, ""), layout.Word(), 0x1000, 0x10, false)
		w.fde(w.cie(3, "zPLR", 0x9b, 1, 2, 3, 4, 0x1b, 0x1b), 4, 0x1000, 0x10, true)
		w.u(4, 0)
		f.Add(w.data, uint64(0x10000), layout.Class == elf.ELFCLASS64, layout.Order == binary.ByteOrder(binary.BigEndian), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, addr uint64, is64, big, stop bool) {
		layout := elfreloc.Encoding{Class: elf.ELFCLASS32, Order: binary.LittleEndian}
		if is64 {
			layout.Class = elf.ELFCLASS64
		}
		if big {
			layout.Order = binary.BigEndian
		}
		frames, off, err := parseFrames(data, addr, layout, stop)
		if len(frames) > len(data)/8 || err != nil && off >= len(data) {
			t.Errorf("%d frames of %d bytes, error at %#x", len(frames), len(data), off)
		}
		code := elfreloc.Code{{Start: 0, End: 1 << 16}, {Start: 1 << 20, End: 1 << 40}}
		spans := makeSpans(code, frameEntries(code, frames))
		for _, f := range frames {
			if e := spans.find(0, f.start); e != nil && e.start > f.start {
				t.Errorf("%#x is in the frame at %#x", f.start, e.start)
			} else if e == nil && f.size > 0 && code.Find(0, f.start) >= 0 {
				t.Errorf("%#x is in no frame", f.start)
			}
		}
	})
}

// TestSymbolsBesideUnwindTables looks addresses up of a table of symbols and of functions that
// unwind tables describe.
func TestSymbolsBesideUnwindTables(t *testing.T) {
	o := objects.Open(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	e := expect.Value(o.Edit())(t)
	text := e.AddSection(elfreloc.NewSection{Name: ".text.more", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: make([]byte, 64)})
	symbol := func(name string, typ elf.SymType, start, size uint64) {
		e.AddSymbol(elfreloc.Symbol{Name: name, Bind: elf.STB_GLOBAL, Type: typ, Section: text, Value: start, Size: size})
	}
	symbol("sized", elf.STT_FUNC, 8, 8)
	symbol("label", elf.STT_NOTYPE, 12, 0)
	symbol("unsized", elf.STT_FUNC, 24, 0)
	symbol("entry", elf.STT_NOTYPE, 40, 0)
	symbol("function", elf.STT_FUNC, 52, 0)
	data := objects.Save(t, e, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	o = expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "a.o"))(t)
	text = objects.Section(t, o, ".text.more")
	code := expect.Value(o.Code())(t)
	for _, c := range []struct {
		frames []frame
		want   map[uint64]string
	}{
		{nil, map[uint64]string{4: "", 8: "sized", 15: "sized", 16: "", 24: "unsized ?", 39: "unsized ?", 40: "entry ?", 60: "function ?"}},
		// A function without a name, one that a symbol without a size begins, and one with labels.
		{[]frame{{0, 8, frameWhole}, {24, 8, frameWhole}, {36, 12, frameWhole}, {48, 16, frameWhole}}, map[uint64]string{
			4: "sub_0", 8: "sized", 24: "unsized", 31: "unsized", 32: "", 36: "sub_24", 40: "sub_24", 47: "sub_24", 48: "sub_30", 51: "sub_30", 52: "function ?", 60: "function ?",
		}},
		{[]frame{{24, 24, frameWhole}}, map[uint64]string{30: "unsized", 40: "unsized", 47: "unsized", 48: "entry ?", 60: "function ?"}},
		// Indexes tell where functions begin alone.
		{[]frame{{0, 0, frameIndexed}, {8, 0, frameIndexed}, {20, 0, frameIndexed}, {24, 0, frameIndexed}}, map[uint64]string{
			4: "sub_0 ?", 8: "sized", 16: "", 20: "sub_14 ?", 30: "unsized ?", 44: "entry ?",
		}},
	} {
		table := expect.Value(New(o, Options{}))(t)
		s := spans{}
		if c.frames != nil {
			var local elfreloc.Code
			for _, r := range code {
				if r.Section == text {
					r.Section = 0
					local = elfreloc.Code{r}
				}
			}
			s = makeSpans(local, frameEntries(local, c.frames))
			s = inSection(s, code, text)
		}
		table.unwound = func() *spans { return &s }
		for off, want := range c.want {
			f, ok := table.Lookup(text, off)
			got := f.Name
			if f.Unsized {
				got += " ?"
			}
			expect.Equal(t, want, got, "%d with %v", off, c.frames)
			expect.Equal(t, want != "", ok, "%d with %v", off, c.frames)
		}
	}
}

// inSection moves spans of one code range to that of a section among others.
func inSection(s spans, code elfreloc.Code, section int) spans {
	moved := spans{code: code, ranges: make([][]held, len(code)), entries: s.entries}
	for i := range code {
		if code[i].Section != section {
			continue
		}
		moved.ranges[i] = s.ranges[0]
		for j := range moved.entries {
			moved.entries[j].code = i
		}
	}
	return moved
}

// What spans find is what a search through all entries finds.
func TestSpansAgreeWithASlowSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	code := elfreloc.Code{{Start: 10, End: 70}, {Start: 70, End: 100}, {Section: 3, End: 40}}
	for range 2000 {
		var entries []entry
		for range r.IntN(12) {
			c := r.IntN(len(code))
			start := code[c].Start + r.Uint64N(code[c].End-code[c].Start)
			entries = append(entries, entry{start: start, size: 1 + r.Uint64N(40), symbol: uint32(len(entries)), code: c, rank: uint8(r.Uint32N(4))})
		}
		slices.SortFunc(entries, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank), cmp.Compare(a.symbol, b.symbol))
		})
		s := makeSpans(code, entries)
		for c := range code {
			for off := code[c].Start; off < code[c].End; off++ {
				var want *entry
				for i := range entries {
					e := &entries[i]
					if e.code == c && off >= e.start && off-e.start < e.size && (want == nil || e.start > want.start) {
						want = e
					}
				}
				if got := s.find(code[c].Section, off); got != want {
					t.Fatalf("%v: %d+%d is in %+v, want %+v", entries, code[c].Section, off, got, want)
				}
			}
		}
	}
}

// A million functions within each other, which all end at once, or all start at
// once, cost no look-up more than others do: else this test would not end.
func TestDeepNesting(t *testing.T) {
	const n = 1 << 20
	code := elfreloc.Code{{End: 4 * n}}
	for name, nested := range map[string]func(i int) entry{
		"one end":   func(i int) entry { return entry{start: uint64(i), size: uint64(2*n - i)} },
		"one start": func(i int) entry { return entry{size: uint64(i) + 1} },
		"pyramid":   func(i int) entry { return entry{start: uint64(i), size: uint64(2*n - 2*i)} },
	} {
		var entries []entry
		for i := range n {
			entries = append(entries, nested(i))
		}
		s := makeSpans(code, entries)
		for off := range uint64(4 * n) {
			if e := s.find(0, off); e != nil && off-e.start >= e.size {
				t.Fatalf("%s: %d is in %+v", name, off, e)
			}
		}
	}
}

func TestFold(t *testing.T) {
	const uniq = ".__uniq.161155198394018592638118035658190273149"
	for _, c := range []struct{ raw, want string }{
		{"f", "f"}, {"f.cold", "f"}, {"f.cold.12", "f"}, {"f.part.0", "f"}, {"f.isra.0", "f"}, {"f.constprop.3", "f"},
		{"f.lto_priv.0", "f"}, {"f.llvm.17438574835839372", "f"}, {"f.__part.1", "f"},
		{"f.constprop.0.isra.0.cold", "f"}, {"f.isra.0.part.1.cold.2", "f"}, {"f.llvm.12.cold", "f"},
		{"_ZN1a1fEv.isra.0.cold", "_ZN1a1fEv"}, {"f.g.isra.0", "f.g"},
		{"_ZL1fi" + uniq, "f"}, {"_ZL6helperP4pair" + uniq + ".llvm.1.cold", "helper"}, {"f" + uniq, "f"},
		{"_ZL9fi" + uniq, "_ZL9fi"}, {"_ZL0" + uniq, "_ZL0"}, {"_ZL99999999999999999999f" + uniq, "_ZL99999999999999999999f"},
		{"_ZL1fi", "_ZL1fi"}, {"_ZL1fi.cold", "_ZL1fi"},
		// What only looks alike.
		{"", ""}, {".", "."}, {".cold", ".cold"}, {"cold", "cold"}, {".part.0", ".part.0"}, {"part.0", "part.0"}, {"f.1", "f.1"},
		{"f.part", "f.part"}, {"f.part.x", "f.part.x"}, {"f.part.1x", "f.part.1x"}, {"f.part.", "f.part."}, {"f.colder", "f.colder"},
		{"f.cold.x", "f.cold.x"}, {"f.parts.0", "f.parts.0"}, {"f.__uniq", "f.__uniq"}, {"f._omp_fn.0", "f._omp_fn.0"},
		{"main.init.0", "main.init.0"}, {"main.part.func1", "main.part.func1"}, {"f.cold.isra", "f.cold.isra"},
	} {
		expect.Equal(t, c.want, fold(c.raw, false), "%q", c.raw)
	}
}

// In Go, p.cold is a function. C code in a Go program has clones all the same.
func TestFoldInGo(t *testing.T) {
	for raw, want := range map[string]string{"p.cold": "p.cold", "p.T.cold": "p.T.cold", "f.isra.0": "f", "f.cold.0": "f"} {
		expect.Equal(t, want, fold(raw, true), "%q", raw)
	}
}

func TestDemangle(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "main": "main", "_Z": "_Z", "_Zzz": "_Zzz", "_R": "_R", "_RUNTIME": "_RUNTIME",
		"_ZN4pool5Arena5resetEPKcj":                           "pool::Arena::reset(char const*, unsigned int)",
		"_ZNSt6vectorIiSaIiEE9push_backEOi":                   "std::vector<int, std::allocator<int> >::push_back(int&&)",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE":      "core::fmt::Formatter::pad",
		"_RNvCs1234_7mycrate3foo":                             "mycrate::foo",
		"_ZN1a1fEv.cold":                                      "a::f() [clone .cold]",
		"_Z" + strings.Repeat("1", maxMangled):                "_Z" + strings.Repeat("1", maxMangled),
		"_Z1f" + strings.Repeat("P", 100_000) + "i":           "_Z1f" + strings.Repeat("P", 100_000) + "i",
		"_Z1fIiE" + strings.Repeat("X", maxMangled/2) + "vi.": "_Z1fIiE" + strings.Repeat("X", maxMangled/2) + "vi.",
	} {
		if got := Demangle(name); got != want {
			t.Errorf("%.80q is demangled to %.200q, want %.80q", name, got, want)
		}
	}
}

// Names made to blow a demangler up take no room, and an end.
func TestDemangleIsBounded(t *testing.T) {
	doubled := "_Z1fI" // f<X<X<...>, X<...>>>: each substitution is twice the last
	for i := range 30 {
		doubled += "1XI" + map[bool]string{true: "i", false: "S" + strings.ToUpper(string(rune('0'+i%10))) + "_"}[i == 0]
	}
	const n = maxMangled - 16
	for _, name := range []string{
		doubled,
		"_Z1f" + strings.Repeat("P", n), "_Z1f" + strings.Repeat("P", n) + "i", "_Z1f" + strings.Repeat("F", n),
		"_Z1f" + strings.Repeat("1XI", n/3), "_ZN" + strings.Repeat("1a", n/2) + "E", "_Z1fIJ" + strings.Repeat("J", n),
		"_Z" + strings.Repeat("Z", n), "_Z1fDT" + strings.Repeat("pl", n/2), "_Z1f" + strings.Repeat("A1_", n/3) + "i",
		"_Z1f" + strings.Repeat("i", n/4) + strings.Repeat("S_", n/4), "_Z1fPFii" + strings.Repeat("S0_", n/3),
		"_R" + strings.Repeat("Nv", n/2), "_RINv" + strings.Repeat("T", n), "_RNvC1a1b" + strings.Repeat("B_", n/2),
	} {
		if got := Demangle(name); len(got) > 1<<20 {
			t.Errorf("%.40q becomes %d bytes", name, len(got))
		}
	}
}

func FuzzDemangle(f *testing.F) {
	f.Add("_ZNSt6vectorIiSaIiEE9push_backEOi")
	f.Add("_RNvCs1234_7mycrate3foo")
	f.Add("_ZL6helperP4pair.__uniq.12.llvm.1.cold")
	f.Fuzz(func(t *testing.T, name string) {
		if got := Demangle(name); len(got) > len(name)+1<<20 {
			t.Errorf("%q becomes %d bytes", name, len(got))
		}
		if got := fold(name, false); !strings.HasPrefix(name, got) && !strings.HasPrefix(name, "_ZL") || got == "" && name != "" {
			t.Errorf("%q is folded to %q", name, got)
		}
	})
}
