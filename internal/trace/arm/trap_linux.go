package arm

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/probe"
)

// armByTrap arms a site by a breakpoint.
func (a *Armer) armByTrap(s *probe.Site, current []byte) error {
	code := a.breakpoint(s.Form)
	if code == nil {
		return errors.New("no breakpoint fits its form")
	}
	if len(s.Form.Code) > 0 && s.Form.Form != arch.Call && s.Form.Form != arch.Nop && !a.endsInReturn(s, current) {
		return errors.New("the jump there is one that the tracer cannot make for the program")
	}
	if len(current) < len(code) {
		return errors.New("its code ends there")
	}
	s.File.Breakpoint = true
	if a.injector != nil {
		next, _ := a.behind(s.Address, s.Form, current)
		if err := a.injector.Outlive(s.Address, next); err != nil {
			return err
		}
	}
	if err := a.change(s, s.Address, current[:len(code)], code); err != nil {
		return err
	}
	a.traps[s.Address] = a.armed[len(a.armed)-1]
	return nil
}

// endsInReturn reports whether the recorded instruction of a tail call is a return, or a NOP before one.
func (a *Armer) endsInReturn(s *probe.Site, current []byte) bool {
	if a.traits.Threads.Link > 0 {
		_, jumps := a.Machine.Branch(arch.Text{Code: current, Start: s.Address}, s.Address)
		return !jumps
	}
	return bytes.HasPrefix(current, a.traits.Threads.Return) || bytes.HasPrefix(current, a.traits.Nops[0])
}

// breakpoint returns the breakpoint of a form, nil if none fits.
func (a *Armer) breakpoint(form arch.Site) []byte {
	if m, ok := a.Machine.(arch.Trapper); ok {
		return m.Breakpoint(form)
	}
	return a.traits.Breakpoints[0]
}

// WatchBeginning sets breakpoints in a program that has not begun: where its dynamic linker says that it has mapped the libraries, and at the
// first instruction. auxv is what the kernel tells the program (getauxval(3)).
func (a *Armer) WatchBeginning(auxv []byte) error {
	if err := a.readLoader(); err != nil {
		return err
	}
	entry, ok := a.entryPoint(auxv)
	if !ok {
		return nil
	}
	trap := a.traits.Breakpoints[0]
	if entry&a.traits.Mode != 0 {
		trap = a.traits.Breakpoints[len(a.traits.Breakpoints)-1] // of Thumb
	}
	entry &^= a.traits.Mode
	old := make([]byte, len(trap))
	if err := a.Read(entry, old); err != nil {
		return err
	}
	if err := a.Write(entry, trap); err != nil {
		return err
	}
	a.entry = &armedSite{at: entry, old: old, new: trap}
	a.trapLoader()
	return nil
}

// EndBeginning removes the breakpoint at the first instruction.
func (a *Armer) EndBeginning() {
	if a.entry != nil {
		a.complain(a.Write(a.entry.at, a.entry.old))
		a.entry, a.hasJustBegun = nil, true
	}
}

// HasBegun reports whether the program has come to its first instruction.
func (a *Armer) HasBegun() bool { return a.entry == nil }

// entryPoint returns where a program begins.
func (a *Armer) entryPoint(auxv []byte) (uint64, bool) {
	const entryType = 9
	for len(auxv) >= 2*a.word {
		if events.ReadNumber(auxv[:a.word], a.order) == entryType {
			return events.ReadNumber(auxv[a.word:][:a.word], a.order), true
		}
		auxv = auxv[2*a.word:]
	}
	return 0, false
}

// Stop says what a thread has met.
type Stop uint8

const (
	OtherStop   Stop = iota // nothing of the tracer's
	ProbeStop               // a site: its hit is recorded, and the thread can go on
	EntryStop               // the first instruction of the program
	LoaderStop              // the dynamic linker has mapped or unmapped objects
	HandledStop             // something that the thread can go on from
)

// Trap handles a thread that has stopped for SIGTRAP.
func (a *Armer) Trap(tid int) Stop {
	if len(a.traps) == 0 && a.entry == nil || a.traits == nil {
		return OtherStop
	}
	state := &a.traits.Threads
	data, err := a.Registers(tid, state.Size)
	if err != nil {
		return OtherStop
	}
	pc := state.Get(data, state.PC, a.word, a.order) - state.Trap
	if a.entry != nil && pc == a.entry.at {
		state.Put(data, state.PC, a.word, a.order, pc)
		if a.SetRegisters(tid, data) != nil {
			return OtherStop
		}
		return EntryStop
	}
	s := a.traps[pc]
	if s == nil || a.isBeside(s) && a.isSent(tid) {
		return OtherStop
	}
	next, goesOn := uint64(0), false
	if s.Site != nil {
		a.hit(tid, s.Site, data)
		next, goesOn = a.behind(pc, s.Form, s.old)
	}
	if !goesOn {
		if next, err = a.returned(data); err != nil {
			return OtherStop
		}
	}
	if next != pc+state.Trap || !goesOn { // and not behind a NOP of one byte, where the thread is
		state.Put(data, state.PC, a.word, a.order, next)
		if a.SetRegisters(tid, data) != nil {
			return OtherStop
		}
	}
	switch {
	case s.Site != nil:
		return ProbeStop
	case a.isConsistent():
		return LoaderStop
	}
	return HandledStop
}

