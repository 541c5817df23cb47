package ppc64

import (
	"fmt"
	"sync"
)

// Disassemble shows the instructions that sites, their disabled forms and helpers consist
// of in GNU syntax, and all others as data. The decoder of golang.org/x/arch, to which
// the tests compare it, knows all; but it fills in tables whenever a program starts.
func (m Machine) Disassemble(code []byte, pc uint64) []string {
	var out []string
	for ; len(code) >= insnLen; code, pc = code[insnLen:], pc+insnLen {
		out = append(out, show(m.insn(code), pc))
	}
	return out
}

// fixedText are the texts of instructions whose operands never differ.
var fixedText = sync.OnceValue(func() map[uint32]string {
	return map[uint32]string{
		insnNop: "nop", insnRet: "blr", insnMFLR0: "mflr r0", insnMFLR3: "mflr r3", insnMTLR0: "mtlr r0",
	}
})

func show(insn uint32, pc uint64) string {
	if text, ok := fixedText()[insn]; ok {
		return text
	}
	op, first, second, displacement := dForm(insn)
	to, _ := target(insn, pc)
	switch {
	case op == opB:
		return "b" + [...]string{"", "l", "a", "la"}[insn&(linkBit|absoluteBit)] + fmt.Sprintf(" 0x%x", to)
	case insn == insnHere:
		return fmt.Sprintf("bcl 20,31,0x%x", to)
	case op == opcode(insnZero) && second == 0:
		return fmt.Sprintf("li r%d,%d", first, displacement)
	case op == opADDIS && second != 0:
		return fmt.Sprintf("addis r%d,r%d,%d", first, second, displacement)
	case op == opcode(insnLHZ) && second != 0:
		return fmt.Sprintf("lhz r%d,%d(r%d)", first, displacement, second)
	}
	return fmt.Sprintf(".long 0x%08x", insn)
}
