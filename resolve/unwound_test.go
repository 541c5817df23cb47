package resolve

import (
	"bytes"
	"debug/elf"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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
