package arm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/inject"
	"sdtconvert/internal/trace/probe"
	"sdtconvert/internal/trace/ptrace"
)

// Wants reports whether there is something to arm: sites, or the dynamic linker; or the place of threads' IDs, which was not yet there before
// the program has begun.
func (a *Armer) Wants(found []*probe.Site) bool {
	return len(found) > 0 || a.loader.call != 0 && !a.loader.isDecided || a.hasJustBegun && a.injector != nil && a.injector.LacksThreadID()
}

// Arm arms sites, and the dynamic linker, while all threads are stopped. An error is of the whole process.
func (a *Armer) Arm(found []*probe.Site) (err error) {
	if !a.Wants(found) {
		return nil
	}
	a.hasJustBegun = false
	near := a.loader.call
	if len(found) > 0 {
		near = found[0].Address
	}
	if a.injector != nil {
		a.beginInjecting(near, len(found) > 0)
	}
	if len(found) > 0 {
		err = a.armSites(found)
	}
	a.watchLoader()
	if a.injector != nil {
		a.complain(a.injector.End())
	}
	return err
}

// beginInjecting has a thread make calls. If none can, the process has no injector from then on, and sites get breakpoints.
func (a *Armer) beginInjecting(near uint64, hasSites bool) {
	err := a.injector.Begin(near)
	if err == nil {
		err = a.undoEarlier()
	}
	if a.cannotCall = err != nil; err == nil {
		return
	}
	a.complain(a.injector.End())
	if !a.injector.HasAreas() { // else what an earlier call has put in is left and undone still
		a.injector = nil
	}
	if hasSites && !isGone(err) {
		a.warnBreakpoints(err)
	}
}

func (a *Armer) armSites(found []*probe.Site) error {
	if a.injector != nil {
		a.complain(a.injector.SetActive(true))
	}
	// A jump over the first byte of a site may depend on the bytes of the next site.
	slices.SortStableFunc(found, func(x, y *probe.Site) int { return cmp.Compare(y.Address, x.Address) })
	// Two probes may have one site, in functions that a linker has merged.
	found = slices.CompactFunc(found, func(x, y *probe.Site) bool { return x.Address == y.Address })
	a.session.sayModules(a, found)
	found, left := a.session.addSites(found)
	if left > 0 {
		a.warn("%d sites are not traced: a run has room for %d; name the probes that you want", left, events.MaxSites)
	}
	if a.injector != nil {
		a.injector.BeginBatch()
	}
	var trapped []string
	for i, s := range found {
		if s.Refused == "" {
			room := uint64(len(s.Original))
			if i > 0 {
				room = min(room, found[i-1].Address-s.Address)
			}
			err := a.armSite(s, int(room))
			if isGone(err) {
				return err
			}
			if err != nil {
				s.Refused = err.Error()
			}
		}
		if a.traps[s.Address] != nil {
			trapped = append(trapped, s.Text)
		}
		if s.Refused != "" {
			a.warn("%s at %s is left alone: %s", s.Text, s.Place, s.Refused)
		}
	}
	if a.injector == nil { // for a reason that was said
		return nil
	}
	if len(trapped) > 0 && !a.session.Traps && !a.cannotCall {
		a.warnTrapped(trapped)
	}
	return a.injector.Flush()
}

// warnTrapped names the sites that get breakpoints, before the program meets them.
func (a *Armer) warnTrapped(names []string) {
	const most = 5
	slices.Sort(names)
	others := ""
	if names = slices.Compact(names); len(names) > most {
		names, others = names[:most], fmt.Sprintf(" and %s", message.Plural(len(names)-most, "other probe"))
	}
	a.warn("the program stops at each hit of %s%s: no jump fits there (--no-breakpoints leaves them alone)", strings.Join(names, ", "), others)
}

// complain warns of an error of a process that goes on.
func (a *Armer) complain(err error) {
	if err != nil && !isGone(err) {
		a.warn("%w", err)
	}
}

func isGone(err error) bool { return errors.Is(err, ptrace.ErrGone) }

// armSite arms one site. room is how many bytes there are up to the next site.
func (a *Armer) armSite(s *probe.Site, room int) error {
	if s.Kind == arch.Enabled {
		if s.Semaphore != 0 {
			return a.raise(s)
		}
		return a.armTest(s)
	}
	current := make([]byte, len(s.Original))
	if err := a.readCode(s.Address, current); err != nil {
		return err
	}
	form := min(len(s.Form.Code), len(current))
	if !bytes.Equal(current[:form], s.Original[:form]) && !a.putBack(s, current) {
		return fmt.Errorf("it holds % x, and not % x: another tracer or debugger has armed it, or the program has changed it", current[:min(8, len(current))], s.Original[:min(8, len(current))])
	}
	// Of bytes behind the form, what is there counts: another site may be armed there.
	copy(current, s.Original[:form])
	if a.injector != nil && !a.cannotCall && !a.session.Traps {
		if js, ok := a.injector.Machine.JumpSite(s.Form, current); ok {
			if done, err := a.armByJump(s, js, current, room); done || err != nil {
				return errors.Join(err, a.raise(s))
			}
		}
	}
	if a.session.NoTraps {
		return errors.New("no jump fits there, and breakpoints are not wanted")
	}
	return errors.Join(a.armByTrap(s, current), a.raise(s))
}

