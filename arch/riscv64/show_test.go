package riscv64

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
)

func TestDisassembleShowsWhatIsNoInstructionAsData(t *testing.T) {
	got := Machine{}.Disassemble(append([]byte{0xff, 0xff}, words(0x00000013)...), 0)
	if diff := cmp.Diff([]string{".short 0xffff", "nop"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDataRelocations(t *testing.T) {
	for typ, want := range map[elf.R_RISCV]arch.DataReloc{
		elf.R_RISCV_64:    {Size: 8},
		elf.R_RISCV_ADD16: {Size: 2, Op: arch.Add},
		elf.R_RISCV_SUB8:  {Size: 1, Op: arch.Sub},
		elf.R_RISCV_SET32: {Size: 4},
		elf.R_RISCV_RELAX: {},
	} {
		if got := (Machine{}).DataReloc(uint32(typ)); got != want {
			t.Errorf("%v: got %+v, want %+v", typ, got, want)
		}
	}
}
