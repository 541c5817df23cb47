package amd64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

// Stub returns, after it has set the result where there is one.
func (machine) Stub(s arch.Stub) []arch.Insn { return mode.Stub(s, loadSemaphore) }

// loadSemaphore loads a semaphore and returns.
func loadSemaphore(semaphore string, returns []arch.Insn) []arch.Insn {
	return append([]arch.Insn{{
		Code: load7, Text: "movzwl %s(%rip), %eax", Symbol: semaphore,
		Reloc: &elfreloc.Relocation{Offset: 3, Type: uint32(elf.R_X86_64_PC32), Addend: x86.EndAddend},
	}}, returns...)
}
