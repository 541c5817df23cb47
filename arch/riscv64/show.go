package riscv64

import (
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/arch/riscv64/riscv64asm"
)

// decoder guards riscv64asm.Decode, which writes a package-level variable.
var decoder sync.Mutex

// Disassemble shows code in GNU syntax.
func (Machine) Disassemble(code []byte, pc uint64) []string {
	decoder.Lock()
	defer decoder.Unlock()
	var out []string
	for len(code) >= 2 {
		inst, err := riscv64asm.Decode(code)
		n := inst.Len
		if err != nil || n == 0 {
			n = 2
			out = append(out, fmt.Sprintf(".short %#04x", binary.LittleEndian.Uint16(code)))
		} else {
			out = append(out, riscv64asm.GNUSyntax(inst))
		}
		code = code[n:]
	}
	return out
}
