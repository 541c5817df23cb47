package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// eachCommitted runs a check on each committed ELF object, beside debug/elf's
// view of it.
func eachCommitted(t *testing.T, check func(t *testing.T, o *elfreloc.Object, f *elf.File)) {
	for _, file := range objects.ELF(t, "") {
		t.Run(file.Name, func(t *testing.T) {
			f := disk.ELF(t, file.Data)
			check(t, objects.Open(t, file.Data), f)
		})
	}
}

func TestSectionsReadAsDebugElfReadsThem(t *testing.T) {
	eachCommitted(t, func(t *testing.T, o *elfreloc.Object, f *elf.File) {
		if o.Machine != f.Machine || o.Type != f.Type || o.Encoding.Class != f.Class || o.Encoding.Order != f.ByteOrder || len(o.Sections) != len(f.Sections) {
			t.Fatalf("got %v %v %v %v, %d sections", o.Machine, o.Type, o.Encoding.Class, o.Encoding.Order, len(o.Sections))
		}
		for i := range o.Sections {
			s := &o.Sections[i]
			got := elf.SectionHeader{
				Name: s.Name, Type: s.Type, Flags: s.Flags, Addr: s.Addr, Offset: s.Offset, Size: s.Size, Link: s.Link, Info: s.Info,
				Addralign: s.Align, Entsize: s.Entsize, FileSize: f.Sections[i].FileSize,
			}
			expect.Equal(t, f.Sections[i].SectionHeader, got, "section %d", i)
		}
	})
}

func TestSymbolsReadAsDebugElfReadsThem(t *testing.T) {
	eachCommitted(t, func(t *testing.T, o *elfreloc.Object, f *elf.File) {
		want := expect.Value(f.Symbols())(t)
		syms := expect.Value(o.Symbols())(t)
		if syms.Len() != len(want)+1 || syms.At(0) != (elfreloc.Symbol{}) {
			t.Fatalf("%d symbols, want %d; symbol 0 is %+v", syms.Len(), len(want)+1, syms.At(0))
		}
		for i, w := range want {
			section := int(w.Section)
			if w.Section >= elf.SHN_LORESERVE {
				section -= 0x10000
			}
			s := elfreloc.Symbol{
				Name: w.Name, Bind: elf.ST_BIND(w.Info), Type: elf.ST_TYPE(w.Info), Other: w.Other, Section: section, Value: w.Value, Size: w.Size,
			}
			expect.Equal(t, s, syms.At(i+1), "symbol %d", i+1)
		}
	})
}

// rawRelocs decodes a relocation section by the gABI alone; mips64 in little
// endian, which has its own layout, is not among the objects.
func rawRelocs(f *elf.File, s *elf.Section) []elfreloc.Relocation {
	data, err := s.Data()
	if err != nil {
		panic(err)
	}
	if s.Type == objects.CREL {
		return objects.DecodeCREL(f.Class, data)
	}
	var out []elfreloc.Relocation
	rela := s.Type == elf.SHT_RELA
	for len(data) > 0 {
		r := elfreloc.Relocation{Implicit: !rela}
		if f.Class == elf.ELFCLASS64 {
			info := f.ByteOrder.Uint64(data[8:])
			r.Offset, r.Sym, r.Type = f.ByteOrder.Uint64(data), uint32(info>>32), uint32(info)
			data = data[16:]
			if rela {
				r.Addend, data = int64(f.ByteOrder.Uint64(data)), data[8:]
			}
		} else {
			info := f.ByteOrder.Uint32(data[4:])
			r.Offset, r.Sym, r.Type = uint64(f.ByteOrder.Uint32(data)), info>>8, info&0xff
			data = data[8:]
			if rela {
				r.Addend, data = int64(int32(f.ByteOrder.Uint32(data))), data[4:]
			}
		}
		out = append(out, r)
	}
	return out
}

