package arm64

import "sdtconvert/arch"

// Stub returns, after it has set the result where there is one. The landing pad
// is a hint, so that assemblers take it for any architecture level.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	var code []arch.Insn
	if s.LandingPad {
		code = append(code, arch.Insn{Code: []byte{0x5f, 0x24, 0x03, 0xd5}, Text: "hint #34"}) // bti c
	}
	if s.Kind == arch.Enabled {
		code = append(code, arch.Insn{Code: zero, Text: "mov w0, #0"})
	}
	return append(code, arch.Insn{Code: ret, Text: "ret"})
}
