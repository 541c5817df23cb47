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

// stringTable returns the bytes of a section.
func stringTable(t *testing.T, f *elf.File, name string) string {
	t.Helper()
	return string(expect.Value(f.Section(name).Data())(t))
}

func rename(i uint32, name string) func(*elfreloc.Edit) {
	return func(e *elfreloc.Edit) {
		s := e.Symbol(i)
		s.Name = name
		e.SetSymbol(i, s)
	}
}

func TestNamesReuseTheirTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		strtab string
		syms   []string
		change func(*elfreloc.Edit)
		want   string
		table  []string
	}{
		{"a shorter name is written over the old one", "\x00first\x00other\x00", []string{"first", "other"},
			rename(1, "new"), "\x00new\x00\x00\x00other\x00", []string{"new", "other"}},
		{"a name as long is, too", "\x00first\x00other\x00", []string{"first", "other"},
			rename(1, "equal"), "\x00equal\x00other\x00", []string{"equal", "other"}},
		{"a longer name is appended, and the old one cleared", "\x00first\x00other\x00", []string{"first", "other"},
			rename(1, "longer"), "\x00\x00\x00\x00\x00\x00\x00other\x00longer\x00", []string{"longer", "other"}},
		{"the tail of another name leaves that alone", "\x00barfoo\x00", []string{"barfoo", "foo"},
			rename(2, "x"), "\x00barfoo\x00x\x00", []string{"barfoo", "x"}},
		{"a name with another as its tail stays", "\x00barfoo\x00", []string{"barfoo", "foo"},
			rename(1, "x"), "\x00barfoo\x00x\x00", []string{"x", "foo"}},
		{"a name of two symbols stays for the other", "\x00same\x00", []string{"same", "same"},
			rename(1, "x"), "\x00same\x00x\x00", []string{"x", "same"}},
		{"a removed name is cleared", "\x00first\x00other\x00", []string{"first", "other"},
			func(e *elfreloc.Edit) { e.RemoveSymbol(1, 0) }, "\x00\x00\x00\x00\x00\x00\x00other\x00", []string{"other"}},
		{"a removed name that is another's tail is not", "\x00barfoo\x00", []string{"barfoo", "foo"},
			func(e *elfreloc.Edit) { e.RemoveSymbol(2, 0) }, "\x00barfoo\x00", []string{"barfoo"}},
		{"two names become one string", "\x00first\x00other\x00", []string{"first", "other"},
			func(e *elfreloc.Edit) { rename(1, "new")(e); rename(2, "new")(e) },
			"\x00new\x00\x00\x00\x00\x00\x00\x00\x00\x00", []string{"new", "new"}},
		{"no name", "\x00first\x00", []string{"first"}, rename(1, ""), "\x00\x00\x00\x00\x00\x00\x00", []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &image{syms: named(elf.STB_GLOBAL, c.syms...), strtab: c.strtab, relocs: []uint32{1}}
			f, _ := edited(t, m.bytes(), c.change)
			expect.Equal(t, c.want, stringTable(t, f, ".strtab"))
			expect.Equal(t, append([]string{""}, c.table...), symbolNames(t, f))
		})
	}
}

// clang keeps the names of symbols and of sections in one table.
func TestNamesOfSectionsInTheSameTable(t *testing.T) {
	for _, c := range []struct {
		name, symbol string
		grows        bool
	}{
		{"a symbol's own name goes", "stub_function", false},
		{"a section's name stays", ".text", true},
		{"the tail of a section's name does", "text", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &image{one: true, relocs: []uint32{1}, strtab: "\x00.rela.text\x00stub_function\x00", syms: named(elf.STB_GLOBAL, c.symbol)}
			data := m.bytes()
			before := len(m.shstrtab)
			f, _ := edited(t, data, rename(1, "new"))
			if f.Section(".text") == nil || f.Section(".rela.text") == nil || f.Section(".symtab") == nil {
				t.Error("the names of sections were overwritten")
			}
			table := stringTable(t, f, ".shstrtab")
			if (len(table) > before) != c.grows {
				t.Errorf("the table has %d bytes, and had %d: %q", len(table), before, table)
			}
			if strings.Contains(table, "stub_function") != (c.symbol != "stub_function") {
				t.Errorf("the table is %q", table)
			}
			expect.Equal(t, []string{"", "new"}, symbolNames(t, f))
		})
	}
}

