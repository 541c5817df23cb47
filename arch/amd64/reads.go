package amd64

import "encoding/binary"

// Reads finds operands in memory of four bytes of displacement: from the instruction's end,
// which up to four bytes of an immediate follow, or absolute.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	for i := 2; i+4 <= len(code); i++ {
		modRM := code[i-1]
		displacement := uint64(int64(int32(binary.LittleEndian.Uint32(code[i:]))))
		switch at := pc + uint64(i); {
		case modRM&0xc7 == 0x05: // disp32(%rip)
			for _, immediate := range []uint64{0, 1, 2, 4} {
				if address := at + 4 + immediate + displacement; lo <= address && address < hi {
					f(at, address)
				}
			}
		case modRM == 0x25 && code[i-2]&0xc7 == 0x04: // disp32, by a SIB byte without base and index
			if lo <= displacement && displacement < hi {
				f(at, displacement)
			}
		}
	}
}