func TestRelocationsReadAsTheyAre(t *testing.T) {
	seen := map[string]int{}
	eachCommitted(t, func(t *testing.T, o *elfreloc.Object, f *elf.File) {
		rels := expect.Value(o.RelocSections())(t)
		for _, rs := range rels {
			s := f.Sections[rs.Index]
			var got []elfreloc.Relocation
			expect.OK(t, o.EachRelocation(rs, func(i int, r elfreloc.Relocation) error {
				if i != len(got) {
					t.Errorf("entry %d comes as %d", len(got), i)
				}
				got = append(got, r)
				return nil
			}))
			if diff := cmp.Diff(rawRelocs(f, s), got); diff != "" || rs.Target != int(s.Info) || rs.Len != len(got) {
				t.Errorf("%s: %+v %s", s.Name, rs, diff)
			}
			seen[strings.TrimPrefix(f.Machine.String(), "EM_")+" "+f.ByteOrder.String()+" "+typeName(s)] += len(got)
		}
	})
	for _, kind := range []string{
		"386 LittleEndian SHT_REL", "ARM LittleEndian SHT_REL", "PPC64 BigEndian SHT_RELA", "AARCH64 BigEndian SHT_RELA",
		"S390 BigEndian SHT_RELA", "MIPS BigEndian SHT_RELA", "PPC64 LittleEndian SHT_RELA", "X86_64 LittleEndian SHT_RELA",
		"X86_64 LittleEndian SHT_CREL", "AARCH64 LittleEndian SHT_CREL", "AARCH64 BigEndian SHT_CREL", "RISCV LittleEndian SHT_CREL",
		"386 LittleEndian SHT_CREL",
	} {
		if seen[kind] == 0 {
			t.Errorf("no object has relocations of %s", kind)
		}
	}
}

func typeName(s *elf.Section) string {
	if s.Type == objects.CREL {
		return "SHT_CREL"
	}
	return s.Type.String()
}

// An edit that moves symbols keeps what each relocation says, whatever the
// class, the byte order and the kind of relocations.
func TestRelocationsOfEveryObjectSurviveAMove(t *testing.T) {
	for _, file := range objects.ELF(t, "") {
		before := objects.Open(t, file.Data)
		_, result := edited(t, file.Data, func(e *elfreloc.Edit) {
			for range 3 {
				e.AddSymbol(elfreloc.Symbol{Name: "new_local", Bind: elf.STB_LOCAL, Section: 1})
			}
		})
		expect.Equal(t, spellRelocs(t, before), spellRelocs(t, objects.Open(t, result)), "%s", file.Name)
	}
}

// spelled is a relocation with its symbol instead of the symbol's index.
type spelled struct {
	Section, Target string
	Reloc           elfreloc.Relocation
	Symbol          elfreloc.Symbol
}

func spellRelocs(t *testing.T, o *elfreloc.Object) []spelled {
	t.Helper()
	syms := expect.Value(o.Symbols())(t)
	rels := expect.Value(o.RelocSections())(t)
	var out []spelled
	for _, rs := range rels {
		expect.OK(t, o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			s := spelled{o.Sections[rs.Index].Name, o.Sections[rs.Target].Name, r, syms.At(int(r.Sym))}
			s.Reloc.Sym = 0
			out = append(out, s)
			return nil
		}))
	}
	return out
}

// mips64el stores the symbol of a relocation in the first four bytes of r_info,
// and four types behind it.
func TestRelocationsOfMIPS64LittleEndian(t *testing.T) {
	m := &image{syms: named(elf.STB_GLOBAL, "g1", "g2"), relocs: []uint32{0}}
	data := m.bytes()
	binary.LittleEndian.PutUint16(data[18:], uint16(elf.EM_MIPS))
	o := objects.Open(t, data)
	copy(data[o.Sections[2].Offset+8:], []byte{2, 0, 0, 0, 0, 11, 22, 33})
	rels := expect.Value(o.RelocSections())(t)
	expect.OK(t, o.EachRelocation(rels[0], func(_ int, r elfreloc.Relocation) error {
		if r.Sym != 2 || r.Type != 0x000b1621 {
			t.Errorf("got %+v", r)
		}
		return nil
	}))
	_, result := edited(t, data, func(e *elfreloc.Edit) { e.RemoveSymbol(1, 0) })
	if got := result[o.Sections[2].Offset+8:][:8]; !bytes.Equal(got, []byte{1, 0, 0, 0, 0, 11, 22, 33}) {
		t.Errorf("written as % x", got)
	}
}

// What debug/elf has of names that begin with $ are all mapping symbols here.
func TestMappingSymbolsReadAsDebugElfReadsThem(t *testing.T) {
	type mapping struct {
		Section int
		Off     uint64
		Letter  byte
	}
	total := 0
	eachCommitted(t, func(t *testing.T, o *elfreloc.Object, f *elf.File) {
		syms := expect.Value(f.Symbols())(t)
		var want, got []mapping
		for _, s := range syms {
			if strings.HasPrefix(s.Name, "$") && elf.ST_TYPE(s.Info) == elf.STT_NOTYPE {
				want = append(want, mapping{int(s.Section), s.Value, s.Name[1]})
			}
		}
		symbols := expect.Value(o.Symbols())(t)
		for at, letter := range symbols.Mappings("atdx") {
			got = append(got, mapping{at.Section, at.Offset, letter})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for range symbols.Mappings("") {
			t.Error("a letter that is not wanted")
		}
		total += len(got)
	})
	if total == 0 {
		t.Error("no object has any")
	}
}
