package arm

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// The helper that loads a semaphore, by its assembly: by its distance, which is the same
// wherever the code is loaded. What is behind movw and movt is filled in by the linker.
const (
	movw  = 0xe3000000 // movw r0, #:lower16:(semaphore - . - 16)
	movt  = 0xe3400000 // movt r0, #:upper16:(semaphore - . - 12)
	addPC = 0xe08f0000 // add r0, pc, r0
	ldrh  = 0xe1d000b0 // ldrh r0, [r0]

	immediate = 0x000f0fff // of movw and movt
	loadLen   = 5 * insnLen
	here      = 2 * insnLen // where addPC is
)

// withImmediate puts 16 bits into movw or movt (DDI 0406C, A8.8.102).
func withImmediate(insn uint32, value int32) uint32 {
	return insn | uint32(value)>>12&0xf<<16 | uint32(value)&0xfff
}

func immediateOf(insn uint32) uint32 { return insn>>4&0xf000 | insn&0xfff }

// load loads the semaphore. Addends are in the instructions, and those of relocations that
// count from their own place: the upper half's is further on than the lower half's.
func (m Machine) load(semaphore string) []arch.Insn {
	reloc := func(typ elf.R_ARM) *elfreloc.Relocation {
		return &elfreloc.Relocation{Type: uint32(typ), Implicit: true}
	}
	return []arch.Insn{
		{Code: m.order.a32(withImmediate(movw, -here-aheadA32)), Text: "movw r0, #:lower16:(%s - . - 16)", Symbol: semaphore, Reloc: reloc(elf.R_ARM_MOVW_PREL_NC)},
		{Code: m.order.a32(withImmediate(movt, -here+insnLen-aheadA32)), Text: "movt r0, #:upper16:(%s - . - 12)", Symbol: semaphore, Reloc: reloc(elf.R_ARM_MOVT_PREL)},
		{Code: m.order.a32(addPC), Text: "add r0, pc, r0"},
		{Code: m.order.a32(ldrh), Text: "ldrh r0, [r0]"},
	}
}

// LoadedSemaphore reads the helper.
func (m Machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	code := t.At(at, loadLen)
	if code == nil {
		return 0, false
	}
	insn := func(i int) uint32 { return m.order.readA32(code[i*insnLen:]) }
	if insn(0)&^immediate != movw || insn(1)&^immediate != movt || insn(2) != addPC || insn(3) != ldrh || insn(4) != ret {
		return 0, false
	}
	return wrap(at + here + aheadA32 + uint64(immediateOf(insn(1))<<16|immediateOf(insn(0)))), true
}
