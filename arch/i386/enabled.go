package i386

import (
	"bytes"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
)

const callLen = 1 + x86.FieldLen // call rel32, and jmp rel32

// A helper that loads a semaphore has its own address from a function behind it, which
// reads where it returns to. A call of the next instruction, and a pop, would do as well,
// but for shadow stacks.
var (
	endbr32  = []byte{0xf3, 0x0f, 0x1e, 0xfb}
	load7    = []byte{0x0f, 0xb7, 0x80, 0x03, 0x00, 0x00, 0x00} // movzwl disp32(%eax),%eax
	readHere = []byte{0x8b, 0x04, 0x24}                         // mov (%esp),%eax
)

// loadField is the offset of the field in load7. The field's relocation is of a distance
// from itself, and what is added is one from the start, so this is its addend, too.
const loadField = 3

// LoadedSemaphore reads the load of a helper, with the call before and the return behind it.
func (machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	if bytes.Equal(t.At(at, len(endbr32)), endbr32) {
		at += uint64(len(endbr32))
	}
	call := t.At(at, callLen)
	base := at + callLen
	load := t.At(base, len(load7)+1)
	if call == nil || call[0] != x86.OpCall || load == nil || !bytes.Equal(load[:loadField], load7[:loadField]) {
		return 0, false
	}
	returns := retLen
	if load[len(load7)] == x86.OpJmp {
		returns = callLen
	} else if load[len(load7)] != x86.OpRet {
		return 0, false
	}
	if x86.Field(call) != int32(len(load7)+returns) {
		return 0, false
	}
	return uint64(uint32(base) + uint32(x86.Field(load[:len(load7)]))), true
}
