package check

import (
	"cmp"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// foundSite is a site, with what its source says of it.
type foundSite struct {
	*sites.Site
	probe linkerset.Probe
	id    string // what findings call the probe
	place locate.Place
	first *foundSite // of the same address and source; nil if that is this one
}

// comparisons are how the exports of a site, and what linkers have made of it, may disagree with its source. A
// function returns what is said of a difference, "" for none.
var comparisons = []struct {
	rule       *Rule
	difference func(*fileChecker, *foundSite) string
}{
	{UnanchoredSite, (*fileChecker).unanchored},
	{WrongFunction, (*fileChecker).otherFunction},
	{DuplicateRecord, (*fileChecker).duplicate},
	{MissingNote, (*fileChecker).missingNote},
	{NoteName, (*fileChecker).otherName},
}

// sites checks the sites of records, and then those that have a note alone: headers of provider files make them, and
// SystemTap's.
func (c *fileChecker) sites() {
	faults := &c.space.Faults
	for _, fault := range faults.Records {
		c.add(DanglingRecord, fault.Record, "", "%v", withoutPlace(fault))
	}
	// If noteSections reports that an image has lost its notes, it is no finding of its own that sites and guards have none.
	areLost := len(c.space.Notes)+len(faults.Notes) == 0 && !c.relocatable() && c.sectionNamed(notes.BaseSection) != nil && c.set.applies(MissingNote)
	c.set.lostNotes = c.set.lostNotes || areLost
	if areLost || faults.NotesUnread != nil || len(faults.Notes) > 0 && c.set.applies(BrokenNote) {
		c.scope.brokenNotes = true
	}
	c.wantsNotes = !c.scope.brokenNotes && (c.set.opts.RequireNotes || has(c.notedCalls()))
	for _, source := range []sites.Source{sites.FromRecord, sites.FromNote} {
		var first *foundSite
		for s := range c.sitesFrom(source) {
			if source == sites.FromNote && !c.hasCode(s.Address) {
				continue
			}
			found := &foundSite{Site: s, probe: c.probe(s), place: c.function(s.Address)}
			if found.id = nameOf(found.probe); first == nil || first.Address != s.Address {
				first = found
			} else {
				found.first = first
			}
			if c.site(found); c.err != nil {
				return
			}
		}
	}
	if len(c.space.RecordLayouts) > 0 {
		c.hasCalls = true
		c.recordSections()
	}
}

// site checks a site.
func (c *fileChecker) site(s *foundSite) {
	if c.err != nil {
		return
	}
	c.addSite(s.probe, s.Address, s.place.Function)
	switch {
	case s.Source == sites.FromNote:
		c.scope.noteProviders[s.Note.Provider] = true
	case s.Kind == arch.Probe:
		c.scope.recordedCalls[noteID(s.probe)] = true
		c.calls = append(c.calls, probeCall{s.probe.ID, s.Address})
		fallthrough
	default:
		c.scope.recordProviders[linkerset.EncodeName(s.probe.Provider)] = true
	}
	for _, comparison := range comparisons {
		if difference := comparison.difference(c, s); difference != "" {
			c.add(comparison.rule, s.Address, s.id, "%s", difference)
		}
	}
	if s.first == nil {
		c.state(s)
	}
	if s.Source == sites.FromRecord && c.err == nil {
		c.recorded(&s.Entry, s.id)
	}
}

// unanchored finds a site in no function. A stripped program shows no functions, and its notes do not name them.
func (c *fileChecker) unanchored(s *foundSite) string {
	if s.place.Known() || s.Source == sites.FromNote && (s.first != nil || !c.hasSymbols()) {
		return ""
	}
	return "no function holds this site"
}

// otherFunction compares the function that symbols name for a site with the one that is recorded. If both begin at one
// place, other names are those of aliases, or of functions that are folded together.
func (c *fileChecker) otherFunction(s *foundSite) string {
	place := &s.place
	if s.Source != sites.FromRecord || !place.Known() || place.NoSymbol || place.Recorded || place.Unsized {
		return ""
	}
	recorded, ok := c.code.Recorded(s.Address, 0)
	if !ok || recorded.Start == s.Address.Offset-place.FunctionOffset {
		return ""
	}
	start := image.Addr{Section: s.Address.Section, Offset: recorded.Start}
	return fmt.Sprintf("this site is in %s by its symbol, and in %s, at %s, by the record", cmp.Or(place.Symbol, place.Function), recorded.Raw, c.code.Image.Place(start))
}

// duplicate finds the second record of a site, or its second note: linkers fold functions of several probes together.
func (c *fileChecker) duplicate(s *foundSite) string {
	switch {
	case s.first == nil:
		return ""
	case s.Source == sites.FromNote:
		return "this site has a note already, of " + s.first.id
	}
	return "this site has a record already, of " + fullName(s.first.probe).String()
}

// missingNote finds a recorded call without a note, in a file where each is to have one: because the user says so, or
// as others of its records have one.
func (c *fileChecker) missingNote(s *foundSite) string {
	if !c.wantsNotes || s.Kind != arch.Probe || s.Note != nil || s.first != nil {
		return ""
	}
	advice := linkAgain
	if c.relocatable() {
		advice = "compile it again, and convert it with notes (--stapsdt)"
	}
	if patch.HasKernelSections(c.Object.Object) {
		advice = "leave out --require-notes: kernels read no notes"
	}
	return "this site has a record and no note, so tracers do not find it; " + advice
}

// otherName finds a record whose note has another name than the probe's own structure, once for each name of a note:
// tracers do not find the probe by that.
func (c *fileChecker) otherName(s *foundSite) string {
	n := s.Note
	if s.Source != sites.FromRecord || n == nil || !s.probe.FromStruct || n.Names(&s.probe) || !c.isNew(NoteName, image.Addr{}, n.ID()) {
		return ""
	}
	return fmt.Sprintf("its note names it %s:%s, so tracers do not find it as %s:%s; link with -B, or convert the object together with the one that defines the probe",
		n.Provider, n.Name, linkerset.EncodeName(s.probe.Provider), linkerset.EncodeName(s.probe.Name))
}

// state checks the code at a site.
func (c *fileChecker) state(s *foundSite) {
	found, err := c.space.Code(s.Site)
	c.fail(err)
	switch {
	case found.State == sites.Disabled:
		if s.Kind == arch.Enabled {
			c.noteTest(s.Site, s.probe)
		}
	case found.State == sites.Armed:
		c.add(UnknownSite, s.Address, s.id, "a breakpoint is at this site, in the file")
	case found.To != "":
		c.unclear = append(c.unclear, unclearSite{s.Address, s.id, found})
	case s.Source == sites.FromNote:
		c.add(UnknownSite, s.Address, s.id, "a note names this site, which holds % x and no nop", sites.CodeAt(c.code.Image, s.Address))
	case found.State == sites.Unknown:
		c.unknown(s.Address, s.id, &found)
	case !c.liveSites[s.Address]:
		c.liveSites[s.Address] = true
		c.add(LiveCall, s.Address, s.id, "a call or jump is at this site, and no disabled form")
	}
}

// unclearSite is a site with a branch whose target may be a stub or other code.
type unclearSite struct {
	at    image.Addr
	probe string
	found sites.Code
}

// unknown reports a site whose state is unknown.
func (c *fileChecker) unknown(at image.Addr, probe string, found *sites.Code) {
	c.add(UnknownSite, at, probe, "this site %s", found.Unexplained(sites.CodeAt(c.code.Image, at)))
}

// reportUnclear reports the unclear sites that were not found to be calls of stubs.
func (c *fileChecker) reportUnclear() {
	for i := range c.unclear {
		if s := &c.unclear[i]; !c.liveSites[s.at] {
			c.unknown(s.at, s.probe, &s.found)
		}
	}
}
