package check

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/internal/stapnotes"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// probeNotes is what the notes of a probe say of its semaphore, in an image or in all
// objects of a link.
type probeNotes struct {
	semaphores []semaphore // that the notes name, each once
}

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
func (c *fileChecker) notes() error {
	notes, faults, err := stapnotes.Read(c.Object.Object, c.code.Image)
	if err != nil {
		return err
	}
	for _, fault := range faults {
		c.addWhole(BrokenNote, "", "%s", withoutFile(fault))
		c.link.brokenNotes[c.scope()] = true
	}
	c.noteSections(notes, len(faults) > 0)
	c.noteAt = notesBySite(notes)
	c.noteTraits(notes)
	if err := c.findNoteSites(notes); err != nil {
		return err
	}
	if err := c.checkNoteSites(); err != nil {
		return err
	}
	if err := c.unreadArguments(notes); err != nil {
		return err
	}
	found := map[image.Addr]bool{}
	for i := range notes {
		n := &notes[i]
		key := scopedID{c.scope(), idOf(n.Provider, n.Name)}
		probe := c.link.notes[key]
		if probe == nil {
			probe = &probeNotes{}
			c.link.notes[key] = probe
		}
		if n.Semaphore.Null() {
			continue
		}
		if err := c.addSemaphore(probe, n); err != nil {
			return err
		}
		if !c.relocatable() && !found[n.Semaphore.Addr] {
			found[n.Semaphore.Addr] = true
			if err := c.checkSemaphorePlace(n.Semaphore.Addr, shownID(n.Provider, n.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteSections finds an image that has lost one of the two sections that notes make. The base
// is loaded, and the notes are not: tools that strip files tell them apart.
func (c *fileChecker) noteSections(notes []stapnotes.Note, broken bool) {
	if c.relocatable() {
		return
	}
	lacksBase := func(n stapnotes.Note) bool { return n.Base != 0 && c.hasCode(n.Site.Addr) }
	switch hasBase := c.sectionNamed(stapsdt.BaseSection) != nil; {
	case hasBase && len(notes) == 0 && !broken:
		c.addWhole(MissingNote, "", "has %s and no note, so tracers find no site; link again, and keep %s (--keep-section of strip)", stapsdt.BaseSection, stapsdt.Section)
	case !hasBase && slices.ContainsFunc(notes, lacksBase):
		c.addWhole(BrokenNote, "", "has notes and no section %s, without which gdb finds no probe; keep that section", stapsdt.BaseSection)
	case hasBase:
		otherBase := func(n stapnotes.Note) bool { return n.Base != notes[0].Base }
		if i := slices.IndexFunc(notes, otherBase); i > 0 {
			c.addWhole(BrokenNote, "", "has notes that put %s at %#x and at %#x, so tracers look for some probes at wrong addresses; link again", stapsdt.BaseSection, notes[0].Base, notes[i].Base)
		}
	}
}

// noteTraits notes whether an image has notes for its records, and finds objects for a Linux kernel
// with notes.
func (c *fileChecker) noteTraits(notes []stapnotes.Note) {
	if c.relocatable() && len(notes) > 0 && patch.HasKernelSections(c.Object.Object) {
		c.addWhole(KernelNotes, "", "has notes for tracers of user space, and is for a Linux kernel; convert it with --layout pairs")
	}
	if c.relocatable() || !slices.ContainsFunc(c.entries, isCall) {
		return
	}
	value := "records without notes"
	if slices.ContainsFunc(c.entries, func(e linkerset.Entry) bool { return c.noteAt[e.Site] != nil }) {
		value = "records with notes"
	}
	c.link.trait(trait{MixedNotes, "", value}, c.index)
}

// unreadArguments finds the operands of notes that some tracer does not read, the first of each
// probe.
func (c *fileChecker) unreadArguments(notes []stapnotes.Note) error {
	if c.Machine == nil || c.Machine.Traits().Arguments.Unread == nil {
		return nil
	}
	reported := map[string]bool{}
	for i := range notes {
		n := &notes[i]
		if n.Site.Undefined || reported[n.ID()] {
			continue
		}
		for _, operand := range usdt.Split(n.Args) {
			_, place, _ := strings.Cut(operand, "@")
			tracer := c.Machine.Traits().Arguments.Unread(place)
			if tracer == "" {
				continue
			}
			reported[n.ID()] = true
			if err := c.add(UnreadArgument, n.Site.Addr, shownID(n.Provider, n.Name), "%s does not read the argument %s of the note", tracer, operand); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// withoutFile returns the text of a fault without its file, which a finding has anyhow.
func withoutFile(fault error) string {
	if e, ok := errors.AsType[*elfreloc.Error](fault); ok {
		return strings.TrimPrefix(e.Error(), e.File+": ")
	}
	return fault.Error()
}

// addSemaphore adds the semaphore that a note of a probe names.
func (c *fileChecker) addSemaphore(probe *probeNotes, n *stapnotes.Note) error {
	s := semaphore{id: c.semaphoreID(n.Semaphore)}
	if slices.ContainsFunc(probe.semaphores, func(have semaphore) bool { return have.id == s.id }) {
		return nil
	}
	f, err := c.finding(SemaphoreMismatch, n.Site.Addr, shownID(n.Provider, n.Name), "")
	if err != nil {
		return err
	}
	s.finding = *f
	if s.name, err = c.semaphoreName(n.Semaphore); err != nil {
		return err
	}
	probe.semaphores = append(probe.semaphores, s)
	return nil
}

func (c *fileChecker) semaphoreID(s image.Ref) semaphoreID {
	if c.relocatable() && s.Symbol != "" {
		return semaphoreID{symbol: s.Symbol}
	}
	return semaphoreID{location: location{c.index, s.Addr}}
}

// semaphoreName returns how messages call a semaphore.
func (c *fileChecker) semaphoreName(s image.Ref) (string, error) {
	name, err := stapnotes.SemaphoreName(c.code.Image, s)
	return cmp.Or(name, c.code.Image.Place(s.Addr)), err
}

// shownID returns what findings call the probe of a note.
func shownID(provider, name string) string {
	p := linkerset.ProbeFromID(idOf(provider, name))
	p.ID = ""
	return nameOf(p)
}

// disagreements finds the probes whose notes name several semaphores.
func (l *link) disagreements() {
	for _, probe := range l.notes {
		for i := 1; i < len(probe.semaphores); i++ {
			first, other := &probe.semaphores[0], &probe.semaphores[i]
			l.add(other.finding, SemaphoreMismatch, "its note names the semaphore %s, and that of %s at %s names %s",
				other.name, cmp.Or(first.finding.Function, "no function"), first.finding.Place, first.name)
		}
	}
}

func compareScoped(a, b scopedID) int {
	return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.id, b.id))
}

// notesBySite finds notes by what they name, of several the first.
func notesBySite(notes []stapnotes.Note) map[image.Addr]*stapnotes.Note {
	at := make(map[image.Addr]*stapnotes.Note, len(notes))
	for i := range notes {
		if n := &notes[i]; !n.Site.Undefined && at[n.Site.Addr] == nil {
			at[n.Site.Addr] = n
		}
	}
	return at
}

// linkAgain is what to do about an image whose records have no notes.
const linkAgain = "link again with notes (--stapsdt beside a --layout), or, if objects are converted, compile again"

// missingNotes finds the recorded probe calls without a note, in a file where each is to
// have one: because the user says so, or as others of its records have one.
func (c *fileChecker) missingNotes() error {
	if c.link.brokenNotes[c.scope()] {
		return nil
	}
	c.wantsNotes = c.set.opts.RequireNotes
	if c.wantsNotes && !c.relocatable() && !c.link.unconverted[c.index] && len(c.noteSites) == 0 && !slices.ContainsFunc(c.entries, isCall) {
		c.addWhole(MissingNote, "", "has neither notes nor records, and notes are required; %s, or check it without --require-notes", linkAgain)
	}
	for i := range c.entries {
		c.wantsNotes = c.wantsNotes || c.entries[i].Kind == arch.Probe && c.noteAt[c.entries[i].Site] != nil
	}
	if !c.wantsNotes {
		return nil
	}
	advice := linkAgain
	if c.relocatable() {
		advice = "compile it again, and convert it with notes (--stapsdt)"
	}
	if patch.HasKernelSections(c.Object.Object) {
		advice = "leave out --require-notes: kernels read no notes"
	}
	for i := range c.entries {
		e := &c.entries[i]
		if e.Kind != arch.Probe || c.noteAt[e.Site] != nil || i > 0 && c.entries[i-1].Site == e.Site {
			continue
		}
		probe, err := c.probes.Lookup(e.Probe)
		if err != nil {
			return err
		}
		if err := c.add(MissingNote, e.Site, nameOf(probe), "this site has a record and no note, so tracers do not find it; %s", advice); err != nil {
			return err
		}
	}
	return nil
}
