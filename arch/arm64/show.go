package arm64

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"

	"sdtconvert/arch/internal/forms"
)

// Disassemble shows code in GNU syntax.
func (Machine) Disassemble(code []byte, _ uint64) []string {
	return forms.Disassemble(code, insnLen, func(code []byte) (string, int) {
		inst, err := arm64asm.Decode(code)
		if err != nil {
			return fmt.Sprintf(".inst %#08x", binary.LittleEndian.Uint32(code)), insnLen
		}
		return strings.TrimSpace(arm64asm.GNUSyntax(inst)), insnLen // "nop " has a space
	})
}
