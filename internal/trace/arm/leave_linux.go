package arm

// Threads in trampolines. The tracer sees each signal before the program does: a thread that is in a trampoline then is taken out of it, and
// the hit recorded, so that handlers, and those who unwind the stack, find the program as it is without a tracer. A fault of a
// trampoline's own is the tracer's: the program does not see it.

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
)

// Signal handles a signal for which a thread has stopped, and returns true if the program is to get it.
func (a *Armer) Signal(tid int, sig unix.Signal) bool {
	if len(a.places) == 0 {
		return true
	}
	isFault := (sig == unix.SIGSEGV || sig == unix.SIGBUS || sig == unix.SIGILL) && !a.isSent(tid)
	data, err := a.Registers(tid, a.traits.Threads.Size)
	if err != nil {
		return true
	}
	p := a.placeOf(data)
	if p == nil {
		return true
	}
	if isFault && p.moved == nil { // else it is the program's own
		passage, err := a.passage(p, slices.Clone(data))
		if err == nil && passage.Landing != 0 {
			a.setPC(data, passage.Landing)
			return a.SetRegisters(tid, data) != nil
		}
	}
	if err := a.leavePlace(tid, p, data); err != nil {
		a.complain(fmt.Errorf("thread %d stays in a trampoline: %w", tid, err))
		return true
	}
	if isFault && p.moved == nil {
		a.faulting = append(a.faulting, p.site)
		return false
	}
	return true
}

// IsInTrampoline reports whether a stopped thread is in code of the tracer's.
func (a *Armer) IsInTrampoline(tid int) bool {
	if len(a.places) == 0 {
		return false
	}
	data, err := a.Registers(tid, a.traits.Threads.Size)
	return err == nil && a.placeOf(data) != nil
}

// leave takes a stopped thread out of a trampoline.
func (a *Armer) leave(tid int) {
	if len(a.places) == 0 {
		return
	}
	data, err := a.Registers(tid, a.traits.Threads.Size)
	if err != nil {
		return
	}
	if p := a.placeOf(data); p != nil {
		a.complain(a.leavePlace(tid, p, data))
	}
}

// placeOf returns the trampoline, or the hop, that a thread is in, nil for none.
func (a *Armer) placeOf(registers []byte) *place {
	pc := a.traits.Threads.Get(registers, a.traits.Threads.PC, a.word, a.order)
	i, found := a.findPlace(pc)
	if !found {
		i--
	}
	if i < 0 || pc >= a.places[i].end {
		return nil
	}
	return &a.places[i]
}

// passage says how far a thread has come in a trampoline. The registers become those that it had at the site, but for PC.
func (a *Armer) passage(p *place, registers []byte) (arch.Passage, error) {
	if p.start != p.trampoline.Address { // a hop: the trampoline has not begun
		a.setPC(registers, p.trampoline.Address)
	}
	return a.injector.Machine.Leave(p.trampoline, registers, a.Process)
}

func (a *Armer) setPC(registers []byte, pc uint64) {
	a.traits.Threads.Put(registers, a.traits.Threads.PC, a.word, a.order, pc)
}

// leavePlace has a thread be behind the site of a trampoline that it is in, and records the hit.
func (a *Armer) leavePlace(tid int, p *place, registers []byte) error {
	if p.moved != nil {
		return a.leaveMoved(tid, p, registers)
	}
	passage, err := a.passage(p, registers)
	if err != nil {
		return err
	}
	if passage.Slot != 0 { // the event is recorded otherwise
		word := binary.NativeEndian.AppendUint64(nil, passage.Position<<32|uint64(arch.Discarded))
		if err := a.Write(passage.Slot, word); err != nil {
			a.complain(fmt.Errorf("an event at %#x: %w", passage.Slot, err)) // the reader waits for it, and goes on
		}
	}
	if !passage.Recorded {
		a.hit(tid, p.site, registers)
	}
	next := p.trampoline.Resume
	if next == 0 {
		if next, err = a.returned(registers); err != nil {
			return err
		}
	}
	a.setPC(registers, next)
	return a.SetRegisters(tid, registers)
}

// leaveMoved has a thread be where it would be if the instruction had not moved: before or behind it.
func (a *Armer) leaveMoved(tid int, p *place, registers []byte) error {
	state := &a.traits.Threads
	at := state.Get(registers, state.PC, a.word, a.order) - p.code
	switch {
	case p.start != p.code || at == 0: // a hop, or not yet executed
		a.setPC(registers, p.from)
	case at >= uint64(p.moved.Done):
		a.setPC(registers, p.from+uint64(p.moved.Length))
	default: // a call has pushed the return address
		a.setPC(registers, p.from)
		state.Put(registers, state.SP, a.word, a.order, state.Get(registers, state.SP, a.word, a.order)+uint64(a.word))
	}
	return a.SetRegisters(tid, registers)
}

// IsFaulting reports whether trampolines have met memory that is not there: their sites want breakpoints.
func (a *Armer) IsFaulting() bool { return len(a.faulting) > 0 }

// TrapFaulting gives sites breakpoints whose trampolines have met memory that is not there, while all threads are stopped.
func (a *Armer) TrapFaulting() {
	sites := slices.Compact(a.faulting)
	a.faulting = nil
	defer func() { a.complain(a.injector.End()) }()
	if err := a.injector.Begin(sites[0].Address); err != nil { // for the handler of SIGTRAP
		a.complain(fmt.Errorf("sites whose stack or memory is not there stay as they are: %w", err))
		return
	}
	for _, s := range sites {
		i := slices.IndexFunc(a.armed, func(armed *armedSite) bool { return armed.Site == s && a.traps[armed.at] != armed })
		if i < 0 {
			continue
		}
		armed := a.armed[i]
		if !a.holds(armed.at, armed.new) {
			continue
		}
		a.complain(a.Write(armed.at, armed.old))
		a.armed = slices.Delete(a.armed, i, i+1)
		if a.session.NoTraps {
			a.warn("%s at %s is left alone: its stack or memory is not there, and breakpoints are not wanted", s.Text, s.Place)
			continue
		}
		current := make([]byte, len(s.Original))
		if err := a.Read(s.Address, current); err == nil {
			err = a.armByTrap(s, current)
			a.complain(err)
		}
	}
}
