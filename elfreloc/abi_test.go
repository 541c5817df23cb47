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
