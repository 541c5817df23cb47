package loong64

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/arch/loong64/loong64asm"

	"sdtconvert/arch/internal/forms"
)

// Disassemble shows code in GNU syntax. Targets of branches are distances in words, as the
// decoder shows them.
func (Machine) Disassemble(code []byte, _ uint64) []string {
	return forms.Disassemble(code, insnLen, func(code []byte) (string, int) {
		inst, err := loong64asm.Decode(code)
		if err != nil {
			return fmt.Sprintf(".word %#08x", binary.LittleEndian.Uint32(code)), insnLen
		}
		return loong64asm.GNUSyntax(inst), insnLen
	})
}
