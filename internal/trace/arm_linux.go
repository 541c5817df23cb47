package trace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"syscall"

	"sdtconvert/arch"
	"sdtconvert/image"
)

// look finds the sites of modules that were not looked at before.
func (p *tracee) look() ([]*Site, error) {
	process, err := image.OpenProcess(p.pid)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	if p.machine == nil {
		if err := p.setMachine(process); err != nil {
			return nil, err
		}
	}
	var found []*Site
	loaded, root := map[string]bool{}, image.ProcessDirectory(p.pid)+"/root"
	for _, m := range process.Modules {
		version := versionOf(root, m)
		key := mappingKey(m, version)
		loaded[key] = true
		if _, known := p.modules[key]; known || m.Image == nil || m.Image.Machine() != p.machine {
			continue
		}
		p.modules[key] = nil
		sites, err := p.t.fileSites(m, version)
		if err != nil {
			p.t.warn(err)
		}
		for _, s := range sites {
			found = append(found, s.at(m.Base, key))
		}
	}
	for key := range p.modules {
		if !loaded[key] {
			p.forget(key)
		}
	}
	return found, nil
}

// versionOf returns the version of a module's file, below the root of its process.
func versionOf(root string, m *image.Module) (version fileVersion) {
	if m.Source != image.FromPath {
		return version
	}
	info, err := os.Stat(root + m.Path)
	if err != nil {
		return version
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		version = fileVersion{m.Path, uint64(stat.Dev), stat.Ino, stat.Size, info.ModTime().UnixNano()}
	}
	return version
}

// lookLater forgets that the modules of sites were looked at.
func (p *tracee) lookLater(found []*Site) {
	for _, s := range found {
		delete(p.modules, s.module)
	}
	p.mapsText = ""
}

// fileSites returns the sites of a module's file. They are kept for the next process that loads it.
func (t *tracer) fileSites(m *image.Module, version fileVersion) ([]*Site, error) {
	if sites, ok := t.files[version]; ok {
		return sites, nil
	}
	f := &finder{Options: t.Listing, Declarations: t.Declarations}
	err := f.find(m)
	if version != (fileVersion{}) && err == nil {
		t.files[version] = f.sites
	}
	return f.sites, err
}

// arm arms sites, while all threads are stopped. An error is of the whole process.
func (p *tracee) arm(found []*Site) error {
	if len(found) == 0 {
		return nil
	}
	if p.jumper != nil {
		err := p.prepare(found[0].address)
		defer func() { p.endCalls() }()
		if err != nil {
			p.jumper = nil
			p.warnBreakpoints(err)
		}
	}
	p.setActive(1)
	// A jump over the first byte of a site may depend on the bytes of the next site.
	slices.SortStableFunc(found, func(a, b *Site) int { return cmp.Compare(b.address, a.address) })
	// Two probes may have one site, in functions that a linker has merged.
	found = slices.CompactFunc(found, func(a, b *Site) bool { return a.address == b.address })
	found, left := p.t.addSites(found)
	if left > 0 {
		p.t.warn(fmt.Errorf("process %d: %d sites are not traced: a run has room for %d; name the probes that you want", p.pid, left, maxSites))
	}
	p.beginBatch()
	for _, s := range found {
		if s.refused == "" {
			if err := p.armSite(s); err != nil {
				s.refused = err.Error()
			}
		}
		if s.refused != "" {
			p.t.warn(fmt.Errorf("process %d: %s at %s is left alone: %s", p.pid, s.Text, s.place, s.refused))
		}
	}
	return p.flush()
}

// warnBreakpoints warns that sites get breakpoints, and why, unless the user has asked for them.
func (p *tracee) warnBreakpoints(reason error) {
	if p.t.jumps {
		p.t.warn(fmt.Errorf("process %d: sites get breakpoints: %w", p.pid, reason))
	}
}

// prepare has a thread make system calls, in an area of the tracer. The first time it undoes what an earlier tracer has left.
func (p *tracee) prepare(near uint64) error {
	isNew := p.areas == nil
	if isNew {
		if err := p.adopt(); err != nil {
			return err
		}
		if err := p.undoEarlier(); err != nil {
			return err
		}
		canCopy, err := p.callsForbidden()
		if p.canCopy = canCopy; err != nil {
			return err
		}
	}
	if err := p.beginCalls(); err != nil || !isNew {
		return err
	}
	p.findThreadID()
	if len(p.areas) > 0 {
		return nil
	}
	if _, err := p.newArea(near); err != nil {
		return err
	}
	return p.placeStub() // in the area
}

// undoEarlier lowers the semaphores that a tracer has left raised which was killed, and disarms its sites.
func (p *tracee) undoEarlier() error {
	for _, e := range p.ledger {
		if e.kind == hopEntry {
			p.hops[e.address] = true
		}
	}
	if !p.leftArmed {
		return nil
	}
	defer func() { p.leftArmed = false }()
	return p.disarmOthers()
}

