package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

func TestPatchesAreWritten(t *testing.T) {
	data := twoAndFour().bytes()
	f, _ := edited(t, data, func(e *elfreloc.Edit) {
		expect.OK(t, e.Patch(imageText, elfreloc.Patch{Offset: 3, Old: []byte{0, 0}, New: []byte{1, 2}}))
		expect.OK(t, e.Patch(imageText, elfreloc.Patch{Offset: 0, Old: []byte{0}, New: []byte{9}}))
		expect.OK(t, e.Patch(imageText, elfreloc.Patch{Offset: 63, Old: []byte{0}, New: []byte{7}}))
	})
	want := make([]byte, 64)
	want[0], want[3], want[4], want[63] = 9, 1, 2, 7
	expect.Equal(t, want, expect.Value(f.Section(".text").Data())(t))
}

// The bytes of the file are compared when they are patched, not as they were when the patch was planned; bytes that another patch
// has changed are not those of the file.
func TestPatchesWantTheOldBytes(t *testing.T) {
	e := expect.Value(objects.Open(t, twoAndFour().bytes()).Edit())(t)
	expect.OK(t, e.Patch(imageText, elfreloc.Patch{Offset: 6, Old: []byte{0, 0}, New: []byte{1, 1}}))
	for want, patch := range map[string]elfreloc.Patch{
		"a.o: .text+0x6: got byte 0x01, want 0x00: the file was changed while it was read":          {Offset: 3, Old: make([]byte, 4), New: make([]byte, 4)},
		"a.o: .text+0x9: got byte 0x00, want 0x55: the file was changed while it was read":          {Offset: 8, Old: []byte{0, 0x55}, New: []byte{1, 1}},
		"a.o: .text+0x3f: a change of 2 bytes in a section with 64 bytes of contents":               {Offset: 63, Old: []byte{0, 0}, New: []byte{1, 1}},
		"a.o: .text+0xffffffffffffffff: a change of 1 bytes in a section with 64 bytes of contents": {Offset: 1<<64 - 1, Old: []byte{0}, New: []byte{1}},
	} {
		wantFault(t, e.Patch(imageText, patch), want)
	}
}

func TestAPatchMustKeepTheLength(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	e := expect.Value(objects.Open(t, twoAndFour().bytes()).Edit())(t)
	_ = e.Patch(imageText, elfreloc.Patch{Offset: 0, Old: []byte{0}, New: nil})
}

func TestRelocationsAreSetDeletedAndAdded(t *testing.T) {
	f, _ := edited(t, twoAndFour().bytes(), func(e *elfreloc.Edit) {
		rels := expect.Value(e.Object().RelocSections())(t)
		e.SetRelocation(rels[0], 1, elfreloc.Relocation{Offset: 8, Sym: 6, Type: 1})
		e.DeleteRelocation(rels[0], 2)
		e.DeleteRelocation(rels[0], 4)
		sym := e.AddSymbol(elfreloc.Symbol{Name: "new", Bind: elf.STB_LOCAL})
		expect.OK(t, e.AddRelocation(imageText, elfreloc.Relocation{Offset: 56, Sym: sym, Type: 1}))
	})
	expect.Equal(t, []string{"", "g6", "g3", "g5", "g6", "new"}, relocNames(t, f))
}

// Sections of several blocks change in each of them, and where two meet.
func TestChangesInEachBlock(t *testing.T) {
	const entry, extra = 24, 3
	m := twoAndFour()
	m.extra = []imageSection{{name: ".extra", typ: elf.SHT_PROGBITS, data: make([]byte, 3*elfreloc.BlockSize)}}
	m.relocs = make([]uint32, 3*elfreloc.BlockSize/entry)
	for i := range m.relocs {
		m.relocs[i] = uint32(1 + i%6)
	}
	before := expect.Value(objects.Open(t, m.bytes()).Symbols())(t)
	data, names := make([]byte, 3*elfreloc.BlockSize), make([]string, len(m.relocs))
	for i, sym := range m.relocs {
		names[i] = before.Name(int(sym))
	}
	f, _ := edited(t, m.bytes(), func(e *elfreloc.Edit) {
		e.AddSymbol(elfreloc.Symbol{Name: "new", Bind: elf.STB_LOCAL}) // which moves the globals
		rels := expect.Value(e.Object().RelocSections())(t)
		for _, i := range []int{0, elfreloc.BlockSize/entry - 1, elfreloc.BlockSize / entry, 2*elfreloc.BlockSize/entry + 7, len(m.relocs) - 1} {
			e.SetRelocation(rels[0], i, elfreloc.Relocation{Offset: uint64(8 * i), Sym: 6, Type: 1})
			names[i] = before.Name(6)
		}
		for _, off := range []int{5, elfreloc.BlockSize - 1, 2*elfreloc.BlockSize + 3} {
			expect.OK(t, e.Patch(extra, elfreloc.Patch{Offset: uint64(off), Old: []byte{0, 0}, New: []byte{1, 2}}))
			data[off], data[off+1] = 1, 2
		}
	})
	expect.Equal(t, true, bytes.Equal(data, expect.Value(f.Section(".extra").Data())(t)), "patches")
	expect.Equal(t, names, relocNames(t, f))
}

func TestAddRelocationWantsARelocationSection(t *testing.T) {
	e := expect.Value(objects.Open(t, twoAndFour().bytes()).Edit())(t)
	wantFault(t, e.AddRelocation(3, elfreloc.Relocation{}), "a.o: .symtab: has no relocation section")
}

