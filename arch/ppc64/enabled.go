package ppc64

import "sdtconvert/arch"

// A helper that loads a semaphore has its own address from the link register, as the
// pointer to the table of contents need not be that of its object, nor be any. The call
// of the next instruction is the one that processors do not predict a return for.
const (
	insnMFLR0 = 0x7c0802a6 // mflr r0
	insnMFLR3 = 0x7c6802a6 // mflr r3
	insnMTLR0 = 0x7c0803a6 // mtlr r0
	insnADDIS = 0x3c630000 // addis r3, r3, (semaphore - here)@ha
	insnLHZ   = 0xa0630000 // lhz r3, (semaphore - here)@l(r3)
)

const (
	// hereAt is what mflr r3 reads the address of.
	hereAt = 2 * insnLen
	// highAt and lowAt are the instructions that add the halves of a distance.
	highAt, lowAt = 4 * insnLen, 5 * insnLen
	loadLen       = 7 * insnLen
)

// load is the helper, with its return.
var load = [...]uint32{insnMFLR0, insnHere, insnMFLR3, insnMTLR0, insnADDIS, insnLHZ, insnRet}

// LoadedSemaphore reads the load of a helper.
func (m Machine) LoadedSemaphore(t arch.Text, at uint64) (addr uint64, ok bool) {
	code := t.At(at, loadLen)
	if code == nil {
		return 0, false
	}
	distance := uint64(0)
	for i, want := range load {
		insn := m.insn(code[i*insnLen:])
		switch i * insnLen {
		case highAt:
			distance += uint64(int64(int16(insn)) << 16)
			insn &^= 0xffff
		case lowAt:
			distance += uint64(int64(int16(insn)))
			insn &^= 0xffff
		}
		if insn != want {
			return 0, false
		}
	}
	return at + hereAt + distance, true
}
