package check

import (
	"debug/elf"
	"iter"
	"maps"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// page is the size of the smallest pages of the machines that are known, in bytes.
// What shares one of these shares one of the larger ones.
const page = 4096

// noteTest records which semaphore an is-enabled test of a probe loads, or that it loads none.
func (c *fileChecker) noteTest(e *sites.Site, probe linkerset.Probe) {
	loaded, ok, err := c.space.Semaphore(e)
	c.fail(err)
	guard := semaphore{id: c.semaphoreID(loaded)}
	if ok {
		guard.name = c.semaphoreName(loaded)
	}
	guard.finding = c.finding(DeadGuard, e.Address, nameOf(probe), "")
	c.addGuard(noteID(probe), guard)
}

// checkSemaphorePlace checks where an image has a semaphore that its notes name. Tracers tell the
// kernel its place in the file, and the kernel counts in the first writable mapping of
// that place.
func (c *fileChecker) checkSemaphorePlace(at image.Addr, probe string) {
	name := c.semaphoreName(image.Ref{Addr: at})
	segments, err := c.Segments()
	if c.fail(err) {
		return
	}
	if why := unreachable(segments, at.Offset); why != "" {
		c.add(SemaphorePlace, at, probe, "the semaphore %s is %s", name, why)
		return
	}
	if sec := c.sectionAt(at.Offset); sec != nil && sec.Name != notes.SemaphoreSection {
		c.add(SemaphoreSection, at, probe, "the semaphore %s is in %s; bcc, and bpftrace where it uses bcc, know it in %s alone", name, sec.Name, notes.SemaphoreSection)
	}
	if segment := mappedBefore(segments, at.Offset); segment != nil {
		c.add(EarlySemaphore, at, probe, "the page of the semaphore %s is in the file's segment at %#x too; a tracer that starts the program counts there", name, segment.Vaddr)
	}
}

// loaded finds the segment that holds a semaphore.
func loaded(segments []elfreloc.Segment, addr uint64) *elfreloc.Segment {
	for i := range segments {
		if s := &segments[i]; s.Type == elf.PT_LOAD && addr >= s.Vaddr && s.Memsz >= notes.SemaphoreSize && addr-s.Vaddr <= s.Memsz-notes.SemaphoreSize {
			return s
		}
	}
	return nil
}

// unreachable says why the kernel cannot count in a semaphore, "" where it can.
func unreachable(segments []elfreloc.Segment, addr uint64) string {
	s := loaded(segments, addr)
	switch {
	case s == nil:
		return "not in the image"
	case s.Flags&elf.PF_W == 0:
		return "in memory that cannot be written"
	case s.Filesz < notes.SemaphoreSize || addr-s.Vaddr > s.Filesz-notes.SemaphoreSize:
		return "in no place of the file, by which tracers name it to the kernel"
	}
	for i := range segments {
		// Loaders protect whole pages, and leave the page that the range ends in writable.
		r := &segments[i]
		if end := (r.Vaddr + r.Memsz) &^ (page - 1); r.Type == elf.PT_GNU_RELRO && addr >= r.Vaddr && addr < end {
			return "in memory that cannot be written once the program has started (PT_GNU_RELRO)"
		}
	}
	return ""
}

// mappedBefore finds another writable segment whose mapping has the semaphore's place in
// the file too, at lower addresses, nil for none: in some linkers' images the segment
// that is protected after the start ends in the page in which that of data begins.
func mappedBefore(segments []elfreloc.Segment, addr uint64) *elfreloc.Segment {
	segment := loaded(segments, addr)
	offset := segment.Offset + (addr - segment.Vaddr)
	for i := range segments {
		s := &segments[i]
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_W == 0 || s.Vaddr >= segment.Vaddr || s.Filesz == 0 {
			continue
		}
		first := s.Offset &^ (page - 1)
		size := (s.Vaddr+s.Filesz+page-1)&^(page-1) - s.Vaddr&^(page-1)
		if offset >= first && offset-first < size {
			return s
		}
	}
	return nil
}

// sectionAt finds the section that holds an address of an image, nil where section
// headers do not tell.
func (c *fileChecker) sectionAt(addr uint64) *elfreloc.Section {
	for i := range c.Sections {
		if s := &c.Sections[i]; s.Flags&elf.SHF_ALLOC != 0 && addr >= s.Addr && addr-s.Addr < s.Size {
			return s
		}
	}
	return nil
}

// guardSymbols notes the semaphores that have no name of a probe yet. Conversions with notes
// give them one.
func (c *fileChecker) guardSymbols() {
	if !c.namesContain([]byte(patch.GuardPrefix)) {
		return
	}
	for _, s := range c.symbols().WithPrefix(patch.GuardPrefix) {
		at := c.symbolRef(&s)
		id := strings.TrimPrefix(s.Name, patch.GuardPrefix)
		c.addGuard(idOf(linkerset.SplitID(id)), semaphore{c.semaphoreID(at), s.Name, c.finding(DeadGuard, at.Addr, id, "")})
	}
}

// addGuard notes the semaphore that tests of a probe load.
func (c *fileChecker) addGuard(id string, guard semaphore) {
	if c.err == nil {
		c.scope.guards[id] = append(c.scope.guards[id], guard)
	}
}

// symbolRef returns what a relocation against a symbol refers to.
func (c *fileChecker) symbolRef(s *elfreloc.Symbol) image.Ref {
	at := image.Ref{Addr: image.Addr{Offset: s.Value}, Undefined: s.Section == 0}
	if c.relocatable() {
		at.Addr.Section, at.Symbol = max(s.Section, 0), s.Name
	}
	return at
}

// guardReads notes the semaphores that the code of an object refers to, by their symbols. What only
// defines one is not a guard: objects of provider files do.
//
// Linkers keep a semaphore of sdt.h in an image only if code refers to it.
func (c *fileChecker) guardReads() {
	if !c.relocatable() {
		c.imageSemaphores()
		return
	}
	if !c.namesContain([]byte(patch.GuardPrefix), []byte(notes.SemaphoreSuffix)) {
		return
	}
	syms, symbols := c.symbols(), map[uint32]*semaphore{}
	for i := 1; i < syms.Len(); i++ {
		if name := syms.Name(i); !strings.HasPrefix(name, patch.GuardPrefix) && !strings.HasSuffix(name, notes.SemaphoreSuffix) {
			continue
		}
		s := syms.At(i)
		sem := &semaphore{id: c.semaphoreID(c.symbolRef(&s)), name: s.Name}
		if s.Section > 0 && s.Section < len(c.Sections) && notes.HoldsSemaphores(&c.Sections[s.Section]) {
			c.scope.inSections[sem.id] = true
		}
		symbols[uint32(i)] = sem
	}
	if len(symbols) == 0 {
		return
	}
	none, first := c.Machine.Traits().None, map[uint32]image.Addr{}
	c.fail(c.EachRelocationOf((*elfreloc.Section).Executable, func(target int, r elfreloc.Relocation) error {
		if _, seen := first[r.Sym]; !seen && r.Type != none && symbols[r.Sym] != nil {
			first[r.Sym] = image.Addr{Section: target, Offset: r.Offset}
		}
		return nil
	}))
	for _, sym := range slices.Sorted(maps.Keys(first)) {
		c.readAt(symbols[sym], first[sym])
	}
}

// imageSemaphores notes the semaphores that an image has under the names of probes whose providers have records in it. Those of a provider file are
// there for all its probes.
func (c *fileChecker) imageSemaphores() {
	if !c.namesContain([]byte(notes.SemaphoreSuffix)) {
		return
	}
	syms := c.symbols()
	for i := 1; i < syms.Len(); i++ {
		if !strings.HasSuffix(syms.Name(i), notes.SemaphoreSuffix) {
			continue
		}
		s := syms.At(i)
		if s.Section <= 0 || s.Section >= len(c.Sections) || !notes.HoldsSemaphores(&c.Sections[s.Section]) {
			continue
		}
		if sem := (&semaphore{id: c.semaphoreID(c.symbolRef(&s)), name: s.Name}); !c.scope.inSections[sem.id] {
			c.scope.inSections[sem.id], c.scope.inImage[sem.id] = true, true
			c.readAt(sem, image.Addr{Offset: s.Value})
		}
	}
}

// readAt records that code reads a semaphore. Its finding has the semaphore's name in place of a probe:
// where the provider's name ends is unknown.
func (c *fileChecker) readAt(s *semaphore, at image.Addr) {
	probe, isGuard := strings.CutPrefix(s.name, patch.GuardPrefix)
	if !isGuard {
		probe = strings.TrimSuffix(s.name, notes.SemaphoreSuffix)
	}
	if s.finding = c.finding(DeadGuard, at, probe, ""); c.err == nil {
		c.scope.guardReads = append(c.scope.guardReads, *s)
	}
}

// deadGuards finds the guards that no tracer makes true.
func (l *link) deadGuards(s *scope) {
	reported, hasNote := map[semaphoreID]bool{}, s.namedSemaphores()
	for _, id := range slices.Sorted(maps.Keys(s.guards)) {
		for i := range s.guards[id] {
			g := &s.guards[id][i]
			isTest := !strings.HasPrefix(g.name, patch.GuardPrefix)
			if semaphores, ok := s.notes[id]; ok {
				l.otherSemaphore(semaphores, g)
			} else if isTest && g.name != "" || !isTest && s.recordedCalls[id] {
				if !hasNote[g.id] {
					l.withoutNote(s, id, g)
				}
			} else {
				continue // if code reads it, that finds it
			}
			reported[g.id] = true
		}
	}
	for i := range s.guardReads {
		r := &s.guardReads[i]
		if reported[r.id] || s.brokenNotes || hasNote[r.id] || !s.isGuard(r) || s.ofProviderFile(r.name) || s.inImage[r.id] && (len(s.notes) == 0 || !s.hasRecordedProvider(r.name)) {
			continue
		}
		reported[r.id] = true
		if id, ok := strings.CutPrefix(r.name, patch.GuardPrefix); ok {
			l.withoutNote(s, idOf(linkerset.SplitID(id)), r)
			continue
		}
		if s.recordsOf(r.name) {
			l.add(r.finding, DeadGuard, "a guard reads %s, and no site of the probe has a note; %s", r.name, withNotes)
			continue
		}
		l.add(r.finding, DeadGuard, "a guard reads %s, which no note names, so no tracer raises it; %s", r.name, oneName)
	}
}

// recordsOf reports whether a file has records of the probe that a semaphore is named after.
func (s *scope) recordsOf(semaphore string) bool {
	if s.recordNames == nil {
		s.recordNames = map[string]bool{}
		for id := range s.recordedCalls {
			s.recordNames[notes.SemaphoreName(linkerset.SplitID(id))] = true
		}
	}
	return s.recordNames[semaphore]
}

// What to do about guards.
const (
	withNotes = "convert every object with notes (--stapsdt beside a --layout)"
	oneName   = "give guard and tracepoint one name"
)

// otherSemaphore finds a guard that reads another semaphore than tracers raise, or none where
// there is one.
func (l *link) otherSemaphore(semaphores []semaphore, g *semaphore) {
	isSame := func(s semaphore) bool { return s.id == g.id }
	switch none := len(semaphores) == 0; {
	case none && g.name == "" || slices.ContainsFunc(semaphores, isSame):
	case none:
		l.add(g.finding, DeadGuard, "a guard reads %s, and the notes of the probe name no semaphore; %s", g.name, withNotes)
	case g.name == "":
		l.add(g.finding, DeadGuard, "this test is never true, and the notes of the probe name %s; %s", semaphores[0].name, withNotes)
	default:
		l.add(g.finding, DeadGuard, "a guard reads %s, and the notes of the probe name %s; %s", g.name, semaphores[0].name, withNotes)
	}
}

// withoutNote finds a guard of a probe that has no note: no tracer knows it. What is still to
// be converted may get one.
func (l *link) withoutNote(s *scope, id string, g *semaphore) {
	switch {
	case s.brokenNotes, s.liveCalls[id]:
	case s.recordedCalls[id]:
		l.add(g.finding, DeadGuard, "a guard reads %s, and no site of the probe has a note; %s", g.name, withNotes)
	default:
		l.add(g.finding, DeadGuard, "a guard reads %s, and the probe has no site, so no tracer raises it; %s", g.name, oneName)
	}
}

// namedSemaphores returns those that notes of any probe name: a:b_c and a_b:c share one.
func (s *scope) namedSemaphores() map[semaphoreID]bool {
	ids := map[semaphoreID]bool{}
	for _, semaphores := range s.notes {
		for i := range semaphores {
			ids[semaphores[i].id] = true
		}
	}
	return ids
}

// isGuard reports whether what code reads is a semaphore. Other variables may have such a
// name too, but they are not in .probes.
func (s *scope) isGuard(read *semaphore) bool {
	return strings.HasPrefix(read.name, patch.GuardPrefix) || s.inSections[read.id]
}

// ofProviderFile reports whether a semaphore is of a provider whose sites have notes and no
// records. The header of a provider file has a test of each of its probes, so that none is
// misspelt, and sources may test what they do not fire.
func (s *scope) ofProviderFile(semaphore string) bool {
	if s.hasRecordedProvider(semaphore) {
		return false
	}
	for provider := range providersOf(semaphore) {
		if s.noteProviders[provider] {
			return true
		}
	}
	return false
}

// hasRecordedProvider reports whether a semaphore may be of a provider whose sites have records.
func (s *scope) hasRecordedProvider(semaphore string) bool {
	for provider := range providersOf(semaphore) {
		if s.recordProviders[provider] {
			return true
		}
	}
	return false
}

// providersOf yields the providers that the name of a semaphore may begin with.
func providersOf(semaphore string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, end := 0, 0; i < mostParts; i++ {
			next := strings.IndexByte(semaphore[end:], '_')
			if next < 0 || !yield(semaphore[:end+next]) {
				return
			}
			end += next + 1
		}
	}
}

// mostParts is in how many places the name of a semaphore is taken apart, so that one of
// nothing but underscores takes no longer.
const mostParts = 64
