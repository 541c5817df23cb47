package i386

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDisassembleShowsWhatIsNoInstructionAsData(t *testing.T) {
	got := Machine{}.Disassemble(unhex(t, "c3 e8 00 31 c0"), 0)
	if diff := cmp.Diff([]string{"ret", ".byte 0xe8", "add %dh,(%ecx)", ".byte 0xc0"}, got); diff != "" {
		t.Error(diff)
	}
}

// What is another instruction with 64 bits.
func TestDisassembleKnowsThatItIsOf32Bits(t *testing.T) {
	got := Machine{}.Disassemble(unhex(t, "40 06 74 04"), 0x100)
	if diff := cmp.Diff([]string{"inc %eax", "push %es", "je 0x108"}, got); diff != "" {
		t.Error(diff)
	}
}
