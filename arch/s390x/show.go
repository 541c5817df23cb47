package s390x

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Disassemble shows the instructions that sites and their disabled forms consist of in GNU
// syntax, and all others as data. The decoder of golang.org/x/arch, to which the tests
// compare it, knows all; but its tables are filled in whenever a program starts, and
// take a twentieth of the time that one object takes.
func (Machine) Disassemble(code []byte, pc uint64) []string {
	var out []string
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

// show returns an instruction, or halfwords of data.
func show(code []byte, pc uint64) string {
	text := ""
	switch {
	case len(code) < length(code[0]):
	case len(code) == 2:
		text = showRR(code)
	case len(code) == 4:
		text = showRI(code, pc)
	default:
		text = showRIL(code, pc)
	}
	if text != "" {
		return text
	}
	var data []string
	for i := 0; i < len(code); i += halfword {
		data = append(data, fmt.Sprintf("0x%x", code[i:i+halfword]))
	}
	return ".short " + strings.Join(data, ",")
}

// conditions are what branches are called by theirs.
var conditions = [...]string{
	"nop", "o", "h", "nle", "l", "nhe", "lh", "ne", "e", "nlh", "he", "nl", "le", "nh", "no", "",
}

func showRR(code []byte) string {
	first, second := code[1]>>4, code[1]&0xf
	switch {
	case code[0] == 0x07 && first == never:
		return fmt.Sprintf("nopr %%r%d", second)
	case code[0] == 0x07:
		return fmt.Sprintf("b%sr %%r%d", conditions[first], second)
	case code[0] == 0x0d:
		return fmt.Sprintf("basr %%r%d,%%r%d", first, second)
	}
	return ""
}

// showRI shows what has 16 bits behind a register or a condition, and bc that does nothing.
func showRI(code []byte, pc uint64) string {
	if binary.BigEndian.Uint32(code) == 0x47000000 {
		return "nop"
	}
	half, value := code[1]>>4, int64(int16(binary.BigEndian.Uint16(code[2:])))
	to := pc + uint64(value*halfword)
	switch op := uint16(code[0])<<4 | uint16(code[1]&0xf); op {
	case 0xa74:
		return fmt.Sprintf("j%s 0x%x", conditions[half], to)
	case 0xa75:
		return fmt.Sprintf("bras %%r%d,0x%x", half, to)
	case 0xa79:
		return fmt.Sprintf("lghi %%r%d,%d", half, value)
	}
	return ""
}

func showRIL(code []byte, pc uint64) string {
	op, half := opcode(code)
	to := target(code, pc)
	name := ""
	switch op {
	case opBRCL:
		return fmt.Sprintf("jg%s 0x%x", conditions[half], to)
	case opLARL:
		name = "larl"
	case opBRASL:
		name = "brasl"
	case opLLHRL:
		name = "llhrl"
	case opLGRL:
		name = "lgrl"
	default:
		return ""
	}
	return fmt.Sprintf("%s %%r%d,0x%x", name, half, to)
}
