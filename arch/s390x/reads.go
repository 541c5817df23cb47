package s390x

import "sdtconvert/arch"

// Reads finds the loads and comparisons of a halfword at a distance, and larl with a load or
// comparison of a halfword behind it.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	for i := 0; i+siteLen <= len(code); i += halfword {
		op, register := opcode(code[i:])
		isRead := readsHere(op)
		if !isRead && op != opLARL {
			continue
		}
		address := target(code[i:], pc+uint64(i))
		if address < lo || address >= hi {
			continue
		}
		if isRead {
			f(pc+uint64(i), address)
			continue
		}
		for j := i + siteLen; j < i+arch.ReadWindow && j+siteLen <= len(code); j += halfword {
			if readsThere(code[j:], register) {
				f(pc+uint64(j), address)
				break
			}
		}
	}
}

// readsHere recognises the opcodes of format RIL that read a halfword.
func readsHere(op uint16) bool {
	switch op {
	case 0xc42, 0xc44, 0xc45, 0xc46: // llhrl, lghrl, lhrl, llghrl
		return true
	case 0xc64, 0xc65, 0xc66, 0xc67: // cghrl, chrl, clghrl, clhrl
		return true
	}
	return false
}

// readsThere reports whether code reads the halfword at 0(base).
func readsThere(code []byte, base byte) bool {
	switch {
	case code[0] == 0x48, code[0] == 0x49: // lh, ch r, 0(base)
		return code[1]&0xf == 0 && code[2] == base<<4 && code[3] == 0
	case code[0] == 0xbf: // icm r, 3, 0(base)
		return code[1]&0xf == 3 && code[2] == base<<4 && code[3] == 0
	case code[0] == 0xe5: // clhhsi, chhsi 0(base), immediate
		return (code[1] == 0x54 || code[1] == 0x55) && code[2] == base<<4 && code[3] == 0
	case code[0] == 0xe3: // llh, llgh, lgh, lhy r, 0(base)
		last := code[5]
		return (last == 0x95 || last == 0x91 || last == 0x15 || last == 0x78) && code[1]&0xf == 0 && code[2] == base<<4 && code[3] == 0 && code[4] == 0
	}
	return false
}
