package s390x

// Reads finds larl, and the loads of a halfword at a distance.
func (Machine) Reads(code []byte, pc, _, lo, hi uint64, f func(at, address uint64)) {
	for i := 0; i+siteLen <= len(code); i += halfword {
		if !readsHere(code[i], code[i+1]&0xf) {
			continue
		}
		if address := target(code[i:], pc+uint64(i)); lo <= address && address < hi {
			f(pc+uint64(i), address)
		}
	}
}

// readsHere tells the opcodes of format RIL that take the address of data.
func readsHere(op, more byte) bool {
	switch op {
	case 0xc0:
		return more == 0x0 // larl
	case 0xc4:
		return more == 0x2 || more >= 0x4 && more <= 0x6 // llhrl, lghrl, lhrl, llghrl
	case 0xc6:
		return more >= 0x4 && more <= 0x7 // cghrl, chrl, clghrl, clhrl
	}
	return false
}
