package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// someOf divides changes at random into those that an Edit is given one by one and those
// that are made when they are needed, in one run or two.
func someOf[T any](r *rand.Rand, all []T, add func(...T), addRun func(n int, at func(i int) T)) {
	r.Shuffle(len(all)*r.IntN(2), func(i, j int) { all[i], all[j] = all[j], all[i] })
	first := r.IntN(len(all) + 1)
	second := first + r.IntN(len(all)-first+1)
	for _, run := range [][]T{all[:first], all[first:second]} {
		addRun(len(run), func(i int) T { return run[i] })
	}
	for _, x := range all[second:] {
		add(x)
	}
}

// It makes no difference how an Edit is given its changes.
func TestRunsAreAsItems(t *testing.T) {
	for seed := range uint64(100) {
		for _, m := range everyImage() {
			r := rand.New(rand.NewPCG(seed, 0))
			if m.crel == nil {
				m.relocs = []uint32{1, 2, 1, 2, 1, 2, 1, 2}
			}
			data := m.bytes()
			made := func(runs bool) []byte {
				o := objects.Open(t, data)
				e := expect.Value(o.Edit())(t)
				rels := expect.Value(o.RelocSections())(t)
				rs := rels[0]
				var patches []elfreloc.Patch
				for at := uint64(0); at+3 < o.Sections[imageText].Size; at += 3 {
					patches = append(patches, elfreloc.Patch{Offset: at, Old: make([]byte, 1+at%3), New: bytes.Repeat([]byte{byte(at)}, 1+int(at%3))})
				}
				var entries []elfreloc.RelocationEntry
				for i := range rs.Len {
					entries = append(entries, elfreloc.RelocationEntry{Index: i, Relocation: elfreloc.Relocation{Offset: uint64(8*i + 1), Sym: 2, Type: uint32(3 + i), Implicit: !rs.Rela}})
				}
				if !runs {
					e.Patch(imageText, patches...)
					e.SetRelocations(rs, entries...)
					return objects.Save(t, e, data)
				}
				someOf(r, patches, func(p ...elfreloc.Patch) { e.Patch(imageText, p...) }, func(n int, at func(i int) elfreloc.Patch) { e.PatchEach(imageText, n, at) })
				someOf(r, entries, func(x ...elfreloc.RelocationEntry) { e.SetRelocations(rs, x...) }, func(n int, at func(i int) elfreloc.RelocationEntry) { e.SetEachRelocation(rs, n, at) })
				return objects.Save(t, e, data)
			}
			if !bytes.Equal(made(false), made(true)) {
				t.Fatalf("seed %d, %v %v, rel %v, crel %v: the objects differ", seed, m.class, m.order, m.rel, m.crel != nil)
			}
		}
	}
}

// A table is what the same bytes and relocations are, in whatever pieces it is read.
func TestTableIsAsItsBytes(t *testing.T) {
	const entries, entsize = 1000, 12
	for _, m := range everyImage() {
		data := m.bytes()
		made := func(table bool) (*elfreloc.Output, []byte) {
			o := objects.Open(t, data)
			e := expect.Value(o.Edit())(t)
			entry := func(i int, b []byte, relocs []elfreloc.Relocation) {
				if m.rel {
					o.Encoding.Order.PutUint32(b[4:], uint32(i))
				}
				for k := range relocs {
					relocs[k] = elfreloc.Relocation{Offset: uint64(i*entsize + 4*k), Sym: uint32(1 + k%2), Type: uint32(i % 9), Addend: int64(-i)}
				}
			}
			n := elfreloc.NewSection{Name: "table", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 4, Entsize: entsize, Relocs: true, Rela: !m.rel}
			if table {
				n.Table = &elfreloc.Table{Len: entries, PerEntry: 3, Zero: !m.rel, Make: entry}
			} else {
				n.Data = make([]byte, entries*entsize)
			}
			sec := e.AddSection(n)
			for i := 0; !table && i < entries; i++ {
				relocs := make([]elfreloc.Relocation, 3)
				entry(i, n.Data[i*entsize:(i+1)*entsize], relocs)
				for _, r := range relocs {
					expect.OK(t, e.AddRelocation(sec, r))
				}
			}
			for range 2 { // whose places the globals leave
				e.AddSymbol(elfreloc.Symbol{Name: "local", Bind: elf.STB_LOCAL})
			}
			out := expect.Value(e.Save())(t)
			result := expect.Value(objects.Assemble(out, data))(t)
			return out, result
		}
		_, want := made(false)
		out, got := made(true)
		if !bytes.Equal(got, want) {
			t.Fatalf("%v %v, rel %v: the objects differ", m.class, m.order, m.rel)
		}
		if err := iotest.TestReader(io.NewSectionReader(out.Reader(bytes.NewReader(data)), 0, out.Size), want); err != nil {
			t.Errorf("%v %v, rel %v: %v", m.class, m.order, m.rel, err)
		}
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
