package check

import (
	"cmp"
	"debug/elf"
	"errors"
	"iter"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// semaphore is one that a note names.
type semaphore struct {
	id      semaphoreID
	name    string  // as messages call it
	finding Finding // at the first site whose note names it
}

// semaphoreID identifies a semaphore: in objects by its symbol, because the linker merges semaphores of one
// name, and in images, or if only a section's symbol names it, by its place.
type semaphoreID struct {
	symbol string
	location
}

// idOf returns the id of a probe by the names that a note has.
func idOf(provider, name string) string { return provider + "___" + name }

// notes checks the notes of a file, and collects the semaphores that they name.
func (c *fileChecker) notes() {
	if c.fail(c.space.Faults.NotesUnread) {
		return
	}
	notes, faults := c.space.Notes, c.space.Faults.Notes
	for _, fault := range faults {
		c.addWhole(BrokenNote, "", "%s", withoutFile(fault))
		c.scope.brokenNotes = c.set.applies(BrokenNote)
	}
	if c.hasLostNotes(len(notes) + len(faults)) {
		c.scope.brokenNotes, c.set.lostNotes = true, true
	}
	c.noteSections(notes, len(faults) > 0)
	c.noteTraits(notes)
	c.strayNotes(notes)
	if c.unreadArguments(notes); c.err != nil {
		return
	}
	found := map[image.Addr]bool{}
	for i := range notes {
		n := &notes[i]
		id := idOf(n.Provider, n.Name)
		if _, ok := c.scope.notes[id]; !ok {
			c.scope.notes[id] = nil // until a note names one
		}
		if n.Semaphore.Null() {
			continue
		}
		if c.addSemaphore(id, n); c.err != nil {
			return
		}
		if !c.relocatable() && !found[n.Semaphore.Addr] {
			found[n.Semaphore.Addr] = true
			c.checkSemaphorePlace(n.Semaphore.Addr, shownID(n.Provider, n.Name))
		}
	}
}

// noteSections finds an image that has lost one of the two sections that notes make. The base
// is loaded, and the notes are not: tools that strip files tell them apart. Linkers other than GNU ld
// collect the base, because only notes refer to it in others' macros; the notes then have 0 for its address.
func (c *fileChecker) noteSections(siteNotes []notes.Note, broken bool) {
	if c.relocatable() {
		c.localizedBase()
		return
	}
	removedBase := func(n notes.Note) bool { return n.Base != 0 && c.hasCode(n.Site.Addr) }
	collectedBase := func(n notes.Note) bool { return n.Base == 0 && c.hasCode(n.Site.Addr) }
	switch hasBase := c.sectionNamed(notes.BaseSection) != nil; {
	case hasBase && len(siteNotes) == 0 && !broken:
		c.addWhole(MissingNote, "", "has %s and no note, so tracers find no site; link again, and keep %s (--keep-section of strip)", notes.BaseSection, notes.StapsdtSection)
	case !hasBase && slices.ContainsFunc(siteNotes, removedBase):
		c.addWhole(BrokenNote, "", "has notes and no section %s, without which gdb finds no probe; keep that section", notes.BaseSection)
	case !hasBase && slices.ContainsFunc(siteNotes, collectedBase):
		c.addWhole(BrokenNote, "", "has notes and no section %s, without which gdb finds no probe: the linker has collected it (--gc-sections); link with -Wl,-u,%s", notes.BaseSection, notes.BaseSymbol)
	default:
		c.wrongBases(siteNotes)
	}
}

// prelinkStep is what all distances are multiples of by which prelink moves a program, in bytes.
const prelinkStep = 4096

// wrongBases finds an image whose notes do not agree on the address of the base, or have one that is not its address.
func (c *fileChecker) wrongBases(siteNotes []notes.Note) {
	base := c.sectionNamed(notes.BaseSection)
	if base == nil || len(siteNotes) == 0 {
		return
	}
	first := siteNotes[0].Base
	if (base.Addr-first)%prelinkStep != 0 {
		first = base.Addr
	}
	if i := slices.IndexFunc(siteNotes, func(n notes.Note) bool { return n.Base != first }); i >= 0 {
		c.addWhole(BrokenNote, "", "has notes that put %s at %#x and at %#x, so tracers look for some probes at wrong addresses: a tool has made %s local in an object (objcopy --localize-hidden, -G); %s",
			notes.BaseSection, first, siteNotes[i].Base, notes.BaseSymbol, convertAfterwards)
	}
}

// convertAfterwards is what to do about symbols that objcopy has made local.
const convertAfterwards = "convert the object after objcopy, too, or link with -B"

// localizedBase finds an object in which a tool has made symbols local that a link has to see.
func (c *fileChecker) localizedBase() {
	if localized, err := patch.IsLocalized(c.Object.Object, c.set.opts.ProbePrefix); !c.fail(err) && localized {
		c.addWhole(BrokenNote, "", "a tool has made symbols local, or renamed them, of which a link keeps one, such as %s (objcopy --localize-hidden, -G), so tracers would look for probes at wrong addresses; %s",
			notes.BaseSymbol, convertAfterwards)
	}
}

// hasLostNotes reports whether an image has lost all its notes, which noteSections reports. That sites and
// guards have no notes is no finding of its own then.
func (c *fileChecker) hasLostNotes(count int) bool {
	return count == 0 && !c.relocatable() && c.sectionNamed(notes.BaseSection) != nil && c.set.applies(MissingNote)
}

// Whether images have notes for their records.
const (
	recordsWithNotes    = "records with notes"
	recordsWithoutNotes = "records without notes"
)

// noteTraits notes whether an image has notes for its records, and finds objects for a Linux kernel
// with notes.
func (c *fileChecker) noteTraits(notes []notes.Note) {
	if c.relocatable() && len(notes) > 0 && patch.HasKernelSections(c.Object.Object) {
		c.addWhole(KernelNotes, "", "has notes for tracers of user space, and is for a Linux kernel; convert it with --layout pairs")
	}
	if c.relocatable() || c.scope.brokenNotes || !has(c.recordedCalls()) {
		return
	}
	value := recordsWithoutNotes
	if has(c.notedCalls()) {
		value = recordsWithNotes
	}
	c.trait(MixedNotes, "", value)
}

// withoutFile returns the text of a fault without its file, which a finding has anyhow.
func withoutFile(fault error) string {
	if e, ok := errors.AsType[*elfreloc.Error](fault); ok {
		return strings.TrimPrefix(e.Error(), e.File+": ")
	}
	return fault.Error()
}

// addSemaphore adds the semaphore that a note of a probe names.
func (c *fileChecker) addSemaphore(probe string, n *notes.Note) {
	id, semaphores := c.semaphoreID(n.Semaphore), c.scope.notes[probe]
	if slices.ContainsFunc(semaphores, func(have semaphore) bool { return have.id == id }) {
		return
	}
	s := semaphore{id: id, finding: c.finding(SemaphoreMismatch, n.Site.Addr, shownID(n.Provider, n.Name), "")}
	s.name = c.semaphoreName(n.Semaphore)
	if c.err == nil {
		c.scope.notes[probe] = append(semaphores, s)
	}
}

func (c *fileChecker) semaphoreID(s image.Ref) semaphoreID {
	if c.relocatable() && s.Symbol != "" {
		return semaphoreID{symbol: s.Symbol}
	}
	return semaphoreID{location: location{c.index, s.Addr}}
}

// semaphoreName returns how messages call a semaphore.
func (c *fileChecker) semaphoreName(s image.Ref) string {
	name, err := notes.SemaphoreNameAt(c.code.Image, s)
	c.fail(err)
	return cmp.Or(name, c.code.Image.Place(s.Addr))
}

// shownID returns what findings call the probe of a note.
func shownID(provider, name string) string {
	p := linkerset.ProbeFromID(idOf(provider, name))
	p.ID = ""
	return nameOf(p)
}

// disagreements finds the probes whose notes name several semaphores.
func (l *link) disagreements(s *scope) {
	for _, semaphores := range s.notes {
		for i := 1; i < len(semaphores); i++ {
			first, second := &semaphores[0], &semaphores[i]
			l.add(second.finding, SemaphoreMismatch, "its note names the semaphore %s, and that of %s at %s names %s",
				second.name, cmp.Or(first.finding.Function, "no function"), first.finding.Place, first.name)
		}
	}
}

// notedCalls returns the records of probe calls that have a note, sorted by address.
func (c *fileChecker) notedCalls() iter.Seq[*sites.Site] {
	return func(yield func(*sites.Site) bool) {
		for s := range c.recordedCalls() {
			if s.Note != nil && !yield(s) {
				return
			}
		}
	}
}

// linkAgain is what to do about an image whose records have no notes.
const linkAgain = "link again with notes (--stapsdt beside a --layout), or, if objects are converted, compile again"

// missingNotes finds the recorded probe calls without a note, in a file where each is to
// have one: because the user says so, or as others of its records have one.
func (c *fileChecker) missingNotes() {
	if c.scope.brokenNotes {
		return
	}
	wanted := c.set.opts.RequireNotes
	if wanted && !c.relocatable() && !c.link.unconverted[c.index] && !has(c.sitesFrom(sites.FromNote)) && !has(c.recordedCalls()) {
		c.addWhole(MissingNote, "", "has neither notes nor records, and notes are required; %s, or check it without --require-notes", linkAgain)
	}
	if !wanted && !has(c.notedCalls()) {
		return
	}
	advice := linkAgain
	if c.relocatable() {
		advice = "compile it again, and convert it with notes (--stapsdt)"
	}
	if patch.HasKernelSections(c.Object.Object) {
		advice = "leave out --require-notes: kernels read no notes"
	}
	last := (*sites.Site)(nil)
	for s := range c.recordedCalls() {
		if s.Note == nil && (last == nil || last.Address != s.Address) {
			c.add(MissingNote, s.Address, nameOf(c.probe(s)), "this site has a record and no note, so tracers do not find it; %s", advice)
		}
		last = s
	}
}

// noteNames finds recorded calls whose note has another name than the probe's own structure: tracers do not find the probe by that.
func (c *fileChecker) noteNames() {
	seen := map[string]bool{}
	for s := range c.notedCalls() {
		probe, n := c.probe(s), s.Note
		isSame := probe.Provider == linkerset.DisplayName(n.Provider) && probe.Name == linkerset.DisplayName(n.Name)
		if c.err != nil || !probe.FromStruct || isSame || seen[n.ID()] {
			continue
		}
		seen[n.ID()] = true
		c.add(NoteName, s.Address, nameOf(probe), "its note names it %s:%s, so tracers do not find it as %s:%s; link with -B, or convert the object together with the one that defines the probe",
			n.Provider, n.Name, linkerset.EncodeName(probe.Provider), linkerset.EncodeName(probe.Name))
	}
}

// strayNotes finds notes whose addresses are not those of code. Some
// images keep notes of functions that the linker has dropped: what it has left of an address is
// below all code, and no site; or if it leads into code, it is taken for one, whose state is unknown.
func (c *fileChecker) strayNotes(notes []notes.Note) {
	type probeAt struct {
		at image.Addr
		id string
	}
	lowest, seen := c.lowestCode(), map[probeAt]bool{}
	for i := range notes {
		n := &notes[i]
		at := n.Site.Addr
		key := probeAt{at, n.ID()}
		if !n.Site.Undefined && at.Offset >= lowest && !c.code.Image.Executable(at) && !seen[key] {
			seen[key] = true
			c.add(StrayNote, at, shownID(n.Provider, n.Name), "a note names this address, which is not code")
		}
	}
}

// lowestCode returns the lowest address of code in an image, 0 in an object.
func (c *fileChecker) lowestCode() uint64 {
	lowest := uint64(0)
	for i := range c.Sections {
		s := &c.Sections[i]
		if !c.relocatable() && s.Flags&elf.SHF_EXECINSTR != 0 && (lowest == 0 || s.Addr < lowest) {
			lowest = s.Addr
		}
	}
	return lowest
}

// hasCode reports whether code is at an address, and in the file: a separate debug file has
// the notes without it.
func (c *fileChecker) hasCode(at image.Addr) bool {
	if !c.code.Image.Executable(at) {
		return false
	}
	_, ok := c.code.Image.FileOffset(at)
	return ok
}

// noteSites applies the rules for sites to those with a note and without a record: headers of
// provider files make them, and SystemTap's.
func (c *fileChecker) noteSites() {
	last := (*sites.Site)(nil)
	for s := range c.sitesFrom(sites.FromNote) {
		if !c.hasCode(s.Address) {
			continue
		}
		if c.noteSite(s, last); c.err != nil {
			return
		}
		if last == nil || last.Address != s.Address { // the first of an address
			last = s
		}
	}
}

// noteSite checks a site with a note alone. first is the last one with an address of its own, or nil: linkers fold functions
// of several probes together.
func (c *fileChecker) noteSite(s, first *sites.Site) {
	place, n := c.function(s.Address), s.Note
	if c.err != nil {
		return
	}
	c.scope.noteProviders[n.Provider] = true
	c.site(c.probe(s), s.Address, place.Function)
	probe := shownID(n.Provider, n.Name)
	if first != nil && first.Address == s.Address {
		c.add(DuplicateRecord, s.Address, probe, "this site has a note already, of %s", shownID(first.Note.Provider, first.Note.Name))
		return
	}
	if !place.Known() && c.hasSymbols() { // a stripped program shows no functions
		c.add(UnanchoredSite, s.Address, probe, "no function holds this site")
	}
	found, err := c.space.Code(s)
	c.fail(err)
	switch {
	case found.State == sites.Disabled:
	case found.State == sites.Armed:
		c.add(UnknownSite, s.Address, probe, "a breakpoint is at this site, in the file")
	case found.To != "":
		c.unclear = append(c.unclear, unclearSite{s.Address, probe, found})
	default:
		c.add(UnknownSite, s.Address, probe, "a note names this site, which holds % x and no nop", sites.CodeAt(c.code.Image, s.Address))
	}
}
