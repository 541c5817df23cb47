package stubs_test

import (
	"debug/elf"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// What is called is the code, and what has the name its descriptor: of the address of the
// code, the pointer to the table of contents, which no symbol stands for, and a word more.
func TestStubsStandForTheirDescriptors(t *testing.T) {
	o := expect.Value(open(objects.Read(t, "calls.ppc64-gcc12-O2.o"), "a.o"))(t)
	n := stubs.New(options())
	expect.OK(t, n.Add(o, machines.Lookup(o.ABI())))
	f := disk.ELF(t, expect.Value(n.Object())(t))
	syms := expect.Value(f.Symbols())(t)
	entries := map[uint64]bool{}
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			entries[s.Value] = true
			expect.Equal(t, ".opd", f.Sections[s.Section].Name, "the section of %s", s.Name)
		}
	}
	opd, rela := f.Section(".opd"), f.Section(".rela.opd")
	if len(entries) != 2 || !entries[0] || !entries[24] || opd == nil || opd.Size != 48 || rela == nil {
		t.Fatalf("entries %v, sections %v %v", entries, opd, rela)
	}
	relocs, err := rela.Data()
	if err != nil || len(relocs) != 4*24 {
		t.Fatalf("%d bytes of relocations: %v", len(relocs), err)
	}
	for i := range len(relocs) / 24 {
		off, typ, sym := f.ByteOrder.Uint64(relocs[24*i:]), elf.R_PPC64(f.ByteOrder.Uint32(relocs[24*i+12:])), f.ByteOrder.Uint32(relocs[24*i+8:])
		switch {
		case off != uint64(i/2*24+i%2*8):
			t.Errorf("relocation %d is at %d", i, off)
		case i%2 == 1 && (typ != elf.R_PPC64_TOC || sym != 0), i%2 == 0 && (typ != elf.R_PPC64_ADDR64 || sym == 0):
			t.Errorf("relocation %d is %v of symbol %d", i, typ, sym)
		case i%2 == 0:
			s := syms[sym-1]
			if elf.ST_TYPE(s.Info) != elf.STT_SECTION || f.Sections[s.Section].Flags&elf.SHF_EXECINSTR == 0 {
				t.Errorf("descriptor %d is of %+v", i/2, s)
			}
		}
	}
}
