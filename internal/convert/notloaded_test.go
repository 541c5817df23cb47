package convert

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// What is not loaded names no stub any more, and no probe object instead of one: its
// entries against stubs that are defined elsewhere name nothing, and the others are the
// same.
func TestWhatIsNotLoadedNamesNoStub(t *testing.T) {
	forgotten := 0
	converted(t, nil, func(t *testing.T, c run) {
		before, after := viewFile(t, c.before), viewFile(t, c.after)
		for i, s := range before.Sections {
			if !isRelocSection(s) || before.Sections[s.Info].Flags&elf.SHF_ALLOC != 0 {
				continue
			}
			want := before.relocs(i)
			for j := range want {
				if namesStub(want[j]) {
					want[j] = viewReloc{Offset: want[j].Offset, Type: 0} // R_<machine>_NONE of all machines here
					forgotten++
				}
			}
			expect.Equal(t, want, after.relocs(i), "%s", s.Name)
		}
	})
	if forgotten < 6 && !testing.Short() {
		t.Errorf("only %d entries named a stub", forgotten)
	}
}

// namesStub reports whether a relocation is against a stub that is defined elsewhere.
func namesStub(r viewReloc) bool {
	return stubID(r.Sym.Name) != "" && r.Sym.Section == elf.SHN_UNDEF
}

// Of an unknown machine it is not known which relocation names nothing.
func TestWhatIsNotLoadedOfUnknownMachines(t *testing.T) {
	data := objects.Read(t, "notloaded.amd64-clang19.o")
	binary.LittleEndian.PutUint16(data[18:], uint16(elf.EM_IA_64))
	text := headerAt(t, data, func(typ elf.SectionType, size uint64) bool { return typ == elf.SHT_PROGBITS && size > 0 })
	binary.LittleEndian.PutUint64(text[8:], 0) // its flags: nothing that is loaded names a stub
	run, err := newScratch(t).convert(data, patch.DefaultOptions())
	if err == nil || !strings.HasSuffix(err.Error(), "holds probes, and EM_IA_64 of class ELFCLASS64 is not supported") {
		t.Errorf("got %+v and error %v", run, err)
	}
}