func TestNamesOfASectionAndItsRelocationsShareBytes(t *testing.T) {
	m := &image{syms: named(elf.STB_GLOBAL, "g"), relocs: []uint32{1}}
	f, _ := edited(t, m.bytes(), func(e *elfreloc.Edit) {
		for range 2 {
			e.AddSection(elfreloc.NewSection{Name: "records", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 8, Data: make([]byte, 16), Relocs: true, Rela: true})
		}
	})
	if n := strings.Count(stringTable(t, f, ".shstrtab"), "records"); n != 1 {
		t.Errorf("the name is there %d times", n)
	}
	if got := f.Sections[len(f.Sections)-1].Name + " " + f.Sections[len(f.Sections)-2].Name; got != ".relarecords records" {
		t.Errorf("the new sections are %s", got)
	}
}

// Another section that uses the string table may name any of its strings.
func TestNamesStayForAnUnknownUserOfTheirTable(t *testing.T) {
	m := &image{syms: named(elf.STB_GLOBAL, "first"), relocs: []uint32{1}, strtab: "\x00first\x00"}
	m.extra = []imageSection{{name: ".user", typ: elf.SHT_PROGBITS, data: []byte{1}}}
	data := m.bytes()
	// The link of section 3, .user, becomes that of .symtab's names.
	f := disk.ELF(t, data)
	table := len(data) - 64*len(f.Sections)
	data[table+3*64+40] = byte(f.Section(".symtab").Link)
	g, _ := edited(t, data, rename(1, "new"))
	if got := stringTable(t, g, ".strtab"); got != "\x00first\x00new\x00" {
		t.Errorf("got %q", got)
	}
}

func TestNamesContainSearchesSymbolNamesAlone(t *testing.T) {
	for _, one := range []bool{false, true} {
		m := &image{syms: named(elf.STB_GLOBAL, "a_stub_of_mine"), relocs: []uint32{1}, one: one}
		m.extra = []imageSection{{name: ".elsewhere", typ: elf.SHT_PROGBITS, data: []byte("hidden_stub\x00")}}
		o := objects.Open(t, m.bytes())
		for needle, want := range map[string]bool{"_stub_": true, "a_stub": true, "hidden": false, "zzz": false} {
			got := expect.Value(o.NamesContain([][]byte{[]byte("nothing"), []byte(needle)}))(t)
			expect.Equal(t, want, got, "%q", needle)
		}
	}
}

func TestStreamContainsAcrossItsBuffer(t *testing.T) {
	const needle = "needle"
	for _, size := range []int{len(needle), 1000, elfreloc.BlockSize, elfreloc.BlockSize + 5, 2*elfreloc.BlockSize + 100} {
		for _, at := range []int{0, size/2 - 3, elfreloc.BlockSize - 3, elfreloc.BlockSize - 1, elfreloc.BlockSize, size - len(needle)} {
			if at < 0 || at+len(needle) > size {
				continue
			}
			data := make([]byte, size)
			copy(data[at:], needle)
			for name, want := range map[string]bool{needle: true, "needles": false} {
				needles := [][]byte{[]byte("x"), []byte(name)}
				got := expect.Value(elfreloc.StreamContains(bytes.NewReader(data), 0, int64(size), needles))(t)
				expect.Equal(t, want, got, "%q at %d of %d bytes", name, at, size)
			}
		}
	}
	beyond := expect.Failure(elfreloc.StreamContains(bytes.NewReader(nil), 0, 10, [][]byte{{1}}))
	expect.Equal(t, "read at offset 0x0: EOF", beyond)
}

// Names of every length are those that debug/elf reads, also where symbols share them.
func TestLongNames(t *testing.T) {
	table := "\x00short\x00"
	for _, n := range []int{1023, 1024, 1025, 5000} {
		table += strings.Repeat("x", n-4) + "long\x00"
	}
	m := &image{class: elf.ELFCLASS64, order: binary.LittleEndian, strtab: table}
	for off, c := range table {
		if c != 0 && (off < 10 || off%61 == 0) {
			end := off + strings.IndexByte(table[off:], 0)
			m.syms = append(m.syms, imageSymbol{name: table[off:end], bind: elf.STB_GLOBAL, section: imageText})
		}
	}
	data := m.bytes()
	f := disk.ELF(t, data)
	want := expect.Value(f.Symbols())(t)
	syms := expect.Value(objects.Open(t, data).Symbols())(t)
	var beginWithX, wantX []string
	for i, s := range want {
		if got := syms.At(i + 1).Name; got != s.Name || syms.Name(i+1) != s.Name {
			t.Errorf("symbol %d has %d bytes, want %d", i+1, len(got), len(s.Name))
		}
		if strings.HasPrefix(s.Name, "xx") {
			wantX = append(wantX, s.Name)
		}
	}
	for _, s := range syms.WithPrefix("xx") {
		beginWithX = append(beginWithX, s.Name)
	}
	if diff := cmp.Diff(wantX, beginWithX); diff != "" || len(wantX) == 0 {
		t.Error(diff)
	}
}
