package s390x

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Stub returns, after it has set the result where there is one.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	var code []arch.Insn
	switch {
	case s.Semaphore != "":
		code = append(code, arch.Insn{
			Code: llhrl, Text: "llhrl %r2, %s", Symbol: s.Semaphore, Reloc: distance(),
		})
	case s.Kind == arch.Enabled:
		code = append(code, arch.Insn{Code: zero[:4], Text: "lghi %r2, 0"})
	}
	if s.Thunk != "" {
		return append(code, arch.Insn{Code: jg, Text: "jg", Symbol: s.Thunk, Reloc: distance()})
	}
	return append(code, arch.Insn{Code: ret[:2], Text: "br %r14"})
}

// distance returns the relocation of an instruction that names a symbol.
func distance() *elfreloc.Relocation {
	return &elfreloc.Relocation{Offset: fieldAt, Type: uint32(elf.R_390_PC32DBL), Addend: addend}
}