// armByJump arms a site by a jump to a trampoline, if one can be put there.
func (a *Armer) armByJump(s *probe.Site, js arch.JumpSite, current []byte, room int) (bool, error) {
	if a.noRings {
		return false, nil // a breakpoint does
	}
	area, err := a.injector.AreaNear(s.Address)
	if err != nil {
		return false, nil
	}
	t := &arch.Trampoline{Site: s.Number, ThreadID: area.ThreadID(), Arguments: s.Layout.Arguments}
	if js.Resume > 0 {
		t.Resume = s.Address + js.Resume
	}
	isCounted, err := a.countForSink(t, s)
	if !isCounted && err == nil {
		err = a.record(t, s)
	}
	if err != nil {
		return false, a.withoutRings(err)
	}
	length := 0
	at, err := a.injector.Put(area, func(at uint64) []byte {
		t.Address = at
		code := a.injector.Machine.Trampoline(t)
		length = len(code)
		return code
	})
	if err != nil {
		return false, err
	}
	a.addPlace(place{start: at, end: at + uint64(length), trampoline: t, site: s})
	code := a.jump(s, js, t, current)
	if code == nil {
		// What is behind the next site stays: that site's trampoline goes on there.
		code = a.evict(s, js, t, current[:min(room, len(current))])
	}
	if code == nil {
		return false, nil
	}
	return true, a.change(s, s.Address+js.Offset, current[js.Offset:][:len(code)], code)
}

// record has a trampoline record events of a site.
func (a *Armer) record(t *arch.Trampoline, s *probe.Site) error {
	set, err := a.ringSet(s.Layout.Size)
	if err != nil {
		return err
	}
	t.Ring, t.Dropped, t.Alive = set.Ring, set.Address+events.DroppedAt(set.Ring, s.Number), set.Address+events.AliveAt(set.Ring)
	if t.Conditions, _ = a.session.Filter.Conditions(s); len(t.Conditions) > 0 {
		t.Rejected, err = a.counter(s.Number)
	}
	return err
}

// jump returns the bytes that arm a site by a jump to a trampoline. Without any, the site has no room.
func (a *Armer) jump(s *probe.Site, js arch.JumpSite, t *arch.Trampoline, current []byte) []byte {
	machine, from := a.injector.Machine, s.Address+js.Offset
	if !slices.Contains(js.Fixed, true) {
		return machine.Jump(from, t.Address)
	}
	tries := 0
	for to := range machine.Targets(from, current[js.Offset:], js) {
		if tries++; tries > maxTargets {
			break
		}
		if a.injector.Hop(to, t.Address) {
			a.addPlace(place{start: to, end: to + 1, trampoline: t, site: s})
			return machine.Jump(from, to)
		}
	}
	return nil
}

// maxTargets bounds the addresses that are tried for one site.
const maxTargets = 4096

// addPlace notes where a trampoline is.
func (a *Armer) addPlace(p place) {
	i, found := a.findPlace(p.start)
	if found {
		a.places[i] = p
		return
	}
	a.places = slices.Insert(a.places, i, p)
}

// findPlace returns the index of the place that begins at an address, or where it would be.
func (a *Armer) findPlace(start uint64) (int, bool) {
	return slices.BinarySearchFunc(a.places, start, func(p place, at uint64) int { return cmp.Compare(p.start, at) })
}

// armTest makes an is-enabled test true that loads no semaphore.
func (a *Armer) armTest(s *probe.Site) error {
	for _, test := range a.traits.Tests {
		if bytes.HasPrefix(s.Original, test.False) {
			current := make([]byte, len(test.False))
			if err := a.readCode(s.Address, current); err != nil {
				return err
			}
			switch {
			case bytes.Equal(current, test.True):
				current = test.False // a tracer that was killed has left it
			case !bytes.Equal(current, test.False):
				return fmt.Errorf("it holds % x: another tracer has armed it", current)
			}
			return a.change(s, s.Address, current, test.True)
		}
	}
	return errors.New("its form cannot be made true: convert with notes, so that it has a semaphore")
}

// change changes code, and remembers what was there.
func (a *Armer) change(s *probe.Site, at uint64, old, code []byte) error {
	a.armed = append(a.armed, &armedSite{Site: s, at: at, old: slices.Clone(old), new: slices.Clone(code)})
	return a.writeCode(at, code)
}

// raise raises a semaphore, once for all sites that have it.
func (a *Armer) raise(s *probe.Site) error {
	address := s.Semaphore
	if _, raised := a.semaphores[address]; raised || address == 0 {
		return nil
	}
	number, err := -1, error(nil)
	if a.injector != nil {
		number, err = a.injector.RecordSemaphore(address)
		a.complain(err)
	}
	if err := a.addToSemaphore(address, 1); err != nil {
		return errors.Join(err, a.forgetEntry(number))
	}
	a.semaphores[address] = semaphore{number, s.Module}
	return nil
}

// addToSemaphore counts a semaphore up or down; never below 0.
func (a *Armer) addToSemaphore(address uint64, n int) error {
	var data [2]byte
	if err := a.Read(address, data[:]); err != nil {
		return err
	}
	if n < 0 && a.order.Uint16(data[:]) == 0 {
		return nil
	}
	a.order.PutUint16(data[:], a.order.Uint16(data[:])+uint16(n))
	return a.Write(address, data[:])
}

var _ inject.Process = (*ptrace.Process)(nil)
