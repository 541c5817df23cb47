package ppc64

// tocBias is the distance of the table of contents' pointer from the start of the global
// offset table, which 16 bits with a sign reach all of (ELFv2, 3.3).
const tocBias = 0x8000

const (
	regTOC   = 2  // the pointer to the table of contents
	regEntry = 12 // where what is called through a pointer is

	opADDI  = 14
	opADDIS = 15
	opLD    = 58 // with the lowest two bits 0
)

// Loads that name a slot by its distance: of two instructions, and prefixed.
const (
	insnHere   = 0x429f0005 // bcl 20, 31, $+4
	insnMFLR11 = 0x7d6802a6 // mflr r11
	insnMTLR12 = 0x7d8803a6 // mtlr r12
	prefixPLD  = 0x04100000 // pld, with the upper 18 bits of a distance
	pldPCRel   = 57
)

// dForm returns the fields of an instruction with a 16-bit displacement.
func dForm(insn uint32) (op, to, base uint32, displacement int64) {
	return opcode(insn), insn >> 21 & 31, insn >> 16 & 31, int64(int16(insn))
}

// isLD reports whether an instruction is ld into a register from behind another.
func isLD(insn uint32) (to, base uint32, displacement int64, ok bool) {
	op, to, base, displacement := dForm(insn)
	return to, base, displacement, op == opLD && insn&3 == 0
}

// Slots reads what linkers call through, and code that does so by itself: ld from the
// table of contents, with addis of the upper bits next before it; the same from the
// place itself, which bcl tells; and pld. The pointer to the table is taken for that to
// the first one, of an image that has several.
func (m Machine) Slots(code []byte, pc, got uint64, f func(at, slot uint64)) {
	toc := got + tocBias
	for i := 0; i+insnLen <= len(code); i += insnLen {
		at, insn := pc+uint64(i), m.insn(code[i:])
		to, base, displacement, ok := isLD(insn)
		switch {
		case ok && base == regTOC && to == regEntry:
			f(at, toc+uint64(displacement))
		case opcode(insn) == opADDIS && insn>>16&31 == regTOC:
			if d, ok := m.pair(code[i:]); ok {
				f(at, toc+d)
			}
		case insn == insnHere:
			if d, ok := m.fromHere(code[i+insnLen:]); ok {
				f(at, at+insnLen+d)
			}
		case insn&^0x3ffff == prefixPLD && i+2*insnLen <= len(code):
			if next := m.insn(code[i+insnLen:]); opcode(next) == pldPCRel && next>>16&31 == 0 {
				f(at, at+uint64(int64(insn)<<46>>30|int64(next&0xffff)))
			}
		}
	}
}

// fromHere reads what follows bcl: mflr r11; mtlr r12; and a pair from r11.
func (m Machine) fromHere(code []byte) (distance uint64, ok bool) {
	if len(code) < 4*insnLen || m.insn(code) != insnMFLR11 || m.insn(code[insnLen:]) != insnMTLR12 {
		return 0, false
	}
	pair := code[2*insnLen:]
	if addis := m.insn(pair); opcode(addis) != opADDIS || addis>>16&31 != 11 {
		return 0, false
	}
	return m.pair(pair)
}

// pair reads addis and, next to it, ld from there, or addi, with which mold goes on to a
// descriptor: the distance from the base of addis.
func (m Machine) pair(code []byte) (distance uint64, ok bool) {
	if len(code) < 2*insnLen {
		return 0, false
	}
	_, upper, _, high := dForm(m.insn(code))
	_, base, low, ok := isLD(m.insn(code[insnLen:]))
	if op, _, from, displacement := dForm(m.insn(code[insnLen:])); op == opADDI {
		base, low, ok = from, displacement, true
	}
	return uint64(high<<16 + low), ok && base == upper
}
