package loong64

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Reads finds pcalau12i with a load of a halfword or an addition behind it, and pcaddi.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	const (
		opPCADDI = 0x18000000 // pcaddi rd, si20
		opLDH    = 0x28400000 // ld.h rd, rj, si12
		opADDID  = 0x02c00000 // addi.d rd, rj, si12
	)
	tell := func(i int, address uint64) {
		if lo <= address && address < hi {
			f(pc+uint64(i), address)
		}
	}
	for i := 0; i+insnLen <= len(code); i += insnLen {
		first, at := binary.LittleEndian.Uint32(code[i:]), pc+uint64(i)
		distance := int64(int32(first<<7) >> 12) // si20, signed
		switch first & pcMask {
		case opPCADDI:
			tell(i, at+uint64(distance<<2))
			continue
		case opPCALAU12I:
		default:
			continue
		}
		page := at&^0xfff + uint64(distance<<12)
		for j := i + insnLen; j < i+arch.ReadWindow && j+insnLen <= len(code); j += insnLen {
			next := binary.LittleEndian.Uint32(code[j:])
			op := next & loadMask
			if (op == opLDH || op == opLDHU || op == opADDID) && next>>5&31 == first&31 {
				tell(j, page+uint64(int64(int32(next<<10)>>20)))
			}
		}
	}
}
