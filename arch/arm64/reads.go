package arm64

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Reads finds adrp with a load of a halfword or an addition behind it, and adr.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	insn := func(i int) uint32 { return binary.LittleEndian.Uint32(code[i:]) }
	tell := func(i int, address uint64) {
		if lo <= address && address < hi {
			f(pc+uint64(i), address)
		}
	}
	for i := 0; i+insnLen <= len(code); i += insnLen {
		first, at := insn(i), pc+uint64(i)
		distance := int64(int32(first<<8)>>13)<<2 | int64(first>>29&3) // immhi:immlo, signed
		switch first & 0x9f000000 {
		case 0x10000000: // adr xd, label
			tell(i, at+uint64(distance))
			continue
		case 0x90000000: // adrp xd, page
		default:
			continue
		}
		page := at&^0xfff + uint64(distance<<12)
		for j := i + insnLen; j < i+arch.ReadWindow && j+insnLen <= len(code); j += insnLen {
			next := insn(j)
			if next>>5&31 == first&31 {
				switch offset := uint64(next >> 10 & 0xfff); {
				case next&0xff400000 == 0x79400000, next&0xff800000 == 0x79800000: // ldrh, ldrsh wt, [xn, offset]
					tell(j, page+2*offset)
				case next&0xffc00000 == 0x91000000: // add xd, xn, offset
					tell(j, page+offset)
				}
			}
			if next&0x9f00001f == 0x90000000|first&31 {
				break // another page
			}
		}
	}
}
