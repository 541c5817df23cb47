package elfreloc_test

import (
	"debug/elf"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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
