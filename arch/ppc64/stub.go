package ppc64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Stub returns, after it has set the result where there is one.
func (m Machine) Stub(s arch.Stub) []arch.Insn {
	ret := arch.Insn{Code: m.code(insnRet), Text: "blr"}
	switch {
	case s.Semaphore != "":
		return []arch.Insn{
			{Code: m.code(insnMFLR0), Text: "mflr 0"},
			{Code: m.code(insnHere), Text: "bcl 20, 31, 1f"},
			{Code: m.code(insnMFLR3), Text: "1: mflr 3"},
			{Code: m.code(insnMTLR0), Text: "mtlr 0"},
			{Code: m.code(insnADDIS), Text: "addis 3, 3, %s-1b@ha", Symbol: s.Semaphore, Reloc: m.fromHereTo(elf.R_PPC64_REL16_HA, highAt)},
			{Code: m.code(insnLHZ), Text: "lhz 3, %s-1b@l(3)", Symbol: s.Semaphore, Reloc: m.fromHereTo(elf.R_PPC64_REL16_LO, lowAt)},
			ret,
		}
	case s.Kind == arch.Enabled:
		return []arch.Insn{{Code: m.code(insnZero), Text: "li 3, 0"}, ret}
	}
	return []arch.Insn{ret}
}

// fromHereTo returns the relocation of the instruction at an offset, whose field is of a
// distance that starts where mflr r3 is, and not at the field.
func (m Machine) fromHereTo(typ elf.R_PPC64, at int64) *elfreloc.Relocation {
	half := m.half()
	return &elfreloc.Relocation{Offset: half, Type: uint32(typ), Addend: at + int64(half) - hereAt}
}
