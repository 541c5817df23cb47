package convert

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			if diff := cmp.Diff(want, after.relocs(i)); diff != "" {
				t.Errorf("%s: %s", s.Name, diff)
			}
		}
	})
	if forgotten < 6 {
		t.Errorf("only %d entries named a stub", forgotten)
	}
}

// namesStub reports whether a relocation is against a stub that is defined elsewhere.
func namesStub(r viewReloc) bool {
	return stubID(r.Sym.Name) != "" && r.Sym.Section == elf.SHN_UNDEF
}
