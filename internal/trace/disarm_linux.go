package trace

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/listing"
)

// forget forgets a module that was unloaded.
func (p *tracee) forget(key string) {
	delete(p.modules, key)
	p.armed = slices.DeleteFunc(p.armed, func(s *armedSite) bool { return s.module == key })
	maps.DeleteFunc(p.traps, func(_ uint64, s *armedSite) bool { return s.module == key })
	p.forgetSemaphores(key)
}

// forgetSemaphores forgets the semaphores of a module that was unloaded. If it is loaded again they are 0.
func (p *tracee) forgetSemaphores(key string) {
	for address, raised := range p.semaphores {
		if raised.module != key {
			continue
		}
		if raised.entry >= 0 {
			p.setEntry(raised.entry, entry{})
		}
		delete(p.semaphores, address)
	}
}

// isArmed reports whether the code of an armed site is still the tracer's.
func (p *tracee) isArmed(s *armedSite) bool {
	current := make([]byte, len(s.new))
	return p.readCode(s.at, current) == nil && bytes.Equal(current, s.new)
}

// disarmOthers disarms all sites that a killed tracer has left armed, also of probes that are not wanted now.
func (p *tracee) disarmOthers() error {
	process, err := image.OpenProcess(p.pid)
	if err != nil {
		return err
	}
	defer process.Close()
	var found []*Site
	for _, m := range process.Modules {
		if m.Image == nil || m.Image.Machine() != p.machine {
			continue
		}
		all := &finder{Options: p.t.Listing, codeOnly: true}
		all.Filter = listing.Filter{}
		if err := all.find(m); err != nil {
			p.t.warn(err)
		}
		for _, s := range all.sites {
			found = append(found, s.at(m.Base, ""))
		}
	}
	for n, e := range p.ledger {
		if e.kind != semaphoreEntry {
			continue
		}
		// Something else may be there since its library was unloaded.
		if slices.ContainsFunc(found, func(s *Site) bool { return s.semaphore == e.address }) {
			p.addToSemaphore(e.address, -1)
		}
		p.setEntry(n, entry{})
	}
	slices.SortStableFunc(found, func(a, b *Site) int { return cmp.Compare(a.address, b.address) })
	for _, s := range found {
		current := make([]byte, len(s.original))
		if p.read(s.address, current) != nil {
			continue
		}
		test := slices.IndexFunc(p.machine.Traits().Tests, func(c arch.TestCode) bool {
			return bytes.HasPrefix(s.original, c.False) && bytes.HasPrefix(current, c.True)
		})
		switch {
		case s.kind == arch.Enabled && s.semaphore == 0 && test >= 0:
			p.write(s.address, p.machine.Traits().Tests[test].False)
		case s.kind == arch.Probe:
			p.isOurs(s, current)
		}
	}
	return nil
}

// isOurs reports whether a jump to an area or a hop stood in the place of a site, which a killed tracer has left. If so, it puts the
// site's own code back.
func (p *tracee) isOurs(s *Site, current []byte) bool {
	if p.jumper == nil {
		return false
	}
	if trap := p.breakpoint(s); p.leftArmed && p.handler != nil && len(trap) > 0 && bytes.HasPrefix(current, trap) {
		if _, known := p.handler.entries[s.address]; known && p.write(s.address, s.original[:len(trap)]) == nil {
			copy(current, s.original[:len(trap)])
			return true
		}
	}
	js, ok := p.jumper.JumpSite(s.form, s.original)
	if !ok {
		return false
	}
	in := func(to uint64) bool {
		return p.hops[to&^0xfff] || slices.ContainsFunc(p.areas, func(a *area) bool { return to >= a.start && to < a.start+areaSize })
	}
	to, jumps := p.machine.Branch(arch.Text{Code: current, Start: s.address}, s.address+js.Offset)
	if !jumps || !in(to) {
		return false
	}
	length := int(js.Offset) + len(js.Fixed)
	if p.write(s.address, s.original[:min(length, len(s.original))]) != nil {
		return false
	}
	copy(current, s.original[:length])
	return true
}

// disarm puts the program's code back, while all threads are stopped. Code that is not the tracer's any more stays: a library
// was unloaded there.
func (p *tracee) disarm() {
	for key, s := range p.modules {
		if s != nil && !p.isArmed(s) {
			p.forgetSemaphores(key) // memory of something else may be there
		}
	}
	p.restore()
	for address, raised := range p.semaphores {
		p.addToSemaphore(address, -1)
		if raised.entry >= 0 {
			p.setEntry(raised.entry, entry{})
		}
	}
	p.removeHandler()
	p.setActive(0)
	p.armed, p.traps, p.semaphores = nil, map[uint64]*armedSite{}, map[uint64]raisedSemaphore{}
}

// restore puts the code back.
func (p *tracee) restore() {
	p.beginBatch()
	for _, s := range slices.Backward(p.armed) { // as armed sites may be part of the jumps of those before them
		if p.isArmed(s) {
			p.writeCode(s.at, s.old)
		}
	}
	if err := p.flush(); err != nil {
		p.t.warn(fmt.Errorf("process %d: %w", p.pid, err))
	}
}
