package s390x

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Disassemble shows the instructions that sites, their disabled forms and helpers consist of in GNU syntax, and all others as
// halfwords of data. The decoder of golang.org/x/arch, to which the tests compare it, knows all; but it fills in tables whenever a
// program starts.
func (Machine) Disassemble(code []byte, pc uint64) (out []string) {
	for len(code) >= halfword {
		n := length(code[0])
		if n > len(code) {
			n = halfword
		}
		out = append(out, show(code[:n], pc))
		code, pc = code[n:], pc+uint64(n)
	}
	return out
}

// length returns that of an instruction, which its first byte tells.
func length(first byte) int {
	return [...]int{2, 4, 4, 6}[first>>6]
}

// conditions are the letters for the masks of branches: those of a branch that always jumps, and of one that never does, are others.
var conditions = [...]string{"nop", "o", "h", "nle", "l", "nhe", "lh", "ne", "e", "nlh", "he", "nl", "le", "nh", "no", ""}

// Opcodes of instructions with a distance or a number of 16 bits: the first byte, and the lower half of the second.
const (
	opBRC  = 0xa74
	opBRAS = 0xa75
	opLGHI = 0xa79
)

// noBranch is a branch on no condition, whatever its operands.
var noBranch = []byte{0x47, 0, 0, 0}

func show(code []byte, pc uint64) string {
	if len(code) != length(code[0]) {
		return data(code)
	}
	if code[0] == ret[0] && len(code) == halfword {
		return showBCR(code[1]>>4, code[1]&15)
	}
	switch {
	case len(code) == halfword:
		return data(code)
	case bytes.Equal(code, noBranch):
		return "nop"
	}
	first, short := code[1]>>4, int64(int16(binary.BigEndian.Uint16(code[2:])))
	near := pc + uint64(2*short)
	switch opcode := int(code[0])<<4 | int(code[1]&15); opcode {
	case opBRC:
		return fmt.Sprintf("j%s 0x%x", conditions[first], near)
	case opBRAS:
		return fmt.Sprintf("bras %%r%d,0x%x", first, near)
	case opLGHI:
		return fmt.Sprintf("lghi %%r%d,%d", first, short)
	case opLARL, opBRCL, opBRASL, opLLHRL, opLGRL:
		far := pc + uint64(2*int64(int32(binary.BigEndian.Uint32(code[2:]))))
		if opcode == opBRCL {
			return fmt.Sprintf("jg%s 0x%x", conditions[first], far)
		}
		name := map[int]string{opLARL: "larl", opBRASL: "brasl", opLLHRL: "llhrl", opLGRL: "lgrl"}[opcode]
		return fmt.Sprintf("%s %%r%d,0x%x", name, first, far)
	}
	return data(code)
}

// showBCR shows a branch to a register on a condition.
func showBCR(mask, register byte) string {
	switch {
	case mask == 0:
		return fmt.Sprintf("nopr %%r%d", register)
	}
	return fmt.Sprintf("b%sr %%r%d", conditions[mask], register)
}

// data shows code as data.
func data(code []byte) string {
	var halfwords []string
	for i := 0; i < len(code); i += halfword {
		halfwords = append(halfwords, fmt.Sprintf("0x%x", code[i:i+halfword]))
	}
	return ".short " + strings.Join(halfwords, ",")
}
