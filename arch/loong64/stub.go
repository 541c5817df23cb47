package loong64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Stub returns, after it has set the result where there is one.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	code := []arch.Insn{{Code: ret, Text: "ret"}}
	switch {
	case s.Semaphore != "":
		return append([]arch.Insn{{
			Code: pcalau12i, Text: "pcalau12i $a0, %pc_hi20(%s)", Symbol: s.Semaphore, Reloc: &elfreloc.Relocation{Type: uint32(elf.R_LARCH_PCALA_HI20)},
		}, {
			Code: ldhu, Text: "ld.hu $a0, $a0, %pc_lo12(%s)", Symbol: s.Semaphore, Reloc: &elfreloc.Relocation{Type: uint32(elf.R_LARCH_PCALA_LO12)},
		}}, code...)
	case s.Kind == arch.Enabled:
		return append([]arch.Insn{{Code: zero, Text: "move $a0, $zero"}}, code...)
	}
	return code
}
