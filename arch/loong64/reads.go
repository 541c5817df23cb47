package loong64

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Reads finds loads of a halfword behind pcalau12i or pcaddi, and behind an addition to it.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	const (
		opPCADDI = 0x18000000 // pcaddi rd, si20
		opLDH    = 0x28400000 // ld.h rd, rj, si12
		opADDID  = 0x02c00000 // addi.d rd, rj, si12
	)
	insn := func(i int) uint32 { return binary.LittleEndian.Uint32(code[i:]) }
	load := func(i int, register uint32, base uint64) {
		next := insn(i)
		if op := next & loadMask; op != opLDH && op != opLDHU || next>>5&31 != register {
			return
		}
		if address := base + signed12(next); lo <= address && address < hi {
			f(pc+uint64(i), address)
		}
	}
	for i := 0; i+insnLen <= len(code); i += insnLen {
		first, at := insn(i), pc+uint64(i)
		var base uint64
		switch first & pcMask {
		case opPCADDI:
			base = at + signed20(first)<<2
		case opPCALAU12I:
			base = at&^0xfff + signed20(first)<<12
		default:
			continue
		}
		for j := i + insnLen; j < i+arch.ReadWindow && j+insnLen <= len(code); j += insnLen {
			load(j, first&31, base)
			if next := insn(j); next&loadMask == opADDID && next>>5&31 == first&31 {
				for k := j + insnLen; k < i+arch.ReadWindow && k+insnLen <= len(code); k += insnLen {
					load(k, next&31, base+signed12(next))
				}
			}
		}
	}
}
