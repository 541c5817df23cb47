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

// What clang writes as SHT_CREL says what it writes as SHT_RELA otherwise.
func TestCRELReadsAsItsTwin(t *testing.T) {
	for crel, rela := range map[string]string{
		"calls.amd64-clang19-crel.o":    "calls.amd64-clang19-g.o",
		"calls.arm64-clang19-crel.o":    "calls.arm64-clang19-g.o",
		"calls.arm64be-clang19-crel.o":  "calls.arm64be-clang19-O2.o",
		"locals.riscv64-clang19-crel.o": "locals.riscv64-clang19-g.o",
		"comdat.amd64-clang19-crel.o":   "comdat.amd64-clang19-O2.o",
	} {
		o := objects.Open(t, objects.Read(t, crel))
		for i := range o.Sections {
			if o.Sections[i].UnknownRelocations() {
				t.Errorf("%s: relocations of section %d are not read", crel, i)
			}
		}
		got := spellRelocs(t, o)
		for i := range got {
			got[i].Section = strings.Replace(got[i].Section, ".crel", ".rela", 1)
		}
		expect.Equal(t, spellRelocs(t, objects.Open(t, objects.Read(t, rela))), got, "%s", crel)
	}
}

// A section that an edit has to write anew, though nothing of it has changed, is the
// compiler's to the byte.
func TestCRELIsWrittenAsClangWritesIt(t *testing.T) {
	eachCommitted(t, func(t *testing.T, o *elfreloc.Object, f *elf.File) {
		if !strings.HasSuffix(t.Name(), "-crel.o") {
			return
		}
		sections, entries := 0, 0
		f2, _ := edited(t, objects.Read(t, t.Name()[strings.LastIndex(t.Name(), "/")+1:]), func(e *elfreloc.Edit) {
			rels := expect.Value(e.Object().RelocSections())(t)
			for _, rs := range rels {
				expect.OK(t, e.Object().EachRelocation(rs, func(i int, r elfreloc.Relocation) error {
					e.SetRelocation(rs, i, r)
					entries++
					return nil
				}))
			}
		})
		for i, s := range f.Sections {
			if s.Type == objects.CREL {
				sections++
				wantSameSection(t, s, f2.Sections[i])
			}
		}
		if sections == 0 || entries < sections {
			t.Errorf("%d sections of %d relocations", sections, entries)
		}
	})
}

func wantSameSection(t *testing.T, was, now *elf.Section) {
	t.Helper()
	want := expect.Value(was.Data())(t)
	got := expect.Value(now.Data())(t)
	if !bytes.Equal(want, got) {
		t.Errorf("%s:\ngot  % x\nwant % x", was.Name, got, want)
	}
}

// A section that names no symbol which moves is copied: lld does not shift offsets of
// .eh_frame, and this writer would.
func TestCRELIsCopiedWhereNothingMoves(t *testing.T) {
	data := objects.Read(t, "mixed.amd64-clang19-lld19.o")
	f := disk.ELF(t, data)
	after, _ := edited(t, data, func(e *elfreloc.Edit) {
		for range 20 {
			e.AddSymbol(elfreloc.Symbol{Name: "new_local", Bind: elf.STB_LOCAL, Section: 1})
		}
	})
	wantSameSection(t, f.Section(".crel.eh_frame"), after.Section(".crel.eh_frame"))
	was, now := rawRelocs(f, f.Section(".crel.text")), rawRelocs(after, after.Section(".crel.text"))
	if cmp.Equal(was, now) {
		t.Error("no symbol that .text names has moved")
	}
}

// Relocations of every kind are set, deleted and added, with offsets, types and
// addends that grow and shrink by much and by little.
func TestRelocationsOfEveryKindChange(t *testing.T) {
	for _, m := range everyImage() {
		far, low := uint64(1<<32-8), int64(-1<<31)
		if m.is64() {
			far, low = 1<<64-8, -1<<63
		}
		var want []elfreloc.Relocation
		typ := uint32(0x80)
		if m.crel != nil || m.is64() {
			typ = 1 << 31
		}
		change := func(r elfreloc.Relocation) elfreloc.Relocation {
			if r.Implicit = m.rel; m.rel {
				r.Addend = 0
			}
			want = append(want, r)
			return r
		}
		f, _ := edited(t, m.bytes(), func(e *elfreloc.Edit) {
			rels, err := e.Object().RelocSections()
			if err != nil || len(rels) != 1 || rels[0].Rela == m.rel || rels[0].Len != 2 {
				t.Fatalf("%+v: %v", rels, err)
			}
			e.DeleteRelocation(rels[0], 0)
			e.SetRelocation(rels[0], 1, change(elfreloc.Relocation{Offset: far, Sym: 2, Type: typ, Addend: low}))
			for _, r := range []elfreloc.Relocation{
				{Offset: 3, Sym: 0, Type: 0, Addend: -low - 1}, {Offset: 3, Sym: 1, Type: 1, Addend: 63}, {Offset: 3 + 127, Sym: 2, Type: 65, Addend: -1},
			} {
				expect.OK(t, e.AddRelocation(imageText, change(r)))
			}
		})
		expect.Equal(t, want, rawRelocs(f, f.Sections[2]), "%v %v, %s", m.class, m.order, f.Sections[2].Name)
	}
}

