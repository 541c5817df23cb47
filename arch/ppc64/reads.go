package ppc64

import "sdtconvert/arch"

// Reads finds loads of a halfword at a distance from the pointer to the table of contents, of
// which addis may have the upper bits, and addi the lower.
func (m Machine) Reads(code []byte, pc, got, lo, hi uint64, f func(at, address uint64)) {
	r := reads{m, code, pc, lo, hi, f}
	for i := 0; i+insnLen <= len(code); i += insnLen {
		r.load(i, regTOC, got+tocBias)
		op, to, base, high := dForm(m.insn(code[i:]))
		switch {
		case base != regTOC:
		case op == opADDIS:
			r.behind(i, i+arch.ReadWindow, to, got+tocBias+uint64(high<<16), true)
		case op == opADDI:
			r.behind(i, i+arch.ReadWindow, to, got+tocBias+uint64(high), false)
		}
	}
}

// reads are the parameters of Reads.
type reads struct {
	m          Machine
	code       []byte
	pc, lo, hi uint64
	f          func(at, address uint64)
}

// load tells a load from behind a register that has an address.
func (r *reads) load(i int, register uint32, base uint64) {
	op, _, from, displacement := dForm(r.m.insn(r.code[i:]))
	if op != opLHZ && op != opLHA || from != register {
		return
	}
	if address := base + uint64(displacement); r.lo <= address && address < r.hi {
		r.f(r.pc+uint64(i), address)
	}
}

// behind tells the loads behind an instruction that has put an address into a register, and
// those behind an addition to that.
func (r *reads) behind(at, end int, register uint32, base uint64, additions bool) {
	for i := at + insnLen; i < end && i+insnLen <= len(r.code); i += insnLen {
		r.load(i, register, base)
		if op, to, from, low := dForm(r.m.insn(r.code[i:])); additions && op == opADDI && from == register {
			r.behind(i, end, to, base+uint64(low), false)
		}
	}
}

const (
	opLHZ = 40
	opLHA = 42
)
