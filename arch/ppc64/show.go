package ppc64

import "fmt"

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

func show(insn uint32, pc uint64) string {
	switch insn {
	case insnNop:
		return "nop"
	case insnRet:
		return "blr"
	case insnMFLR0:
		return "mflr r0"
	case insnMFLR3:
		return "mflr r3"
	case insnMTLR0:
		return "mtlr r0"
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
