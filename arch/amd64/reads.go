package amd64

import "encoding/binary"

// Reads finds instructions that read a word of 16 or 32 bits whose place four bytes of
// displacement tell: from the instruction's end, or absolute.
func (machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	for i := 3; i+4 <= len(code); i++ {
		modRM, op, absolute := code[i-1], code[i-2], false
		if modRM == 0x25 && code[i-2]&0xc7 == 0x04 { // a SIB byte without base and index
			modRM, op, absolute = code[i-2], code[i-3], true
		} else if modRM&0xc7 != 0x05 { // disp32(%rip)
			continue
		}
		immediate, ok := readsWord(op, modRM>>3&7)
		if !ok {
			continue
		}
		address := uint64(int64(int32(binary.LittleEndian.Uint32(code[i:]))))
		if !absolute {
			address += pc + uint64(i) + 4 + immediate
		}
		if lo <= address && address < hi {
			f(pc+uint64(i), address)
		}
	}
}

// readsWord recognises the instructions that read a word, by the last byte of the opcode and the
// three bits that extend it, and how many bytes of an immediate stand behind the
// displacement where operands have 16 bits.
func readsWord(op, extension byte) (immediate uint64, ok bool) {
	switch op {
	case 0xb7, 0xbf, 0x8b, 0x3b, 0x39, 0x85: // movzx, movsx, mov, cmp, cmp, test
		return 0, true
	case 0x83: // cmp $imm8
		return 1, extension == 7
	case 0x81: // cmp $imm16
		return 2, extension == 7
	case 0xf7: // test $imm16
		return 2, extension == 0
	}
	return 0, false
}
