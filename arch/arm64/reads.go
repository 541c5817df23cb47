package arm64

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Reads finds loads of a halfword behind adrp or adr, and behind an addition to it.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	insn := func(i int) uint32 { return binary.LittleEndian.Uint32(code[i:]) }
	// load tells a load at i from behind a register that has an address.
	load := func(i int, register uint32, base uint64) {
		next := insn(i)
		if next>>5&31 != register || next&0xff400000 != 0x79400000 && next&0xff800000 != 0x79800000 { // ldrh, ldrsh
			return
		}
		if address := base + uint64(next>>10&0xfff)*2; lo <= address && address < hi {
			f(pc+uint64(i), address)
		}
	}
	for i := 0; i+insnLen <= len(code); i += insnLen {
		first, at := insn(i), pc+uint64(i)
		base := at + uint64(int64(int32(first<<8)>>13)<<2|int64(first>>29&3)) // adr: immhi:immlo, signed
		switch first & 0x9f000000 {
		case 0x10000000: // adr xd, label
		case 0x90000000: // adrp xd, page
			base = at&^0xfff + (base-at)<<12
		default:
			continue
		}
		register := first & 31
		for j := i + insnLen; j < i+arch.ReadWindow && j+insnLen <= len(code); j += insnLen {
			load(j, register, base)
			if next := insn(j); next&0xffc00000 == 0x91000000 && next>>5&31 == register { // add xd, xn, imm12
				for k := j + insnLen; k < i+arch.ReadWindow && k+insnLen <= len(code); k += insnLen {
					load(k, next&31, base+uint64(next>>10&0xfff))
				}
			}
		}
	}
}
