package arm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/arch/arm/armasm"

	"sdtconvert/internal/testkit/expect"
)

// What is shown of A32 is what the decoder of golang.org/x/arch reads, with every condition;
// but it has no name for the nop of all processors, and shows distances.
func TestDisassembleA32(t *testing.T) {
	const pc = 0x1000
	for _, insn := range []uint32{nop, oldNop, ret, zero, bA32, blA32, addPC, ldrh, withImmediate(movw, 0x1234), withImmediate(movt, -16)} {
		for cond := range uint32(never) {
			var code [insnLen]byte
			binary.LittleEndian.PutUint32(code[:], insn&anyCondition|cond<<28)
			inst := expect.Value(armasm.Decode(code[:], armasm.ModeARM))(t, "% x", code)
			want := armasm.GNUSyntax(inst)
			if rel, ok := inst.Args[0].(armasm.PCRel); ok {
				name, _, _ := strings.Cut(want, " ")
				want = fmt.Sprintf("%s 0x%x", name, pc+aheadA32+int64(rel))
			}
			if insn == oldNop {
				want = strings.Replace(strings.TrimSuffix(want, " r0, r0"), "mov", "nop", 1)
			}
			if got := (Machine{}).Disassemble(code[:], pc); len(got) != 1 || got[0] != want {
				t.Errorf("% x is %q, want %s", code, got, want)
			}
		}
	}
}

func TestDisassembleBigEndian(t *testing.T) {
	got := Machine{big}.Disassemble(unhex(t, "e12fff1e"+"f3af8000"+"200047704770"), 0)
	expect.Equal(t, []string{"bx lr", "nop.w", "movs r0, #0", "bx lr", "bx lr"}, got)
}
