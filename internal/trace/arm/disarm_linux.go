package arm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/trace/inject"
	"sdtconvert/internal/trace/probe"
)

// forget forgets a module that was unloaded. If it is loaded again its semaphores are 0.
func (a *Armer) forget(key string) {
	delete(a.modules, key)
	a.armed = slices.DeleteFunc(a.armed, func(s *armedSite) bool { return s.module() == key })
	maps.DeleteFunc(a.traps, func(_ uint64, s *armedSite) bool { return s.Site != nil && s.module() == key })
	a.complain(a.forgetSemaphores(key))
}

// forgetSemaphores forgets the semaphores of a module that was unloaded.
func (a *Armer) forgetSemaphores(key string) (err error) {
	for address, raised := range a.semaphores {
		if raised.module == key {
			err = errors.Join(err, a.forgetEntry(raised.entry))
			delete(a.semaphores, address)
		}
	}
	return err
}

// forgetEntry removes an entry from the ledger.
func (a *Armer) forgetEntry(n int) error {
	if a.injector == nil {
		return nil
	}
	return a.injector.Forget(n)
}

// holds reports whether an address holds bytes. What cannot be read holds others.
func (a *Armer) holds(at uint64, want []byte) bool {
	current := make([]byte, len(want))
	return a.readCode(at, current) == nil && bytes.Equal(current, want)
}

// Disarm puts the program's code back, while all threads are stopped, and has threads leave trampolines. Code that is not the tracer's any
// more stays: a library was unloaded there, or another tracer has armed it.
func (a *Armer) Disarm() error {
	held, lost := map[string]bool{}, map[string]bool{} // modules with code of the tracer's, and without any
	for _, s := range a.armed {
		switch {
		case s.Site == nil:
		case a.holds(s.at, s.new):
			held[s.module()] = true
		case !s.isTaken:
			lost[s.module()] = true
		}
	}
	maps.DeleteFunc(lost, func(key string, _ bool) bool { return held[key] })
	var errs []error
	for key := range lost {
		errs = append(errs, a.forgetSemaphores(key)) // memory of something else may be there
	}
	errs = append(errs, a.restore())
	for address, raised := range a.semaphores {
		errs = append(errs, a.addToSemaphore(address, -1), a.forgetEntry(raised.entry))
	}
	for _, tid := range a.Stopped() {
		a.leave(tid)
	}
	if a.injector != nil {
		if err := a.injector.RemoveHandler(); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("its handler of SIGTRAP stays: %w", err))
		}
		errs = append(errs, a.injector.SetActive(false))
	}
	a.armed, a.traps, a.entry, a.semaphores = nil, map[uint64]*armedSite{}, nil, map[uint64]semaphore{}
	return errors.Join(errs...)
}

// restore puts the code back.
func (a *Armer) restore() (err error) {
	if a.injector != nil {
		a.injector.BeginBatch()
	}
	if a.entry != nil && a.holds(a.entry.at, a.entry.new) {
		err = a.writeCode(a.entry.at, a.entry.old)
	}
	for _, s := range slices.Backward(a.armed) { // as armed sites may be part of the jumps of those before them
		if a.holds(s.at, s.new) {
			if writeErr := a.writeCode(s.at, s.old); writeErr != nil {
				err = errors.Join(err, fmt.Errorf("the code at %#x cannot be put back: %w", s.at, writeErr))
			}
		}
	}
	if a.injector != nil {
		err = errors.Join(err, a.injector.Flush())
	}
	return err
}

// UndoIn puts the code back in a child that is not traced, and has in its memory what its parent has.
func (a *Armer) UndoIn(child inject.Process) error {
	c := &Armer{Process: child, session: a.session, order: a.order, state: state{armed: a.armed, entry: a.entry}}
	err := c.restore()
	for address := range a.semaphores {
		err = errors.Join(err, c.addToSemaphore(address, -1))
	}
	return err
}

// undoEarlier lowers the semaphores that a tracer has left raised which was killed, and disarms its sites, also of probes that are not
// wanted now.
func (a *Armer) undoEarlier() error {
	if !a.injector.LeftArmed {
		return nil
	}
	defer func() { a.injector.LeftArmed = false }()
	found, err := a.findAll()
	if err != nil {
		return err
	}
	return a.undo(found)
}

// allSites finds all sites of the process, whatever is wanted.
func (a *Armer) allSites() (found []*probe.Site, err error) {
	process, err := image.OpenProcess(a.PID())
	if err != nil {
		return nil, err
	}
	defer process.Close()
	for _, m := range process.Modules {
		if m.Image == nil || m.Image.Machine() != a.Machine {
			continue
		}
		all := &probe.Finder{Options: a.session.Listing, CodeOnly: true}
		all.Filter = listing.Filter{}
		if err := all.Find(m); err != nil {
			a.session.Warn(err)
		}
		for _, s := range all.Sites {
			found = append(found, s.At(m.Base, ""))
		}
	}
	return found, nil
}

// undo undoes what a killed tracer has done at sites.
func (a *Armer) undo(found []*probe.Site) error {
	raised, err := a.injector.TakeSemaphores()
	for _, address := range raised {
		// Something else may be there since its library was unloaded.
		if slices.ContainsFunc(found, func(s *probe.Site) bool { return s.Semaphore == address }) {
			err = errors.Join(err, a.addToSemaphore(address, -1))
		}
	}
	slices.SortStableFunc(found, func(x, y *probe.Site) int { return cmp.Compare(x.Address, y.Address) })
	for _, s := range found {
		current := make([]byte, len(s.Original))
		if a.Read(s.Address, current) != nil {
			continue
		}
		test := slices.IndexFunc(a.traits.Tests, func(c arch.TestCode) bool {
			return bytes.HasPrefix(s.Original, c.False) && bytes.HasPrefix(current, c.True)
		})
		switch {
		case s.Kind == arch.Enabled && s.Semaphore == 0 && test >= 0:
			err = errors.Join(err, a.Write(s.Address, a.traits.Tests[test].False))
		case s.Kind == arch.Probe:
			a.putBack(s, current)
		}
	}
	if call := a.loader.call; call != 0 && a.injector.Outlives(call) {
		err = errors.Join(err, a.undoLoader())
	}
	return err
}

// putBack puts a site's own code back, also into current, if a killed tracer has left a jump to an area or a hop, or a breakpoint. It returns
// false if something else is there.
func (a *Armer) putBack(s *probe.Site, current []byte) bool {
	if a.injector == nil {
		return false
	}
	if trap := a.breakpoint(s.Form); a.injector.LeftArmed && len(trap) > 0 && bytes.HasPrefix(current, trap) && a.injector.Outlives(s.Address) {
		if a.writeCode(s.Address, s.Original[:len(trap)]) == nil {
			copy(current, s.Original[:len(trap)])
			return true
		}
	}
	js, ok := a.injector.Machine.JumpSite(s.Form, s.Original)
	if !ok {
		return false
	}
	to, jumps := a.Machine.Branch(arch.Text{Code: current, Start: s.Address}, s.Address+js.Offset)
	if !jumps || !a.injector.Holds(to) {
		return false
	}
	length := min(int(js.Offset)+len(js.Fixed), len(s.Original))
	if evictor, ok := a.injector.Machine.(arch.Evictor); ok && js.Offset == 0 && js.Resume == 1 {
		length = max(length, a.evictedLength(evictor, s, current))
	}
	if a.writeCode(s.Address, s.Original[:length]) != nil {
		return false
	}
	copy(current, s.Original[:length])
	return true
}
