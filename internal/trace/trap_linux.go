package trace

import (
	"errors"

	"sdtconvert/arch"
)

// armByTrap arms a site by a breakpoint.
func (p *tracee) armByTrap(s *Site, current []byte) error {
	code := p.breakpoint(s)
	if code == nil {
		return errors.New("no breakpoint fits its form")
	}
	if len(s.form.Code) > 0 && s.form.Form != arch.Call && s.form.Form != arch.Nop && !p.endsInReturn(s, current) {
		return errors.New("the jump there is one that the tracer cannot make for the program")
	}
	if len(current) < len(code) {
		return errors.New("its code ends there")
	}
	s.file.traps = true
	next, _ := p.behind(s.address, s.form, current)
	p.outlive(s.address, next)
	if err := p.change(s, s.address, current[:len(code)], code); err != nil {
		return err
	}
	p.traps[s.address] = p.armed[len(p.armed)-1]
	return nil
}

// endsInReturn reports whether the recorded instruction of a tail call is a return, or a NOP before one.
func (p *tracee) endsInReturn(s *Site, current []byte) bool {
	if p.state.Link > 0 {
		_, jumps := p.machine.Branch(arch.Text{Code: current, Start: s.address}, s.address)
		return !jumps
	}
	return len(current) > 0 && (current[0] == 0xc3 || current[0] == 0x90)
}

// trap handles a thread that has met a breakpoint of the tracer. It returns false for others.
func (p *tracee) trap(th *thread) bool {
	if len(p.traps) == 0 && p.entry == nil || p.state == nil {
		return false
	}
	data, err := registers(th.tid, p.state.Size)
	if err != nil {
		return false
	}
	pc := p.state.Get(data, p.state.PC, p.word, p.order) - p.state.Trap
	if p.entry != nil && pc == p.entry.at {
		p.begin(th, data, pc)
		return true
	}
	s := p.traps[pc]
	if s == nil || p.isBeside(s) && isSent(th.tid) {
		return false
	}
	p.t.trapped(p, th, s, data)
	next, goesOn := p.behind(pc, s.form, s.old)
	switch {
	case goesOn:
	case p.state.Link > 0:
		next = p.returnTo(data)
	default:
		sp := p.state.Get(data, p.state.SP, p.word, p.order)
		word := make([]byte, p.word)
		if p.read(sp, word) != nil {
			return false
		}
		next = readNumber(word, p.order)
		p.state.Put(data, p.state.SP, p.word, p.order, sp+uint64(p.word))
	}
	if next != pc+p.state.Trap || !goesOn { // and not behind a NOP of one byte, where the thread is
		p.state.Put(data, p.state.PC, p.word, p.order, next)
		if setRegisters(th.tid, data) != nil {
			return false
		}
	}
	resume(th.tid, 0)
	return true
}

// isBeside reports whether a thread may be where one stops that has met a breakpoint, and has not met it: behind a NOP of one byte, or before it.
func (p *tracee) isBeside(s *armedSite) bool { return p.state.Trap == 0 || s.old[0] == 0x90 }

// behind returns where a thread goes on behind a breakpoint, false if it returns from the function.
func (p *tracee) behind(breakpoint uint64, form arch.Site, old []byte) (uint64, bool) {
	switch {
	case p.state.Link == 0 && old[0] == 0x90:
		return breakpoint + 1, true
	case form.Form == arch.Call || form.Form == arch.Nop:
		return breakpoint + uint64(len(form.Code)), true
	}
	return 0, false
}

// breakpoint returns the breakpoint of a site, nil if none fits its form.
func (p *tracee) breakpoint(s *Site) []byte {
	if m, ok := p.machine.(arch.Trapper); ok {
		return m.Breakpoint(s.form)
	}
	return p.machine.Traits().Breakpoints[0]
}

// returnTo returns the address in the link register, whose instruction set the thread executes from then on.
func (p *tracee) returnTo(data []byte) uint64 {
	link, mode := p.state.Get(data, p.state.Link, p.word, p.order), p.machine.Traits().Mode
	if p.state.Mode != 0 {
		flags := p.state.Get(data, p.state.Flags, p.word, p.order) &^ p.state.Mode
		if link&mode != 0 {
			flags |= p.state.Mode
		}
		p.state.Put(data, p.state.Flags, p.word, p.order, flags)
	}
	return link &^ mode
}

// values reads the arguments of a site at which a thread has stopped.
func (p *tracee) values(e *Event, data []byte) {
	e.Values, e.Texts = e.Values[:0], e.Texts[:0]
	for _, a := range e.Arguments {
		value, ok := p.operand(&a.Operand, data)
		text := Copied{Unreadable: !ok}
		if a.Format == Text && ok {
			text = p.text(value)
		}
		if a.Size > 0 {
			value = extend(value, a.Size, a.Signed)
		}
		e.Values, e.Texts = append(e.Values, value), append(e.Texts, text)
	}
}

func (p *tracee) operand(o *arch.Operand, data []byte) (value uint64, ok bool) {
	get := func(offset int) uint64 { return p.state.Get(data, offset, p.word, p.order) }
	switch o.Kind {
	case arch.Constant:
		return o.Value, o.Size > 0
	case arch.InRegister:
		return get(o.Base), true
	}
	address := o.Value
	if o.Base >= 0 {
		address += get(o.Base)
	}
	if o.Index >= 0 {
		address += get(o.Index) * o.Scale
	}
	if p.word == 4 {
		address = uint64(uint32(address))
	}
	memory := make([]byte, o.Size)
	if p.read(address, memory) != nil {
		return 0, false
	}
	return readNumber(memory, p.order), true
}

// text reads a text at an address, up to the end of what is there.
func (p *tracee) text(address uint64) Copied {
	data := make([]byte, textBytes)
	n, _ := p.memory.ReadAt(data, int64(address))
	return copiedText(data, int64(n))
}
