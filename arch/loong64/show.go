package loong64

import (
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/arch/loong64/loong64asm"
)

// decoder guards loong64asm.Decode, which writes a package-level variable.
var decoder sync.Mutex

// Disassemble shows code in GNU syntax. Targets of branches are distances in words, as the
// decoder shows them.
func (Machine) Disassemble(code []byte, _ uint64) []string {
	decoder.Lock()
	defer decoder.Unlock()
	var out []string
	for len(code) >= insnLen {
		inst, err := loong64asm.Decode(code)
		if err != nil {
			out = append(out, fmt.Sprintf(".word %#08x", binary.LittleEndian.Uint32(code)))
		} else {
			out = append(out, loong64asm.GNUSyntax(inst))
		}
		code = code[insnLen:]
	}
	return out
}