// armSite arms one site.
func (p *tracee) armSite(s *Site) error {
	if s.kind == arch.Enabled {
		if s.semaphore != 0 {
			return p.raise(s)
		}
		return p.armTest(s)
	}
	current := make([]byte, len(s.original))
	if err := p.readCode(s.address, current); err != nil {
		return err
	}
	if !bytes.Equal(current[:min(len(s.form.Code), len(current))], s.original[:min(len(s.form.Code), len(current))]) && !p.isOurs(s, current) {
		return fmt.Errorf("it holds % x, and not % x: another tracer or debugger has armed it, or the program has changed it", current[:min(8, len(current))], s.original[:min(8, len(current))])
	}
	// Of bytes behind the form, what is there counts: another site may be armed there.
	copy(current, s.original[:min(len(s.form.Code), len(current))])
	if p.jumper != nil && p.t.jumps && !s.layout.twice && (p.canCopy || !s.layout.copies) {
		if js, ok := p.jumper.JumpSite(s.form, current); ok {
			if done, err := p.armByJump(s, js, current); done || err != nil {
				return errors.Join(err, p.raise(s))
			}
		}
	}
	return errors.Join(p.armByTrap(s, current), p.raise(s))
}

// armByJump arms a site by a jump to a trampoline, if one can be put there.
func (p *tracee) armByJump(s *Site, js arch.JumpSite, current []byte) (bool, error) {
	a, err := p.areaNear(s.address)
	if err != nil {
		return false, nil // a breakpoint does
	}
	t := arch.Trampoline{Site: s.Number, ThreadID: a.start + threadIDAt, Arguments: s.layout.arguments}
	if js.Resume > 0 {
		t.Resume = s.address + js.Resume
	}
	if p.t.Count {
		t.Ring.Count = newRing(minimumEvent, runtime.NumCPU()).Count
		if t.Counters, err = p.counter(s.Number, t.Ring.Count); err != nil {
			return false, p.withoutRings(err)
		}
	} else {
		set, err := p.ringSet(s.layout.size)
		if err != nil {
			return false, p.withoutRings(err)
		}
		t.Ring, t.Dropped = set.Ring, set.Address+droppedAt(set.Ring, s.Number)
		if t.Conditions = p.t.Filter.conditions(s); len(t.Conditions) > 0 {
			if t.Rejected, err = p.counter(s.Number, t.Ring.Count); err != nil {
				return false, p.withoutRings(err)
			}
		}
	}
	trampoline, err := p.put(a, func(at uint64) []byte {
		t.Address = at
		return p.jumper.Trampoline(&t)
	})
	if err != nil {
		return false, err
	}
	code := p.jump(s, js, a, trampoline, current)
	if code == nil {
		return false, nil
	}
	return true, p.change(s, s.address+js.Offset, current[js.Offset:][:len(code)], code)
}

// withoutRings warns once that the process cannot have rings. A breakpoint needs none.
func (p *tracee) withoutRings(reason error) error {
	if errors.Is(reason, errGone) {
		return reason
	}
	if !p.hasNoRings {
		p.hasNoRings = true
		p.warnBreakpoints(reason)
	}
	return nil
}

// ringSet returns the rings of events of a size.
func (p *tracee) ringSet(size uint32) (*collectedRing, error) {
	if set := p.rings[size]; set != nil {
		return set, nil
	}
	r := newRing(size, runtime.NumCPU())
	address, memory, err := p.share(ringLength(r))
	if err != nil {
		return nil, err
	}
	r.Address = address
	p.rings[size] = p.t.collector.addRing(newRingReader(r, memory, p.order), p.pid)
	return p.rings[size], nil
}

// counter returns the address of a site's counters, one for each of so many processors.
func (p *tracee) counter(site, processors uint32) (uint64, error) {
	length := uint64(countersPerTable) * uint64(processors) * arch.CounterStride
	table := int(site / countersPerTable)
	for len(p.counters) <= table {
		address, memory, err := p.share(length)
		if err != nil {
			return 0, err
		}
		counts := &counterTable{memory: memory, first: uint32(len(p.counters)) * countersPerTable, processors: processors}
		p.t.collector.addCounters(counts)
		p.counters, p.tables = append(p.counters, address), append(p.tables, counts)
	}
	return p.counters[table] + uint64(site%countersPerTable)*uint64(processors)*arch.CounterStride, nil
}

// armTest makes an is-enabled test true that loads no semaphore.
func (p *tracee) armTest(s *Site) error {
	for _, test := range p.machine.Traits().Tests {
		if bytes.HasPrefix(s.original, test.False) {
			current := make([]byte, len(test.False))
			if err := p.readCode(s.address, current); err != nil {
				return err
			}
			switch {
			case bytes.Equal(current, test.True):
				current = test.False // a tracer that was killed has left it
			case !bytes.Equal(current, test.False):
				return fmt.Errorf("it holds % x: another tracer has armed it", current)
			}
			return p.change(s, s.address, current, test.True)
		}
	}
	return errors.New("its form cannot be made true: convert with notes, so that it has a semaphore")
}

