package amd64

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
)

func TestDisassembleShowsWhatIsNoInstructionAsData(t *testing.T) {
	got := Machine{}.Disassemble(unhex(t, "c3 06 31 c0"), 0)
	if diff := cmp.Diff([]string{"retq", ".byte 0x06", "xor %eax,%eax"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDisassembleShowsWhereAJumpGoes(t *testing.T) {
	got := Machine{}.Disassemble(unhex(t, "74 04"), 0x100)
	if diff := cmp.Diff([]string{"je 0x106"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDataRelocations(t *testing.T) {
	for typ, want := range map[elf.R_X86_64]arch.DataReloc{
		elf.R_X86_64_64: {Size: 8}, elf.R_X86_64_32: {Size: 4}, elf.R_X86_64_PC32: {}, elf.R_X86_64_NONE: {},
	} {
		if got := (Machine{}).DataReloc(uint32(typ)); got != want {
			t.Errorf("%v: got %+v, want %+v", typ, got, want)
		}
	}
}
