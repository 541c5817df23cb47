package x86

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Disassemble shows code in GNU syntax.
func (m *Mode) Disassemble(code []byte, pc uint64) []string {
	var out []string
	for len(code) > 0 {
		inst, err := x86asm.Decode(code, m.Bits)
		n := inst.Len
		if err != nil || n == 0 || inst.Op == 0 { // of what is cut off a byte is taken for a prefix
			out, n = append(out, fmt.Sprintf(".byte %#02x", code[0])), 1
		} else {
			out = append(out, x86asm.GNUSyntax(inst, pc, nil))
		}
		code, pc = code[n:], pc+uint64(n)
	}
	return out
}

// Before shows the bytes that lead to the relocated field, as the instruction that was met.
func Before(t arch.Text, r elfreloc.Relocation) string {
	for n := 3; n > 0; n-- {
		if b := t.At(r.Offset-uint64(n), n); b != nil && r.Offset >= uint64(n) {
			return fmt.Sprintf("bytes % x", b)
		}
	}
	return "no bytes before the field"
}
