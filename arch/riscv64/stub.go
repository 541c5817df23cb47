package riscv64

import "sdtconvert/arch"

// Stub returns, after it has set the result where there is one. Its instructions
// are no compressed ones, which not every processor has.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	ret := arch.Insn{Code: forms[arch.Probe][arch.Tail][:insnLen], Text: uncompressed("ret")}
	if s.Kind == arch.Enabled {
		return []arch.Insn{{Code: forms[arch.Enabled][arch.Call][:insnLen], Text: uncompressed("li a0, 0")}, ret}
	}
	return []arch.Insn{ret}
}

func uncompressed(insn string) string {
	return ".option push; .option norvc; " + insn + "; .option pop"
}