func TestAppendGrowsASection(t *testing.T) {
	f, _ := edited(t, twoAndFour().bytes(), func(e *elfreloc.Edit) {
		if a, b := e.Append(imageText, []byte{1, 2}), e.Append(imageText, []byte{3}); a != 64 || b != 66 {
			t.Errorf("appended at %d and %d", a, b)
		}
	})
	expect.Equal(t, append(make([]byte, 64), 1, 2, 3), expect.Value(f.Section(".text").Data())(t))
	expect.Equal(t, []string{"", "l1", "l2", "g3", "g4", "g5", "g6"}, relocNames(t, f), "what stands behind it")
}

// The section has no bytes, and nothing else moves.
func TestEmptiedSections(t *testing.T) {
	data := twoAndFour().bytes()
	before, _ := edited(t, data, func(*elfreloc.Edit) {})
	after, _ := edited(t, data, func(e *elfreloc.Edit) { e.Empty(imageText) })
	for i, s := range after.Sections {
		want := before.Sections[i].SectionHeader
		if i == imageText {
			want.Size, want.FileSize = 0, 0
		}
		expect.Equal(t, want, s.SectionHeader, "section %d", i)
	}
}

func TestAnEditWithoutChangesGivesTheSameBytes(t *testing.T) {
	data := twoAndFour().bytes()
	_, result := edited(t, data, func(e *elfreloc.Edit) {
		if e.Changed() {
			t.Error("an edit begins changed")
		}
	})
	if !bytes.Equal(data, result) {
		t.Error("other bytes")
	}
}

func TestNewSectionsJoinTheGroupOfTheirText(t *testing.T) {
	m := twoAndFour()
	m.extra = []imageSection{{name: ".group", typ: elf.SHT_GROUP, data: []byte{1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, info: 3, usesSymtab: true}}
	f, _ := edited(t, m.bytes(), func(e *elfreloc.Edit) {
		e.AddSection(elfreloc.NewSection{Name: "in", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 1, Data: []byte{1}, Relocs: true, Rela: true, GroupOf: imageText})
		e.AddSection(elfreloc.NewSection{Name: "out", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 1, Data: []byte{1}})
	})
	group := []byte{1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0}
	expect.Equal(t, group, expect.Value(f.Section(".group").Data())(t))
	for name, want := range map[string]elf.SectionFlag{
		"in": elf.SHF_ALLOC | elf.SHF_GROUP, ".relain": elf.SHF_GROUP | elf.SHF_INFO_LINK, "out": elf.SHF_ALLOC,
	} {
		if got := f.Section(name).Flags; got != want {
			t.Errorf("%s: flags %v, want %v", name, got, want)
		}
	}
	if rel := f.Section(".relain"); rel.Info != 7 || f.Sections[rel.Link].Type != elf.SHT_SYMTAB || rel.Entsize != 24 || rel.Addralign != 8 {
		t.Errorf(".relain: %+v", rel.SectionHeader)
	}
}

// A 32-bit object has its own sizes, and a big-endian one its own order.
func TestNewSectionsInEveryClassAndOrder(t *testing.T) {
	for _, m := range everyImage() {
		f, _ := edited(t, m.bytes(), func(e *elfreloc.Edit) {
			sec := e.AddSection(elfreloc.NewSection{Name: "new", Type: elf.SHT_PROGBITS, Align: 4, Data: make([]byte, 8), Relocs: true, Rela: !m.rel})
			r := elfreloc.Relocation{Offset: 4, Sym: e.SectionSymbol(sec), Type: 2, Addend: -3}
			expect.OK(t, e.AddRelocation(sec, r))
		})
		name := map[bool]string{true: ".relnew", false: ".relanew"}[m.rel]
		want := elfreloc.Relocation{Offset: 4, Sym: 2, Type: 2, Addend: -3}
		if m.rel {
			want.Addend, want.Implicit = 0, true
		}
		expect.Equal(t, []elfreloc.Relocation{want}, rawRelocs(f, f.Section(name)), "%v %v", f.Class, f.ByteOrder)
	}
}

// Symbols change their places in a table that is longer than a block, as in one that is not.
func TestSymbolsOfALongTable(t *testing.T) {
	for _, class := range []elf.Class{elf.ELFCLASS32, elf.ELFCLASS64} {
		m := &image{class: class, order: everyImage()[0].order, relocs: []uint32{1}}
		const each = 10_000 // a block has 8,192 entries or more
		m.syms = append(m.syms, named(elf.STB_LOCAL, make([]string, each)...)...)
		m.syms = append(m.syms, named(elf.STB_GLOBAL, make([]string, each)...)...)
		for i := range m.syms {
			m.syms[i].value = uint64(i + 1)
		}
		const renamed, removed = each + 5000, each + 9000
		f, _ := edited(t, m.bytes(), func(e *elfreloc.Edit) {
			e.AddSymbol(elfreloc.Symbol{Name: "new", Bind: elf.STB_LOCAL, Value: 1 << 20})
			s := e.Symbol(renamed)
			s.Name = "renamed"
			e.SetSymbol(renamed, s)
			e.RemoveSymbol(removed, 0)
		})
		syms := expect.Value(f.Symbols())(t)
		seen := map[uint64]int{}
		for i, s := range syms {
			if want := map[uint64]string{1 << 20: "new", renamed: "renamed"}[s.Value]; s.Name != want {
				t.Errorf("%v: symbol %d of value %d is called %q, want %q", class, i+1, s.Value, s.Name, want)
			}
			seen[s.Value]++
		}
		if len(syms) != 2*each || len(seen) != len(syms) || seen[removed] != 0 || syms[each].Value != 1<<20 {
			t.Errorf("%v: %d symbols, %d values, the first new one is %+v", class, len(syms), len(seen), syms[each])
		}
	}
}
