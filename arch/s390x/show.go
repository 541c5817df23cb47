package s390x

import (
	"fmt"
	"strings"

	"golang.org/x/arch/s390x/s390xasm"

	"sdtconvert/arch/internal/forms"
)

// Disassemble shows code in GNU syntax, and what is no instruction as halfwords of data.
func (Machine) Disassemble(code []byte, pc uint64) []string {
	left := len(code)
	return forms.Disassemble(code, halfword, func(code []byte) (string, int) {
		n := length(code[0])
		if n > len(code) {
			n = halfword
		}
		return show(code[:n], pc+uint64(left-len(code))), n
	})
}

// length returns that of an instruction, which its first byte tells.
func length(first byte) int {
	return [...]int{2, 4, 4, 6}[first>>6]
}

// branches are the mnemonics of GNU that the decoder lacks.
var branches = strings.NewReplacer(
	"nopr 0", "nop", "bcr 3,", "bnler ", "bcr 5,", "bnher ", "bcr 6,", "blhr ", "bcr 9,", "bnlhr ", "bcr 10,", "bher ", "bcr 12,", "bler ",
	"brc 3,", "jnle ", "brc 5,", "jnhe ", "brc 6,", "jlh ", "brc 9,", "jnlh ", "brc 10,", "jhe ", "brc 12,", "jle ",
	"brcl 3,", "jgnle ", "brcl 5,", "jgnhe ", "brcl 6,", "jglh ", "brcl 9,", "jgnlh ", "brcl 10,", "jghe ", "brcl 12,", "jgle ",
)

func show(code []byte, pc uint64) string {
	if len(code) == length(code[0]) {
		if inst, err := s390xasm.Decode(code); err == nil && code[0] != 0 {
			return branches.Replace(s390xasm.GNUSyntax(inst, pc))
		}
	}
	var data []string
	for i := 0; i < len(code); i += halfword {
		data = append(data, fmt.Sprintf("0x%x", code[i:i+halfword]))
	}
	return ".short " + strings.Join(data, ",")
}
