package ppc64

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/ppc64/ppc64asm"

	"sdtconvert/internal/testkit/expect"
)

// As objdump has them.
func TestDisassemble(t *testing.T) {
	want := []string{
		"nop", "blr", "li r3,0", "b 0x1000000c", "bl 0x10000008", "ba 0x100", "bla 0xffffffffffffff00", "mflr r0",
		"bcl 20,31,0x10000024", "mflr r3", "mtlr r0", "addis r3,r3,-1", "lhz r3,-8(r3)", ".long 0x41820010", ".long 0x00000000",
	}
	insns := []uint32{
		0x60000000, 0x4e800020, 0x38600000, 0x48000000, 0x4bfffff9, 0x48000102, 0x4bffff03, 0x7c0802a6,
		0x429f0005, 0x7c6802a6, 0x7c0803a6, 0x3c63ffff, 0xa063fff8, 0x41820010, 0,
	}
	for _, m := range all {
		expect.Equal(t, want, m.Disassemble(append(m.code(insns...), 0x60), 0x10000000), "%d", m)
	}
}

// The decoder of golang.org/x/arch shows the same, but for the targets of b and bl, and the
// operands of bcl.
func TestDisassembleIsThatOfOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	known := []uint32{insnNop, insnRet, insnMFLR0, insnMFLR3, insnMTLR0, insnZero, insnADDIS, insnLHZ, insnB, insnHere}
	shown := 0
	for range 200_000 {
		insn := known[r.IntN(len(known))] ^ 1<<r.IntN(32)&r.Uint32()
		code := ELFv2.code(insn)
		got := strings.Join(ELFv2.Disassemble(code, 0x1000), "; ")
		if strings.HasPrefix(got, ".long") {
			continue
		}
		inst, err := ppc64asm.Decode(code, binary.BigEndian)
		if err != nil {
			t.Fatalf("%08x is %s, and to others %v", insn, got, err)
		}
		want := ppc64asm.GNUSyntax(inst, 0x1000)
		if opcode(insn) == opB || insn == insnHere {
			got, _, _ = strings.Cut(got, " ")
			want, _, _ = strings.Cut(want, " ")
		}
		if shown++; got != want {
			t.Fatalf("%08x is %s, and to others %s", insn, got, want)
		}
	}
	if shown < 1000 {
		t.Errorf("%d instructions were compared", shown)
	}
}