// Entries stand on both sides of what is read at once.
func TestCRELIsReadInBlocks(t *testing.T) {
	const count = elfreloc.BlockSize
	m := &image{syms: []imageSymbol{{name: "g1", bind: elf.STB_GLOBAL}}, relocs: []uint32{1}}
	m.crel = []byte{0x84 | count<<3&0x7f, 0x80 | count>>4&0x7f, 0x80 | count>>11&0x7f, count >> 18, 0b111, 1, 2, 0}
	for range count - 1 {
		m.crel = append(m.crel, 1<<3|0b100, 0x7f) // the next byte, an addend that is less by 1
	}
	o := objects.Open(t, m.bytes())
	rels := expect.Value(o.RelocSections())(t)
	next := elfreloc.Relocation{Sym: 1, Type: 2}
	err := o.EachRelocation(rels[0], func(i int, r elfreloc.Relocation) error {
		if r != next || uint64(i) != r.Offset {
			t.Fatalf("entry %d is %+v, want %+v", i, r, next)
		}
		next.Offset++
		next.Addend--
		return nil
	})
	if err != nil || next.Offset != count {
		t.Errorf("%d entries of %d: %v", next.Offset, count, err)
	}
}

func TestMalformedCRELIsExplained(t *testing.T) {
	const cut = "no LEB128 of at most 64 bits"
	padded := func(first byte, n int, last byte) []byte {
		return append(append([]byte{first}, bytes.Repeat([]byte{0x80}, n)...), last)
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", []byte{}, ".crel.text+0x0: " + cut},
		{"half a header", []byte{0x8c}, ".crel.text+0x0: " + cut},
		{"a header without end", padded(0x8c, 20, 0), ".crel.text+0x0: " + cut},
		{"more than bytes", []byte{3<<3 | 4, 0, 0}, ".crel.text: 3 relocations in 2 bytes"},
		{"the most", append(bytes.Repeat([]byte{0xff}, 8), 0x7f), ".crel.text: 1152921504606846975 relocations in 0 bytes"},
		{"a missing entry", []byte{2<<3 | 4, 1, 1}, ".crel.text+0x3: relocation 1: " + cut},
		{"a missing symbol", []byte{1<<3 | 4, 1}, ".crel.text+0x1: relocation 0: " + cut},
		{"a missing type", []byte{1<<3 | 4, 3, 1}, ".crel.text+0x1: relocation 0: " + cut},
		{"a missing addend", []byte{1<<3 | 4, 5, 1}, ".crel.text+0x1: relocation 0: " + cut},
		{"half an offset", []byte{1<<3 | 4, 0x80}, ".crel.text+0x1: relocation 0: " + cut},
		{"an offset without end", append([]byte{1<<3 | 4}, padded(0x80, 20, 0)...), ".crel.text+0x1: relocation 0: " + cut},
		{"half an addend", []byte{1<<3 | 4, 4, 0x80}, ".crel.text+0x1: relocation 0: " + cut},
		{"an addend of 65 bits", append([]byte{1<<3 | 4, 4}, padded(0x80, 8, 1)...), ".crel.text+0x1: relocation 0: " + cut},
		{"bytes left", []byte{1<<3 | 4, 0, 0, 0}, ".crel.text+0x2: 2 bytes behind the last relocation"},
		{"a symbol too many", []byte{1<<3 | 4, 1, 3}, ".crel.text: relocation 0: symbol 3 of 3"},
		{"a symbol before the first", []byte{2<<3 | 4, 0, 1, 0x7f}, ".crel.text: relocation 1: symbol 4294967295 of 3"},
	} {
		m := everyImage()[1]
		m.class, m.crel = elf.ELFCLASS64, c.data
		t.Run(c.name, func(t *testing.T) { wantFault(t, readEverything(m.bytes()), "a.o: "+c.want) })
	}
}
