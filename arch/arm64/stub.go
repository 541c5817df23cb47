package arm64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Stub returns, after it has set the result where there is one. The landing pad
// is a hint, so that assemblers take it for any architecture level.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	var code []arch.Insn
	if s.LandingPad {
		code = append(code, arch.Insn{Code: btiC, Text: "hint #34"})
	}
	switch {
	case s.Semaphore != "":
		code = append(code, arch.Insn{
			Code: adrp, Text: "adrp x0, %s", Symbol: s.Semaphore, Reloc: &elfreloc.Relocation{Type: uint32(elf.R_AARCH64_ADR_PREL_PG_HI21)},
		}, arch.Insn{
			Code: ldrh, Text: "ldrh w0, [x0, :lo12:%s]", Symbol: s.Semaphore, Reloc: &elfreloc.Relocation{Type: uint32(elf.R_AARCH64_LDST16_ABS_LO12_NC)},
		})
	case s.Kind == arch.Enabled:
		code = append(code, arch.Insn{Code: zero, Text: "mov w0, #0"})
	}
	return append(code, arch.Insn{Code: ret, Text: "ret"})
}
