package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
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
	for i, s := range syms.WithPrefix("xx") {
		beginWithX = append(beginWithX, s.Name)
		found := false
		for index, same := range syms.Named(s.Name) {
			found = found || index == i
			if same.Name != s.Name {
				t.Errorf("symbol %d is named %.20q, want %.20q", index, same.Name, s.Name)
			}
		}
		if !found {
			t.Errorf("symbol %d is not found by its name", i)
		}
	}
	if diff := cmp.Diff(wantX, beginWithX); diff != "" || len(wantX) == 0 {
		t.Error(diff)
	}
}

// symbolNames lists a symbol table, with symbol 0; nameless symbols of sections
// by the section's name in brackets.
func symbolNames(t testing.TB, f *elf.File) []string {
	t.Helper()
	syms := expect.Value(f.Symbols())(t)
	names := []string{""}
	for _, s := range syms {
		if s.Name == "" && elf.ST_TYPE(s.Info) == elf.STT_SECTION {
			s.Name = "[" + f.Sections[s.Section].Name + "]"
		}
		names = append(names, s.Name)
	}
	return names
}

// relocNames lists the names of the symbols of .rela.text's entries.
func relocNames(t testing.TB, f *elf.File) []string {
	t.Helper()
	names := symbolNames(t, f)
	rela := f.Section(".rela.text")
	data := expect.Value(rela.Data())(t)
	var out []string
	for ; len(data) >= 24; data = data[24:] {
		out = append(out, names[binary.LittleEndian.Uint64(data[8:])>>32])
	}
	return out
}

func named(bind elf.SymBind, names ...string) []imageSymbol {
	var out []imageSymbol
	for _, n := range names {
		out = append(out, imageSymbol{name: n, bind: bind})
	}
	return out
}

// twoAndFour has symbols 1 and 2, local, and 3 to 6, global, and a relocation
// against each.
func twoAndFour() *image {
	return &image{
		syms:   append(named(elf.STB_LOCAL, "l1", "l2"), named(elf.STB_GLOBAL, "g3", "g4", "g5", "g6")...),
		relocs: []uint32{0, 1, 2, 3, 4, 5, 6},
	}
}

// Whatever changes come together, no relocation loses its symbol and locals
// come before globals.
func TestRenumberingAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		m := &image{}
		locals, globals := r.IntN(4), r.IntN(8)
		for i := range locals {
			m.syms = append(m.syms, imageSymbol{name: fmt.Sprint("l", i), bind: elf.STB_LOCAL})
		}
		for i := range globals {
			m.syms = append(m.syms, imageSymbol{name: fmt.Sprint("g", i), bind: elf.STB_GLOBAL})
		}
		for range r.IntN(10) {
			m.relocs = append(m.relocs, uint32(r.IntN(len(m.syms)+1)))
		}
		wantName := []string{""}
		for _, s := range m.syms {
			wantName = append(wantName, s.name)
		}
		wantLen := len(wantName)
		f, _ := edited(t, m.bytes(), func(e *elfreloc.Edit) {
			for i := range globals {
				if sym := uint32(1 + locals + i); r.IntN(3) == 0 {
					e.RemoveSymbol(sym, 0)
					wantName[sym] = ""
					wantLen--
				}
			}
			for range r.IntN(6) {
				e.AddSymbol(elfreloc.Symbol{Name: "new", Bind: elf.SymBind(r.IntN(2))})
				wantLen++
			}
		})
		var want []string
		for _, sym := range m.relocs {
			want = append(want, wantName[sym])
		}
		if diff := cmp.Diff(want, relocNames(t, f)); diff != "" {
			t.Fatalf("round %d: %s", round, diff)
		}
		syms, _ := f.Symbols()
		if len(syms)+1 != wantLen {
			t.Fatalf("round %d: %d symbols, want %d", round, len(syms)+1, wantLen)
		}
		for i, s := range syms {
			if local := elf.ST_BIND(s.Info) == elf.STB_LOCAL; local != (i+1 < int(f.Section(".symtab").Info)) {
				t.Fatalf("round %d: symbol %d %q, first global %d", round, i+1, s.Name, f.Section(".symtab").Info)
			}
		}
	}
}

func TestRenumberingReachesOtherTables(t *testing.T) {
	m := twoAndFour()
	m.extra = []imageSection{
		{name: ".llvm_addrsig", typ: 0x6fff4c03, data: []byte{3, 0x84, 0x00, 5, 1}, usesSymtab: true},
		{name: ".group", typ: elf.SHT_GROUP, data: []byte{1, 0, 0, 0, 1, 0, 0, 0}, info: 3, usesSymtab: true},
	}
	f, result := edited(t, m.bytes(), func(e *elfreloc.Edit) {
		e.AddSymbol(elfreloc.Symbol{Name: "new", Bind: elf.STB_LOCAL})
		e.RemoveSymbol(5, 0)
	})
	// g3 has moved to slot 5, g5 is gone.
	addrsig := f.Section(".llvm_addrsig")
	expect.Equal(t, []byte{5, 4, 1}, result[addrsig.Offset:][:addrsig.Size], "address-significance table")
	expect.Equal(t, 5, f.Section(".group").Info, "signature")
}

func TestRenumberingRefusesUnknownUsersOfSymbols(t *testing.T) {
	m := twoAndFour()
	m.extra = []imageSection{{name: ".odd", typ: 0x6abcdef0, data: []byte{1}, usesSymtab: true}}
	wantSaveError(t, m, "a.o: .odd: unknown section type 0x6abcdef0 uses the symbol table, whose symbols have to move")
	m.extra = []imageSection{{name: ".llvm_addrsig", typ: 0x6fff4c03, data: []byte{1, 99}, usesSymtab: true}}
	wantSaveError(t, m, "a.o: .llvm_addrsig+0x1: no symbol index")
	m.extra = []imageSection{{name: ".llvm_addrsig", typ: 0x6fff4c03, data: []byte{0x80}, usesSymtab: true}}
	wantSaveError(t, m, "a.o: .llvm_addrsig+0x0: no symbol index")
	m.extra = []imageSection{{name: ".rela.odd", typ: elf.SHT_RELA, data: make([]byte, 24), info: imageText}}
	wantSaveError(t, m, "a.o: .rela.odd: its symbols are of section 0, and the symbol table is section 4")
}

func wantSaveError(t *testing.T, m *image, want string) {
	t.Helper()
	e := expect.Value(objects.Open(t, m.bytes()).Edit())(t)
	e.AddSymbol(elfreloc.Symbol{Name: "new", Bind: elf.STB_LOCAL})
	if out, err := e.Output(); err == nil || err.Error() != want || out != nil {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
