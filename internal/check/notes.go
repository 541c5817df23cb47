package check

import (
	"cmp"
	"debug/elf"
	"errors"
	"iter"
	"slices"
	"strings"

	"sdtconvert/arch"
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
	}
	c.noteSections(notes, len(faults) > 0)
	c.noteTraits(notes)
	placed, lowest := map[image.Addr]bool{}, c.lowestCode()
	for i := range notes {
		n := &notes[i]
		id := n.ID()
		if _, ok := c.scope.notes[id]; !ok {
			c.scope.notes[id] = nil // until a note names one
		}
		if !n.Site.Undefined {
			c.noteSite(n, lowest)
		}
		if !n.Semaphore.Null() {
			c.addSemaphore(id, n)
			if !c.relocatable() && !placed[n.Semaphore.Addr] {
				placed[n.Semaphore.Addr] = true
				c.checkSemaphorePlace(n.Semaphore.Addr, shownName(n))
			}
		}
		if c.err != nil {
			return
		}
	}
}

// noteSite finds a note whose address is not that of code, and the operands that some tracer does not read. Some
// images keep notes of functions that the linker has dropped: what it has left of an address is
// below all code, and no site; or if it leads into code, it is taken for one, whose state is unknown.
func (c *fileChecker) noteSite(n *notes.Note, lowestCode uint64) {
	at := n.Site.Addr
	if at.Offset >= lowestCode && !c.code.Image.Executable(at) {
		c.add(StrayNote, at, shownName(n), "a note names this address, which is not code")
	}
	for _, operand := range arch.SplitOperands(n.Args) {
		if tracer := c.unreadBy(operand); tracer != "" {
			c.add(UnreadArgument, at, shownName(n), "%s does not read the argument %s of the note", tracer, operand)
		}
	}
}

// unreadBy returns a tracer that does not read an operand with its size, "" if all do.
func (c *fileChecker) unreadBy(operand string) (tracer string) {
	size, place, hasSize := strings.Cut(operand, "@")
	if !hasSize { // a word
		size, place = "8", operand
	}
	switch strings.TrimPrefix(size, "-") {
	case "1", "2", "4", "8":
	default: // of a structure, a number of 16 bytes or, with an f, a floating-point number
		return "gdb"
	}
	if unread := c.Machine.Traits().Arguments.Unread; unread != nil {
		return unread(place)
	}
	return ""
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
	s := semaphore{id: id, finding: c.finding(SemaphoreMismatch, n.Site.Addr, shownName(n), "")}
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

// shownName returns what findings call the probe of a note.
func shownName(n *notes.Note) string { return linkerset.DisplayName(n.Provider + ":::" + n.Name) }

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

// requiredNotes finds an image that has neither records nor notes, if notes are required.
func (c *fileChecker) requiredNotes() {
	if c.set.opts.RequireNotes && !c.scope.brokenNotes && !c.relocatable() && !c.link.unconverted[c.index] && !has(c.sitesFrom(sites.FromNote)) && !has(c.recordedCalls()) {
		c.addWhole(MissingNote, "", "has neither notes nor records, and notes are required; %s, or check it without --require-notes", linkAgain)
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
