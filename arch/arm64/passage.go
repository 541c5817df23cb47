package arm64

// How a thread gets out of a trampoline in the middle: for a signal, whose handler must find the program as if the trampoline were not
// there, and after a fault.

import (
	"encoding/binary"
	"errors"
	"io"

	"sdtconvert/arch"
)

// saveState is where a trampoline has what the program had in registers, from an offset of the code on.
type saveState struct {
	saved     int  // how many registers are in the frame, from x0 on
	flags     bool // so are the flags
	undecided bool // the event is taken if w6 is 0
	counted   bool // the hit is counted if w2 is 0
	reserved  bool // the event is taken: its position is in x9
	hasSlot   bool // its address is in x7; before, that of the ring is in x2
	recorded  bool
}

// mark notes a state that begins behind the code.
func (a *assembly) mark(change func(s *saveState)) { a.states.Mark(len(a.code), change) }

// Leave implements arch.Jumper.
func (Machine) Leave(t *arch.Trampoline, registers []byte, memory io.ReaderAt) (p arch.Passage, err error) {
	get := func(register int) uint64 { return binary.LittleEndian.Uint64(registers[8*register:]) }
	put := func(register int, value uint64) { binary.LittleEndian.PutUint64(registers[8*register:], value) }
	const pc, state, nzcv = 32, 33, 0xf << 28
	a := assemble(t)
	at := get(pc) - t.Address
	if at >= uint64(len(a.code)) {
		return p, errors.New("the thread is not in the trampoline")
	}
	if landing, ok := a.faults[int(at)]; ok {
		p.Landing = t.Address + uint64(landing)
	}
	s := a.states.At(int(at))
	if p.Recorded = s.recorded || s.counted && uint32(get(2)) == 0; s.reserved || s.undecided && uint32(get(6)) == 0 {
		p.Position, p.Slot = get(9), get(7)
		if !s.hasSlot {
			p.Slot = get(2) + arch.RingHeader + p.Position%uint64(t.Ring.Slots)*uint64(t.Ring.Size)
		}
	}
	if s.saved == 0 {
		return p, nil
	}
	var data [frame]byte
	_, err = memory.ReadAt(data[:], int64(get(stackPointer)))
	for r := range s.saved {
		put(r, binary.LittleEndian.Uint64(data[8*r:]))
	}
	if s.flags {
		put(state, get(state)&^nzcv|binary.LittleEndian.Uint64(data[flags:])&nzcv)
	}
	put(stackPointer, get(stackPointer)+frame)
	return p, err
}
