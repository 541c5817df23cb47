package i386

import (
	"debug/elf"

	"sdtconvert/arch"
)

// retLen is the length of ret and int3, which keeps the processor from speculating past
// it.
const retLen = 2

// Stub returns, after it has set the result where there is one.
func (Machine) Stub(s arch.Stub) []arch.Insn {
	var code []arch.Insn
	if s.LandingPad {
		code = append(code, arch.Insn{Code: endbr32, Text: "endbr32"})
	}
	returns := ret(s.Thunk)
	switch {
	case s.Semaphore != "":
		return append(code, load(s.Semaphore, returns)...)
	case s.Kind == arch.Enabled:
		code = append(code, arch.Insn{Code: []byte{0x31, 0xc0}, Text: "xorl %eax, %eax"})
	}
	return append(code, returns...)
}

// ret returns, through a thunk if it has a name.
func ret(thunk string) []arch.Insn {
	if thunk == "" {
		return []arch.Insn{{Code: []byte{opRet}, Text: "ret"}, {Code: []byte{0xcc}, Text: "int3"}}
	}
	r := distance(1)
	return []arch.Insn{{Code: jmp5, Text: "jmp", Symbol: thunk, Reloc: &r}}
}

// load loads a semaphore, by its distance from the label 0, and returns. Behind it is the
// function that tells where the label is.
func load(semaphore string, returns []arch.Insn) []arch.Insn {
	length := 0
	for _, i := range returns {
		length += len(i.Code)
	}
	code := []arch.Insn{
		{Code: []byte{opCall, byte(len(load7) + length), 0, 0, 0}, Text: "call 1f"},
		{
			Code: load7, Text: "0: movzwl %s-0b(%eax), %eax", Symbol: semaphore,
			Reloc: &arch.Reloc{Offset: loadField, Type: uint32(elf.R_386_PC32), Implicit: true},
		},
	}
	code = append(code, returns...)
	code = append(code, arch.Insn{Code: readHere, Text: "1: movl (%esp), %eax"})
	return append(code, returns...)
}
