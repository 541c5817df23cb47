package riscv64

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/arch/riscv64/riscv64asm"

	"sdtconvert/arch/internal/forms"
)

// Disassemble shows code in GNU syntax.
func (Machine) Disassemble(code []byte, _ uint64) []string {
	return forms.Disassemble(code, 2, func(code []byte) (string, int) {
		inst, err := riscv64asm.Decode(code)
		if err != nil || inst.Len == 0 {
			return fmt.Sprintf(".short %#04x", binary.LittleEndian.Uint16(code)), 2
		}
		return riscv64asm.GNUSyntax(inst), inst.Len
	})
}
