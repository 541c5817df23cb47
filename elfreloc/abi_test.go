package elfreloc_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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

// Sections that st_shndx and e_shnum cannot count have their numbers elsewhere.
func TestEmptyTakesManySections(t *testing.T) {
	const many = 0x10000
	_, data := emptyLike(t, twoAndFour().bytes(), func(e *elfreloc.Edit) {
		last := 0
		for range many {
			last = e.AddSection(elfreloc.NewSection{Name: "s", Type: elf.SHT_PROGBITS, Align: 1, Data: []byte{1}})
		}
		e.AddSymbol(elfreloc.Symbol{Name: "last", Bind: elf.STB_GLOBAL, Section: last})
	})
	o := objects.Open(t, data)
	syms, err := o.Symbols()
	if err != nil || syms.Len() != 2 || syms.At(1).Section != many+3 {
		t.Errorf("%v, %+v", err, syms.At(1))
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

func TestNoGrowthWithoutNeed(t *testing.T) {
	f, _ := edited(t, manySections(100), func(e *elfreloc.Edit) { e.SectionSymbol(imageText) })
	for _, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB_SHNDX {
			t.Error("an extended section index table for 100 sections")
		}
	}
}
