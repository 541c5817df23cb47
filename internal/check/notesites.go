package check

import (
	"debug/elf"
	"maps"
	"slices"

	"sdtconvert/image"
	"sdtconvert/internal/sitestate"
	"sdtconvert/internal/stapnotes"
	"sdtconvert/linkerset"
)

// noteSite is a site of a probe call with a note and without a record: headers of provider
// files make them, and SystemTap's.
type noteSite struct {
	at    image.Addr
	notes []*stapnotes.Note // of different probes; one, unless functions were folded together
}

// ids returns the ids of the probes.
func (s *noteSite) ids() []string {
	ids := make([]string, len(s.notes))
	for i, n := range s.notes {
		ids[i] = n.ID()
	}
	return ids
}

// findNoteSites collects them, sorted, and finds notes whose addresses are not those of code. Some
// images keep notes of functions that the linker has dropped: what it has left of an address is
// below all code, and no site; or if it leads into code, it is taken for one, whose state is unknown.
func (c *fileChecker) findNoteSites(notes []stapnotes.Note) error {
	recorded, lowest := c.recordedSites(), c.lowestCode()
	type probeAt struct {
		at image.Addr
		id string
	}
	found, seen := map[image.Addr]*noteSite{}, map[probeAt]bool{}
	for i := range notes {
		n := &notes[i]
		at := n.Site.Addr
		key := probeAt{at, n.ID()}
		if !n.Site.Undefined && at.Offset >= lowest && !c.code.Image.Executable(at) && !seen[key] {
			seen[key] = true
			if err := c.add(StrayNote, at, shownID(n.Provider, n.Name), "a note names this address, which is not code"); err != nil {
				return err
			}
		}
		if n.Site.Undefined || recorded[at] || seen[key] || !c.hasCode(at) {
			continue
		}
		seen[key] = true
		if found[at] == nil {
			found[at] = &noteSite{at: at}
		}
		found[at].notes = append(found[at].notes, n)
	}
	c.noteSites = slices.SortedFunc(maps.Values(found), func(a, b *noteSite) int { return a.at.Compare(b.at) })
	return nil
}

// lowestCode returns the lowest address of code in an image, 0 in an object.
func (c *fileChecker) lowestCode() uint64 {
	lowest := uint64(0)
	for i := range c.Object.Sections {
		s := &c.Object.Sections[i]
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

// checkNoteSites applies the rules for sites to those without records.
func (c *fileChecker) checkNoteSites() error {
	if len(c.noteSites) == 0 {
		return nil
	}
	if err := c.code.Read(); err != nil {
		return err
	}
	for _, s := range c.noteSites {
		if err := c.noteSite(s); err != nil {
			return err
		}
	}
	return nil
}

func (c *fileChecker) noteSite(s *noteSite) error {
	place := c.code.Function(s.at)
	for _, n := range s.notes {
		c.link.noteProviders[scopedID{c.scope(), n.Provider}] = true
		c.site(linkerset.Probe{Provider: linkerset.DisplayName(n.Provider), Name: linkerset.DisplayName(n.Name)}, s.at, place.Function)
	}
	first := s.notes[0]
	probe := shownID(first.Provider, first.Name)
	if !place.Known() && c.hasSymbols() { // a stripped program shows no functions
		if err := c.add(UnanchoredSite, s.at, probe, "no function holds this site"); err != nil {
			return err
		}
	}
	for _, other := range s.notes[1:] {
		if err := c.add(DuplicateRecord, s.at, shownID(other.Provider, other.Name), "this site has a note already, of %s", probe); err != nil {
			return err
		}
	}
	found, err := c.states.StateOfNote(s.at)
	if err != nil {
		return err
	}
	switch found.State {
	case sitestate.Disabled:
	case sitestate.Armed:
		return c.add(UnknownSite, s.at, probe, "a breakpoint is at this site, in the file")
	default:
		if found.To != "" {
			c.unclear = append(c.unclear, unclearSite{s.at, probe, found})
			return nil
		}
		return c.add(UnknownSite, s.at, probe, "a note names this site, which holds % x and no nop", sitestate.CodeAt(c.code.Image, s.at))
	}
	return nil
}
