package riscv64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Stub returns, after it has set the result where there is one. Its instructions
// are uncompressed, as not every processor has compressed ones.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	ret := arch.Insn{Code: table[arch.Probe][arch.Tail][:insnLen], Text: uncompressed("ret")}
	if s.Semaphore != "" {
		return []arch.Insn{{
			Code: auipcA0, Text: unrelaxed("auipc a0, %pcrel_hi(%s)"), Symbol: s.Semaphore, Reloc: &elfreloc.Relocation{Type: uint32(elf.R_RISCV_PCREL_HI20)},
		}, {
			Code: lhuA0, Text: unrelaxed("lhu a0, %pcrel_lo(%s)(a0)"), Symbol: s.Self, Reloc: &elfreloc.Relocation{Type: uint32(elf.R_RISCV_PCREL_LO12_I)},
		}, ret}
	}
	if s.Kind == arch.Enabled {
		return []arch.Insn{{Code: table[arch.Enabled][arch.Call][:insnLen], Text: uncompressed("li a0, 0")}, ret}
	}
	return []arch.Insn{ret}
}

// unrelaxed keeps linkers from making less of an instruction.
func unrelaxed(insn string) string { return uncompressed(".option norelax; " + insn) }

func uncompressed(insn string) string {
	return ".option push; .option norvc; " + insn + "; .option pop"
}
