package arm64

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/arch/arm64/arm64asm"
)

// decoder guards arm64asm.Decode, which writes a package-level variable.
var decoder sync.Mutex

// Disassemble shows code in GNU syntax.
func (Machine) Disassemble(code []byte, pc uint64) []string {
	decoder.Lock()
	defer decoder.Unlock()
	var out []string
	for len(code) >= insnLen {
		inst, err := arm64asm.Decode(code)
		if err != nil {
			out = append(out, fmt.Sprintf(".inst %#08x", binary.LittleEndian.Uint32(code)))
		} else {
			out = append(out, strings.TrimSpace(arm64asm.GNUSyntax(inst))) // "nop " has a space
		}
		code = code[insnLen:]
	}
	return out
}
