package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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

// emptyLike makes the empty object of an image's ABI, with changes.
func emptyLike(t *testing.T, image []byte, change func(e *elfreloc.Edit)) (*elf.File, []byte) {
	t.Helper()
	empty := expect.Value(objects.Open(t, image).Empty("new.o"))(t)
	e := expect.Value(empty.Edit())(t)
	change(e)
	in := expect.Value(empty.ReadFile(0, empty.Size()))(t)
	return saved(t, e, in)
}

// anyABI are images of each class and byte order, with an OS ABI and flags.
func anyABI() map[string][]byte {
	all := map[string][]byte{}
	for _, class := range []elf.Class{elf.ELFCLASS32, elf.ELFCLASS64} {
		for name, order := range map[string]binary.AppendByteOrder{"LE": binary.LittleEndian, "BE": binary.BigEndian} {
			m := image{class: class, order: order}
			b := m.bytes()
			b[elf.EI_OSABI], b[elf.EI_ABIVERSION] = byte(elf.ELFOSABI_FREEBSD), 7
			flags := 48
			if class == elf.ELFCLASS32 {
				flags = 36
			}
			copy(b[flags:], order.AppendUint32(nil, 0x12345678))
			all[class.String()+name] = b
		}
	}
	return all
}

func TestEmptyHasTheABIOfItsModel(t *testing.T) {
	for name, like := range anyABI() {
		f, data := emptyLike(t, like, func(*elfreloc.Edit) {})
		model := disk.ELF(t, like)
		o := objects.Open(t, data)
		if f.Machine != model.Machine || f.Class != model.Class || f.Data != model.Data || f.OSABI != model.OSABI || f.ABIVersion != 7 ||
			f.Type != elf.ET_REL || o.Flags != 0x12345678 {
			t.Errorf("%s: %+v", name, f.FileHeader)
		}
		if syms, err := o.Symbols(); err != nil || syms.Len() != 1 || len(f.Sections) != 4 || int64(len(data)) != o.End() {
			t.Errorf("%s: %v, %d sections, %d bytes of %d", name, err, len(f.Sections), o.End(), len(data))
		}
	}
}

func TestEmptyTakesGroups(t *testing.T) {
	for name, like := range anyABI() {
		f, data := emptyLike(t, like, func(e *elfreloc.Edit) {
			sig := e.AddSymbol(elfreloc.Symbol{Name: "sig", Bind: elf.STB_WEAK, Section: 5})
			group := e.AddGroup(sig)
			a := e.AddSection(elfreloc.NewSection{Name: "a", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 8, Data: make([]byte, 8), Relocs: true, Rela: true, GroupOf: group})
			b := e.AddSection(elfreloc.NewSection{Name: "b", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 8, Data: make([]byte, 3), GroupOf: a})
			if group != 4 || a != 5 || b != 7 {
				t.Fatalf("%s: sections %d, %d and %d", name, group, a, b)
			}
			expect.OK(t, e.AddRelocation(a, elfreloc.Relocation{Sym: e.SectionSymbol(b), Type: 1, Addend: 1}))
		})
		o := objects.Open(t, data)
		groups, err := o.Groups()
		if err != nil || len(groups) != 3 || groups[5] != 4 || groups[6] != 4 || groups[7] != 4 {
			t.Errorf("%s: %v, %v", name, groups, err)
		}
		// The section symbol is local and comes first, so the signature moves.
		if syms, err := f.Symbols(); err != nil || len(syms) != 2 || syms[f.Sections[4].Info-1].Name != "sig" || f.Sections[4].Info != 2 {
			t.Errorf("%s: %v, %v, signature %d", name, syms, err, f.Sections[4].Info)
		}
	}
}

// manySections makes an object of n sections.
func manySections(n int) []byte {
	m := &image{syms: append(named(elf.STB_LOCAL, "l1"), imageSymbol{name: "g2", bind: elf.STB_GLOBAL, section: imageText, value: 4}), relocs: []uint32{2}}
	for range n - 6 {
		m.extra = append(m.extra, imageSection{name: ".many", typ: elf.SHT_PROGBITS})
	}
	return m.bytes()
}

// From 0xff00 sections on, a section's index does not fit a symbol, and the
// count does not fit the ELF header.
func TestGrowthBeyondTheReservedSectionIndexes(t *testing.T) {
	const reserved = 0xff00
	data := manySections(reserved - 1)
	var section int
	f, result := edited(t, data, func(e *elfreloc.Edit) {
		e.AddSection(elfreloc.NewSection{Name: "first", Type: elf.SHT_PROGBITS, Align: 1, Data: []byte{1}})
		section = e.AddSection(elfreloc.NewSection{Name: "second", Type: elf.SHT_PROGBITS, Align: 1, Data: []byte{2}})
		e.SectionSymbol(section)
	})
	if section != reserved {
		t.Fatalf("the test's section is %#x, want %#x", section, reserved)
	}
	if shnum := uint16(result[60]) | uint16(result[61])<<8; shnum != 0 {
		t.Errorf("e_shnum is %#x, want 0", shnum)
	}
	if got := len(f.Sections); got != reserved+2 || f.Sections[0].Size != uint64(got) {
		t.Errorf("%#x sections, and section 0 says %#x", got, f.Sections[0].Size)
	}
	extended := f.Sections[reserved+1]
	if extended.Name != ".symtab_shndx" || extended.Type != elf.SHT_SYMTAB_SHNDX || extended.Entsize != 4 || extended.Addralign != 4 {
		t.Errorf("the last section is %+v", extended.SectionHeader)
	}
	if f.Sections[extended.Link].Type != elf.SHT_SYMTAB {
		t.Errorf("it is of section %d", extended.Link)
	}
	indexes := expect.Value(extended.Data())(t)
	syms := expect.Value(f.Symbols())(t)
	if len(indexes) != 4*(len(syms)+1) {
		t.Fatalf("%d bytes for %d symbols", len(indexes), len(syms)+1)
	}
	for i, s := range syms {
		index := f.ByteOrder.Uint32(indexes[4*(i+1):])
		if made := elf.ST_TYPE(s.Info) == elf.STT_SECTION; made != (index == reserved) || made != (s.Section == elf.SHN_XINDEX) {
			t.Errorf("symbol %d %q: section %v, extended %#x", i+1, s.Name, s.Section, index)
		}
	}
	readGrown(t, result, reserved)
}

// readGrown reads what was written, and adds to it once more.
func readGrown(t *testing.T, grown []byte, section int) {
	o := objects.Open(t, grown)
	syms := expect.Value(o.Symbols())(t)
	if s := syms.At(2); s.Section != section || s.Type != elf.STT_SECTION {
		t.Errorf("symbol 2 is %+v, want the symbol of section %#x", s, section)
	}
	f, again := edited(t, grown, func(e *elfreloc.Edit) {
		index := e.AddSection(elfreloc.NewSection{Name: "third", Type: elf.SHT_PROGBITS, Align: 1, Data: []byte{3}})
		e.SectionSymbol(index)
		e.SectionSymbol(section)
	})
	n := 0
	for _, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB_SHNDX {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d extended section index tables", n)
	}
	syms = expect.Value(objects.Open(t, again).Symbols())(t)
	if a, b := syms.At(2).Section, syms.At(3).Section; a != section || b != section+2 {
		t.Errorf("symbols 2 and 3 are of sections %#x and %#x", a, b)
	}
	if s := syms.At(4); s.Name != "g2" || s.Section != imageText || s.Value != 4 {
		t.Errorf("symbol 4 is %+v", s)
	}
}
