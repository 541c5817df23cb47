package amd64

import (
	"debug/elf"

	"sdtconvert/arch"
)

// Stub returns, after it has set the result where there is one. int3 keeps the
// processor from speculating past a return.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	var code []arch.Insn
	if s.LandingPad {
		code = append(code, arch.Insn{Code: endbr64, Text: "endbr64"})
	}
	switch {
	case s.Semaphore != "":
		code = append(code, arch.Insn{
			Code: load7, Text: "movzwl %s(%rip), %eax", Symbol: s.Semaphore,
			Reloc: &arch.Reloc{Offset: 3, Type: uint32(elf.R_X86_64_PC32), Addend: endAddend},
		})
	case s.Kind == arch.Enabled:
		code = append(code, arch.Insn{Code: []byte{0x31, 0xc0}, Text: "xorl %eax, %eax"})
	}
	if s.Thunk != "" {
		return append(code, arch.Insn{
			Code: []byte{opJmp, 0, 0, 0, 0}, Text: "jmp", Symbol: s.Thunk,
			Reloc: &arch.Reloc{Offset: 1, Type: uint32(elf.R_X86_64_PLT32), Addend: endAddend},
		})
	}
	return append(code, arch.Insn{Code: []byte{opRet}, Text: "ret"}, arch.Insn{Code: []byte{0xcc}, Text: "int3"})
}