// isBeside reports whether a thread may be at the place of a hit without one: threads stop before breakpoints here, or the site was a NOP of
// one byte, behind which the next instruction begins.
func (a *Armer) isBeside(s *armedSite) bool {
	return a.traits.Threads.Trap == 0 || bytes.HasPrefix(s.old, a.traits.Nops[0])
}

// behind returns where a thread goes on behind a breakpoint, false if it returns from the function.
func (a *Armer) behind(breakpoint uint64, form arch.Site, old []byte) (uint64, bool) {
	switch {
	case a.traits.Threads.Link == 0 && bytes.HasPrefix(old, a.traits.Nops[0]): // of one byte
		return breakpoint + uint64(len(a.traits.Nops[0])), true
	case form.Form == arch.Call || form.Form == arch.Nop:
		return breakpoint + uint64(len(form.Code)), true
	}
	return 0, false
}

// returned gives a thread the registers that it has when the function has returned, but for PC, which it returns. On a machine whose calls
// push the address, that is an instruction which returns, if there is one: so shadow stacks agree.
func (a *Armer) returned(data []byte) (next uint64, err error) {
	state := &a.traits.Threads
	if state.Link > 0 {
		return a.returnTo(data), nil
	}
	if a.injector != nil && a.injector.ReturnAddress() != 0 {
		return a.injector.ReturnAddress(), nil
	}
	sp := state.Get(data, state.SP, a.word, a.order)
	word := make([]byte, a.word)
	if err := a.Read(sp, word); err != nil {
		return 0, err
	}
	state.Put(data, state.SP, a.word, a.order, sp+uint64(a.word))
	return events.ReadNumber(word, a.order), nil
}

// returnTo returns the address in the link register, whose instruction set the thread executes from then on.
func (a *Armer) returnTo(data []byte) uint64 {
	state, mode := &a.traits.Threads, a.traits.Mode
	link := state.Get(data, state.Link, a.word, a.order)
	if state.Mode != 0 {
		flags := state.Get(data, state.Flags, a.word, a.order) &^ state.Mode
		if link&mode != 0 {
			flags |= state.Mode
		}
		state.Put(data, state.Flags, a.word, a.order, flags)
	}
	return link &^ mode
}

// hit records the hit of a site by a thread with registers.
func (a *Armer) hit(tid int, s *probe.Site, registers []byte) {
	e := events.Event{Site: s, Time: events.ReadClock(), Thread: a.OwnID(tid), Process: a.eventProcess()}
	e.ReadValues(&events.Registers{ThreadState: &a.traits.Threads, Data: registers, Word: a.word, Order: a.order, Memory: a.Process,
		ReadVectors:       func() ([]byte, error) { return a.Vectors(tid) },
		ReadThreadPointer: func() (uint64, error) { return a.ThreadPointer(tid, &a.traits.Threads, a.word, a.order) }})
	a.session.Collector.Trapped(e)
}

// watchLoader decides whether the breakpoint stays where the dynamic linker says that it has mapped objects. It does if the program goes on
// there without the tracer, or has other breakpoints.
func (a *Armer) watchLoader() {
	call := a.loader.call
	if call == 0 || a.loader.isDecided {
		return
	}
	a.loader.isDecided = true
	isSafe := slices.ContainsFunc(slices.Collect(maps.Values(a.traps)), func(s *armedSite) bool { return s.Site != nil })
	if a.injector != nil {
		a.complain(a.injector.Outlive(call, 0))
		isSafe = isSafe || a.injector.HasHandler()
	}
	switch armed := a.traps[call]; {
	case isSafe && armed == nil:
		a.trapLoader()
	case !isSafe && armed != nil:
		a.complain(a.Write(call, armed.old))
		delete(a.traps, call)
		a.armed = slices.DeleteFunc(a.armed, func(s *armedSite) bool { return s == armed })
	}
}

// trapLoader sets a breakpoint at the function that the dynamic linker calls, which does nothing but return.
func (a *Armer) trapLoader() {
	call, trap := a.loader.call, a.traits.Breakpoints[0]
	if call == 0 || len(trap) > len(a.loader.code) || !a.holds(call, a.loader.code) {
		return
	}
	a.complain(a.change(nil, call, a.loader.code[:len(trap)], trap))
	a.traps[call] = a.armed[len(a.armed)-1]
}

// undoLoader removes the breakpoint that a killed tracer has left in the dynamic linker.
func (a *Armer) undoLoader() error {
	trap := a.traits.Breakpoints[0]
	if !a.holds(a.loader.call, trap) {
		return nil
	}
	return a.Write(a.loader.call, a.loader.code[:len(trap)])
}

// isConsistent reports whether the dynamic linker has finished what it says, as far as that is known.
func (a *Armer) isConsistent() bool {
	if a.loader.state == 0 {
		return true
	}
	data := make([]byte, 4)
	err := a.Read(a.loader.state+3*uint64(a.word), data) // r_state of struct r_debug
	return err != nil || a.order.Uint32(data) == 0       // RT_CONSISTENT
}

// isSent reports whether the signal for which a thread has stopped was sent by a process, and not by the kernel.
func (a *Armer) isSent(tid int) bool {
	code, ok := a.SignalCode(tid)
	return ok && code <= 0
}
