package stubs_test

import (
	"bytes"
	"debug/elf"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/testkit/objects"
)

// described is a machine whose functions have descriptors of two words.
type described struct{ arch.Machine }

func (m described) Traits() *arch.Traits {
	t := *m.Machine.Traits()
	word := arch.Insn{Code: make([]byte, 8), Text: ".quad", Reloc: &arch.Reloc{Type: t.Word}}
	toc := word
	toc.Symbol = ".TOC."
	t.Descriptors, t.Descriptor = ".opd", []arch.Insn{word, toc}
	return &t
}

func TestStubsStandForTheirDescriptors(t *testing.T) {
	data := objects.Read(t, "calls.amd64-gcc12-O2.o")
	o, err := open(data, "a.o")
	if err != nil {
		t.Fatal(err)
	}
	n := stubs.New(options())
	if err := n.Add(o, described{machines.Lookup(o.ABI())}); err != nil {
		t.Fatal(err)
	}
	made, err := n.Object()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(made))
	if err != nil {
		t.Fatal(err)
	}
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			functions++
			if name := f.Sections[s.Section].Name; name != ".opd" {
				t.Errorf("%s is in %s", s.Name, name)
			}
		}
	}
	opd, rela := f.Section(".opd"), f.Section(".rela.opd")
	if functions == 0 || opd == nil || rela == nil {
		t.Fatalf("%d functions, sections %v %v", functions, opd, rela)
	}
	relocs, err := rela.Data()
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(relocs) / 24 {
		sym := syms[f.ByteOrder.Uint32(relocs[24*i+12:])-1]
		toCode := elf.ST_TYPE(sym.Info) == elf.STT_SECTION && f.Sections[sym.Section].Flags&elf.SHF_EXECINSTR != 0
		if i%2 == 0 != toCode || i%2 == 1 && sym.Name != ".TOC." {
			t.Errorf("word %d of the descriptors refers to %+v", i, sym)
		}
	}
}
