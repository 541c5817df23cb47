package i386

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

// retLen is the length of ret and int3, which keeps the processor from speculating past
// it.
const retLen = 2

// Stub returns, after it has set the result where there is one.
func (machine) Stub(s arch.Stub) []arch.Insn { return mode.Stub(s, loadSemaphore) }

// loadSemaphore loads a semaphore, by its distance from the label 0, and returns. Behind it is the
// function that tells where the label is.
func loadSemaphore(semaphore string, returns []arch.Insn) []arch.Insn {
	length := 0
	for _, i := range returns {
		length += len(i.Code)
	}
	code := []arch.Insn{
		{Code: []byte{x86.OpCall, byte(len(load7) + length), 0, 0, 0}, Text: "call 1f"},
		{
			Code: load7, Text: "0: movzwl %s-0b(%eax), %eax", Symbol: semaphore,
			Reloc: &elfreloc.Relocation{Offset: loadField, Type: uint32(elf.R_386_PC32), Addend: loadField, Implicit: true},
		},
	}
	code = append(code, returns...)
	code = append(code, arch.Insn{Code: readHere, Text: "1: movl (%esp), %eax"})
	return append(code, returns...)
}
