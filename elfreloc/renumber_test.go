package elfreloc_test

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

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

func TestRenumbering(t *testing.T) {
	local := elfreloc.Symbol{Name: "new", Bind: elf.STB_LOCAL}
	global := elfreloc.Symbol{Name: "more", Bind: elf.STB_GLOBAL}
	for _, c := range []struct {
		name          string
		change        func(e *elfreloc.Edit)
		table, relocs string
		firstGlobal   uint32
	}{
		{"a local takes the slot of the first global, which moves to the end",
			func(e *elfreloc.Edit) { e.AddSymbol(local) },
			" l1 l2 new g4 g5 g6 g3", " l1 l2 g3 g4 g5 g6", 4},
		{"the first global moves to a free slot",
			func(e *elfreloc.Edit) { e.AddSymbol(local); e.RemoveSymbol(5, 4) },
			" l1 l2 new g4 g3 g6", " l1 l2 g3 g4 g4 g6", 4},
		{"a removed first global makes room by itself",
			func(e *elfreloc.Edit) { e.AddSymbol(local); e.RemoveSymbol(3, 0) },
			" l1 l2 new g4 g5 g6", " l1 l2  g4 g5 g6", 4},
		{"more locals than globals",
			func(e *elfreloc.Edit) {
				for range 5 {
					e.AddSymbol(local)
				}
			},
			" l1 l2 new new new new new g3 g4 g5 g6", " l1 l2 g3 g4 g5 g6", 8},
		{"a removed global is filled by the last",
			func(e *elfreloc.Edit) { e.RemoveSymbol(4, 5) },
			" l1 l2 g3 g6 g5", " l1 l2 g3 g5 g5 g6", 3},
		{"the last one is removed",
			func(e *elfreloc.Edit) { e.RemoveSymbol(6, 3) },
			" l1 l2 g3 g4 g5", " l1 l2 g3 g4 g5 g3", 3},
		{"all globals are removed",
			func(e *elfreloc.Edit) {
				for i := range uint32(4) {
					e.RemoveSymbol(3+i, 0)
				}
			},
			" l1 l2", " l1 l2    ", 3},
		{"all globals are removed and a local comes",
			func(e *elfreloc.Edit) {
				for i := range uint32(4) {
					e.RemoveSymbol(3+i, 2)
				}
				e.AddSymbol(local)
			},
			" l1 l2 new", " l1 l2 l2 l2 l2 l2", 4},
		{"a global goes to the end",
			func(e *elfreloc.Edit) { e.AddSymbol(global) },
			" l1 l2 g3 g4 g5 g6 more", " l1 l2 g3 g4 g5 g6", 3},
		{"a local and a global",
			func(e *elfreloc.Edit) { e.AddSymbol(global); e.AddSymbol(local) },
			" l1 l2 new g4 g5 g6 g3 more", " l1 l2 g3 g4 g5 g6", 4},
		{"the symbol of a section is made once",
			func(e *elfreloc.Edit) {
				first := e.SectionSymbol(imageText)
				if again := e.SectionSymbol(imageText); again != first {
					panic("twice")
				}
			},
			" l1 l2 [.text] g4 g5 g6 g3", " l1 l2 g3 g4 g5 g6", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := edited(t, twoAndFour().bytes(), c.change)
			expect.Equal(t, c.table, strings.Join(symbolNames(t, f), " "), "table")
			expect.Equal(t, c.relocs, strings.Join(relocNames(t, f), " "), "relocations")
			expect.Equal(t, c.firstGlobal, f.Section(".symtab").Info, "first global")
		})
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
	if out, err := e.Save(); err == nil || err.Error() != want || out != nil {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
