package amd64

// How a thread gets out of a trampoline in the middle: for a signal, whose handler must find the program as if the trampoline were not
// there, and after a fault.

import (
	"encoding/binary"
	"errors"
	"io"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
)

// saveState is where a trampoline has what the program had in registers, from an offset of the code on.
type saveState struct {
	room        bool // the stack pointer is below the red zone
	saved       int  // how many of assembly.pushed are on the stack
	flagsPopped bool // they are in %ax
	undecided   bool // the event is taken if the zero flag is set
	reserved    bool // the event is taken: its position is in %rsi
	hasSlot     bool // its address is in %rdi; before, that of the ring
	recorded    bool
}

// mark notes a state that begins behind the code.
func (a *assembly) mark(change func(s *saveState)) { a.states.Mark(len(a.code), change) }

// Leave implements arch.Jumper.
func (machine) Leave(t *arch.Trampoline, registers []byte, memory io.ReaderAt) (p arch.Passage, err error) {
	get := func(offset int) uint64 { return binary.LittleEndian.Uint64(registers[offset:]) }
	put := func(offset int, value uint64) { binary.LittleEndian.PutUint64(registers[offset:], value) }
	a := assemble(t)
	at := get(rip) - t.Address
	if at >= uint64(len(a.code)) {
		return p, errors.New("the thread is not in the trampoline")
	}
	if landing, ok := a.faults[int(at)]; ok {
		p.Landing = t.Address + uint64(landing)
	}
	s := a.states.At(int(at))
	const zeroFlag = 1 << 6
	if p.Recorded = s.recorded; s.reserved || s.undecided && get(flagsAt)&zeroFlag != 0 {
		p.Position, p.Slot = get(wordsOf[rsi]*word), get(wordsOf[rdi]*word)
		if !s.hasSlot {
			p.Slot += arch.RingHeader + p.Position%uint64(t.Ring.Slots)*uint64(t.Ring.Size)
		}
	}
	sp := get(threads.SP)
	read := func(address uint64) uint64 {
		var data [word]byte
		if _, readErr := memory.ReadAt(data[:], int64(address)); readErr != nil {
			err = errors.Join(err, readErr)
		}
		return binary.LittleEndian.Uint64(data[:])
	}
	if s.flagsPopped {
		put(flagsAt, withFlags(get(flagsAt), read(sp-word)))
	}
	for i, register := range a.pushed[:s.saved] {
		switch saved := read(sp + uint64(word*(s.saved-1-i))); {
		case register < 0:
			put(flagsAt, withFlags(get(flagsAt), saved))
		default:
			put(wordsOf[register]*word, saved)
		}
	}
	sp += uint64(word * s.saved)
	if s.room {
		sp += redZone
	}
	put(threads.SP, sp)
	return p, err
}

// withFlags returns the register of flags with those that lahf and seto have left in %ax.
func withFlags(flags, ax uint64) uint64 {
	const low, overflow = 0xd5, 1 << 11
	flags = flags&^(low|overflow) | ax>>8&low
	if ax&1 != 0 {
		flags |= overflow
	}
	return flags
}

// Breakpoint implements arch.Trapper.
func (machine) Breakpoint(arch.Site) []byte { return x86.Breakpoint }
