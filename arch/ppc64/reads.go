package ppc64

import "sdtconvert/arch"

// Reads finds loads of a halfword and additions with a distance from the pointer to the table
// of contents, of which addis may have the upper bits.
func (m Machine) Reads(code []byte, pc, got, lo, hi uint64, f func(at, address uint64)) {
	toc := got + tocBias
	tell := func(i int, from uint32, base uint64) {
		op, _, register, displacement := dForm(m.insn(code[i:]))
		if op != opLHZ && op != opLHA && op != opADDI || register != from {
			return
		}
		if address := base + uint64(displacement); lo <= address && address < hi {
			f(pc+uint64(i), address)
		}
	}
	for i := 0; i+insnLen <= len(code); i += insnLen {
		tell(i, regTOC, toc)
		op, to, base, high := dForm(m.insn(code[i:]))
		if op != opADDIS || base != regTOC {
			continue
		}
		for j := i + insnLen; j < i+arch.ReadWindow && j+insnLen <= len(code); j += insnLen {
			tell(j, to, toc+uint64(high<<16))
		}
	}
}

const (
	opLHZ = 40
	opLHA = 42
)
