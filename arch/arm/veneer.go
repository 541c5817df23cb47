package arm

import (
	"encoding/binary"

	"sdtconvert/arch"
)

// Thumb's b.w cannot go to A32, and bl only as blx. Where it would, linkers have it go to a
// veneer, code of their own in Thumb that goes on to A32.
const veneerLen = 5 * insnLen // the longest

// Bridges reads veneers.
func (m Machine) Bridges(code []byte, pc uint64, f func(at, size, to uint64)) {
	for i := int(pc & 1); i+2*insnLen <= len(code); i += halfword {
		if to, size, ok := m.readVeneer(code[i:], pc+uint64(i)); ok {
			f(pc+uint64(i), size, to)
		}
	}
}

// veneer reads one.
func (m Machine) veneer(t arch.Text, at uint64) (to uint64, ok bool) {
	for n := veneerLen; n >= 2*insnLen; n -= halfword {
		if code := t.At(at, n); code != nil {
			to, _, ok = m.readVeneer(code, at)
			return to, ok
		}
	}
	return 0, false
}

// readVeneer reads what code at an address begins with.
func (m Machine) readVeneer(code []byte, at uint64) (to, size uint64, ok bool) {
	switch first := m.order.readThumb(code); {
	case at%halfword != 0:
	case at%insnLen == 0 && (first == 0x4778e7fd || first == 0x477846c0 || first == 0x4778bf00): // bx pc; and what is not reached
		return m.afterSwitch(code[insnLen:], at+insnLen)
	case at%insnLen == 0 && first == 0x46fc4760: // mov ip, pc; bx ip
		to, ok = m.load12(code[insnLen:], at+insnLen, 0xe59fc004, 0xe08cc00f, 0xe12fff1c) // ldr ip, [pc, #4]; add ip, ip, pc; bx ip
		return to, veneerLen, ok
	case first&0xfbf08f00 == 0xf2400c00: // movw ip, #
		return m.movedAddress(code, at)
	}
	return 0, 0, false
}

// afterSwitch reads b, and of code that is independent of its position a distance.
func (m Machine) afterSwitch(code []byte, at uint64) (to, size uint64, ok bool) {
	if len(code) < insnLen {
		return 0, 0, false
	}
	if b, ok := branchA32(m.order.readA32(code)); ok && b.form == arch.Tail {
		return wrap(at + aheadA32 + uint64(b.distance)), 2 * insnLen, true
	}
	if len(code) < 3*insnLen || m.order.readA32(code) != 0xe59fc000 || m.order.readA32(code[insnLen:]) != 0xe08cf00f { // ldr ip, [pc]; add pc, ip, pc
		return 0, 0, false
	}
	return wrap(at + insnLen + aheadA32 + uint64(m.order.word(code[2*insnLen:]))), 4 * insnLen, true
}

// load12 reads three instructions, of which the second adds the program counter to the word
// behind them.
func (m Machine) load12(code []byte, at uint64, insns ...uint32) (to uint64, ok bool) {
	if len(code) < (len(insns)+1)*insnLen {
		return 0, false
	}
	for i, insn := range insns {
		if m.order.readA32(code[i*insnLen:]) != insn {
			return 0, false
		}
	}
	return wrap(at + insnLen + aheadA32 + uint64(m.order.word(code[len(insns)*insnLen:]))), true
}

// movedAddress reads movw ip and movt ip of Thumb, and bx ip, before which the program
// counter is added where code is independent of its position.
func (m Machine) movedAddress(code []byte, at uint64) (to, size uint64, ok bool) {
	const add, bx = 0x44fc, 0x4760 // add ip, pc; bx ip
	if len(code) < 2*insnLen+halfword || m.order.readThumb(code[insnLen:])&0xfbf08f00 != 0xf2c00c00 {
		return 0, 0, false
	}
	value := uint64(immediateThumb(m.order.readThumb(code[insnLen:]))<<16 | immediateThumb(m.order.readThumb(code)))
	last := code[2*insnLen:]
	switch {
	case m.order.code().Uint16(last) == bx:
		return value &^ 1, 2*insnLen + halfword, true
	case len(last) >= insnLen && m.order.readThumb(last) == add<<16|bx:
		return wrap(at+2*insnLen+aheadThumb+value) &^ 1, 3 * insnLen, true
	}
	return 0, 0, false
}

// immediateThumb returns the 16 bits in movw or movt of Thumb (DDI 0406C, A8.8.102).
func immediateThumb(insn uint32) uint32 {
	return insn>>16&0xf<<12 | insn>>26&1<<11 | insn>>12&7<<8 | insn&0xff
}

// word reads data.
func (o order) word(b []byte) uint32 {
	if o == little {
		return binary.LittleEndian.Uint32(b)
	}
	return binary.BigEndian.Uint32(b)
}

// Slots reads the entries of procedure linkage tables: a distance from the program counter
// in the immediates of two instructions or three and of the load behind them, or in a word.
func (m Machine) Slots(code []byte, pc, _ uint64, f func(at, slot uint64)) {
	for i := int(-pc & (insnLen - 1)); i+3*insnLen <= len(code); i += insnLen {
		at := pc + uint64(i)
		insns := code[i:min(len(code), i+veneerLen)]
		if slot, ok := m.added(insns, at); ok {
			f(at, slot)
		} else if slot, ok := m.load12(insns, at, 0xe59fc004, 0xe08cc00f, 0xe59cf000); ok { // ldr ip, [pc, #4]; add ip, ip, pc; ldr pc, [ip]
			f(at, slot)
		}
	}
}

// added reads add ip, pc, #; add ip, ip, #, once or twice; ldr pc, [ip, #]!
func (m Machine) added(code []byte, at uint64) (slot uint64, ok bool) {
	slot = at + aheadA32
	for i := 0; i+insnLen <= len(code); i += insnLen {
		insn := m.order.readA32(code[i:])
		switch {
		case i == 0 && insn&^0xfff == 0xe28fc000, i > 0 && i <= 2*insnLen && insn&^0xfff == 0xe28cc000:
			rotation := insn >> 8 & 0xf * 2 // DDI 0406C, A5.2.4
			imm := insn & 0xff
			slot += uint64(imm>>rotation | imm<<(32-rotation))
		case i >= 2*insnLen && insn&^0xfff == 0xe5bcf000:
			return wrap(slot + uint64(insn&0xfff)), true
		default:
			return 0, false
		}
	}
	return 0, false
}
