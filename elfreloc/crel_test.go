package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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
