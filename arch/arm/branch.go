package arm

import "sdtconvert/arch"

// branch is what a branch does, in either instruction set.
type branch struct {
	form     arch.Form
	distance int32 // from where the program counter is
	swaps    bool  // blx: goes to code of the other instruction set
	thumb    bool  // of which it is one itself
}

// branchA32 reads b, bl and blx with a distance in words (DDI 0406C, A8.8.18 and A8.8.25).
func branchA32(insn uint32) (branch, bool) {
	if insn>>25&7 != 5 {
		return branch{}, false
	}
	b := branch{distance: int32(insn<<8) >> 6}
	link := insn>>24&1 != 0
	switch cond := insn >> 28; {
	case cond == never:
		b.swaps, b.form = true, arch.Call
		if link { // the bit H, of half a word
			b.distance += halfword
		}
	case link:
		b.form = arch.Call
	case cond == always:
		b.form = arch.Tail
	default:
		b.form = arch.CondTail
	}
	return b, true
}

// branchThumb reads b.w, bl and blx (A8.8.18, encodings T3 and T4, and A8.8.25).
func branchThumb(insn uint32) (branch, bool) {
	if insn>>27 != 0x1e || insn&0x8000 == 0 { // 11110..., 1...
		return branch{}, false
	}
	sign := insn >> 26 & 1
	i1, i2 := 1^insn>>13&1^sign, 1^insn>>11&1^sign // of J1 and J2
	wide := -int32(sign)<<24 | int32(i1)<<23 | int32(i2)<<22 | int32(insn>>16&0x3ff)<<12
	low := int32(insn&0x7ff) << 1
	switch insn >> 12 & 5 { // bits 14 and 12
	case 0:
		if insn>>22&0xe == 0xe { // no condition but another instruction
			return branch{}, false
		}
		j := int32(insn>>11&1)<<19 | int32(insn>>13&1)<<18
		return branch{thumb: true, form: arch.CondTail, distance: -int32(sign)<<20 | j | int32(insn>>16&0x3f)<<12 | low}, true
	case 1:
		return branch{thumb: true, form: arch.Tail, distance: wide | low}, true
	case 5:
		return branch{thumb: true, form: arch.Call, distance: wide | low}, true
	}
	return branch{thumb: true, form: arch.Call, distance: wide | low, swaps: true}, insn&1 == 0
}

// find reads the branch at an offset, in one instruction set or the other. What may be one
// of both is the one that goes less far: the first halfword of a Thumb branch is like the
// lower half of a distance in A32 of 240 KiB at least, if it is not between 8 and 16 KiB
// back. Big-endian code has no such branches.
func (m Machine) find(t arch.Text, at uint64) (b branch, to uint64, ok bool) {
	code := t.At(at, insnLen)
	if code == nil || at%halfword != 0 || m.isNop(code) || m.order.readThumb(code)>>16 == trapT {
		return branch{}, 0, false
	}
	b, ok = branchThumb(m.order.readThumb(code))
	if at%insnLen == 0 {
		if a32, found := branchA32(m.order.readA32(code)); found && (!ok || abs(a32.distance) < abs(b.distance)) {
			return a32, wrap(at + aheadA32 + uint64(a32.distance)), true
		}
	}
	return b, b.thumbTarget(at), ok
}

func abs(d int32) int64 { return max(int64(d), -int64(d)) }

// wrap returns an address of 32 bits.
func wrap(addr uint64) uint64 { return uint64(uint32(addr)) }

func (b branch) thumbTarget(at uint64) uint64 {
	pc := at + aheadThumb
	if b.swaps {
		pc &^= insnLen - 1
	}
	return wrap(pc + uint64(b.distance))
}

// isNop recognises the nop of A32, which has the bits of a Thumb branch.
func (m Machine) isNop(code []byte) bool {
	insn := m.order.readA32(code)
	return insn&anyCondition == nop&anyCondition && insn>>28 != never
}

// Live recognises branches of both instruction sets.
func (m Machine) Live(t arch.Text, record uint64) bool {
	_, _, ok := m.find(t, record)
	return ok
}

// Branch reads branches of both instruction sets, and the code that linkers reach A32 from
// Thumb through, where a branch cannot change the instruction set.
func (m Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	if to, ok := m.veneer(t, at); ok {
		return to, true
	}
	_, to, ok = m.find(t, at)
	return to, ok
}

// Branches reads what is a branch of either instruction set.
func (m Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := int(pc & 1); i+insnLen <= len(code); i += halfword {
		at, insn := pc+uint64(i), code[i:]
		aligned := at%insnLen == 0
		if aligned && m.isNop(insn) {
			continue
		}
		if b, ok := branchThumb(m.order.readThumb(insn)); ok {
			f(at, b.thumbTarget(at))
		}
		if b, ok := branchA32(m.order.readA32(insn)); ok && aligned {
			f(at, wrap(at+aheadA32+uint64(b.distance)))
		}
	}
}