// change changes code, and remembers what was there.
func (p *tracee) change(s *Site, at uint64, old, code []byte) error {
	a := &armedSite{s, at, slices.Clone(old), slices.Clone(code)}
	p.armed = append(p.armed, a)
	if p.modules[s.module] == nil {
		p.modules[s.module] = a
	}
	return p.writeCode(at, code)
}

// raise raises a semaphore, once for all sites that have it.
func (p *tracee) raise(s *Site) error {
	address := s.semaphore
	if _, raised := p.semaphores[address]; raised || address == 0 {
		return nil
	}
	number := -1
	if p.jumper != nil && len(p.areas) > 0 {
		var err error
		if number, err = p.record(entry{semaphoreEntry, address, 2}); err != nil {
			number = -1
		}
	}
	p.semaphores[address] = raisedSemaphore{number, s.module}
	return p.addToSemaphore(address, 1)
}

// addToSemaphore counts a semaphore up or down; never below 0.
func (p *tracee) addToSemaphore(address uint64, n int) error {
	var data [2]byte
	if err := p.read(address, data[:]); err != nil {
		return err
	}
	if n < 0 && p.order.Uint16(data[:]) == 0 {
		return nil
	}
	p.order.PutUint16(data[:], p.order.Uint16(data[:])+uint16(n))
	return p.write(address, data[:])
}

// begin arms a program that has come to its first instruction: the libraries that it needs are loaded.
func (p *tracee) begin(th *thread, data []byte, pc uint64) {
	th.stopped = true // so that ptrace can write, too
	if err := p.write(p.entry.at, p.entry.old); err != nil {
		p.t.warn(fmt.Errorf("process %d: its first instruction cannot be put back: %w", p.pid, err))
	}
	th.stopped = false
	p.entry = nil
	p.state.Put(data, p.state.PC, p.word, p.order, pc)
	setRegisters(th.tid, data)
	if p.stopping {
		resume(th.tid, 0)
		return
	}
	interrupt(th.tid)
	resume(th.tid, 0)
	p.t.attach(p)
}

// entryPoint returns where a program begins, as the kernel has told it (getauxval(3)).
func (p *tracee) entryPoint() (uint64, bool) {
	const entryType = 9
	text := []byte(readText(image.ProcessDirectory(p.pid) + "/auxv"))
	for len(text) >= 2*p.word {
		if readNumber(text[:p.word], p.order) == entryType {
			return readNumber(text[p.word:][:p.word], p.order), true
		}
		text = text[2*p.word:]
	}
	return 0, false
}

// armFiltered arms all sites with breakpoints when the program has installed a seccomp filter that may forbid the calls of trampolines.
func (p *tracee) armFiltered() {
	if !p.stop() {
		return
	}
	if p.jumper == nil {
		p.resume()
		return
	}
	canCopy, forbidden := p.callsForbidden()
	if forbidden == nil && canCopy == p.canCopy {
		p.resume()
		return
	}
	p.canCopy = canCopy
	p.disarm()
	p.modules = map[string]*armedSite{}
	if forbidden != nil {
		p.jumper = nil
		p.warnBreakpoints(forbidden)
	}
	found, err := p.look()
	if err != nil {
		p.t.warn(err)
	}
	p.t.attachSites(p, found)
}

// threadsPerLook is how many threads the tracer looks at for new filters each time.
const threadsPerLook = 16

// hasNewFilter reports whether a thread has installed a seccomp filter.
func (p *tracee) hasNewFilter() bool {
	all := slices.Sorted(maps.Keys(p.threads))
	for range min(len(all), threadsPerLook) {
		p.lookedAt++
		state := seccompState(all[p.lookedAt%len(all)])
		if state != "" && !slices.Contains(p.filters, state) {
			p.filters = append(p.filters, state)
			return true
		}
	}
	return false
}

// lookAgain looks for libraries that were loaded since, and for ones that were unloaded and loaded again, whose code is not
// armed any more.
func (p *tracee) lookAgain() {
	if p.entry != nil {
		return
	}
	if p.hasNewFilter() {
		p.armFiltered()
	}
	text := readText(image.ProcessDirectory(p.pid) + "/maps")
	changed := text != p.mapsText
	p.mapsText = text
	for key, s := range p.modules {
		if s == nil {
			continue
		}
		current := make([]byte, len(s.new))
		if p.read(s.at, current) == nil && bytes.Equal(current, s.old) {
			p.forget(key)
			changed = true
		}
	}
	if !changed || text == "" {
		return
	}
	if found, err := p.look(); err == nil && len(found) > 0 {
		p.t.attachSites(p, found)
	}
}
