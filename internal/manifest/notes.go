package manifest

import (
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/sitestate"
	"sdtconvert/internal/stapnotes"
	"sdtconvert/patch"
)

// noted describes the sites that have notes alone, as the headers of provider files make
// them: those that are not among others. Those of the others that have a note are marked.
// Notes that cannot be read name none; check finds them.
func noted(scan *patch.Scan, others []Site) ([]Site, error) {
	if scan.Machine == nil || !slices.ContainsFunc(scan.Object.Sections, isNotes) {
		return nil, nil
	}
	im, err := scan.Image()
	if err != nil {
		return nil, err
	}
	notes, _, err := stapnotes.Read(scan.Object, im)
	if err != nil {
		return nil, nil
	}
	known := make(map[image.Addr]*Site, len(others))
	for i := range others {
		known[others[i].recorded()] = &others[i]
	}
	var sites []Site
	states := sitestate.New(im, im, 0, scan.Names)
	for i := range notes {
		n := &notes[i]
		if n.Site.Undefined || !im.Executable(n.Site.Addr) {
			continue
		}
		if site := known[n.Site.Addr]; site != nil {
			site.HasNote = site.HasNote || site.Record != nil
			continue
		}
		known[n.Site.Addr] = &Site{} // for other notes of it
		site, err := ofNote(im, states, n)
		if err != nil {
			return nil, err
		}
		known[n.Site.Addr] = &site
		sites = append(sites, site)
	}
	return sites, nil
}

func isNotes(s elfreloc.Section) bool { return s.Name == stapsdt.Section }

// recorded returns the place of the instruction that the record of a site names, or will
// name.
func (m *Site) recorded() image.Addr {
	if m.Record == nil {
		return image.Addr{Section: m.text, Offset: m.Offset}
	}
	return image.Addr{Section: m.text, Offset: m.Record.Offset}
}

// ofNote describes the site of a note.
func ofNote(im image.Image, states *sitestate.Reader, n *stapnotes.Note) (Site, error) {
	note := &Note{Provider: n.Provider, Name: n.Name}
	if !n.Semaphore.Null() {
		var err error
		if note.Semaphore, err = stapnotes.SemaphoreName(im, n.Semaphore); err != nil {
			return Site{}, err
		}
	}
	m := Site{
		text: n.Site.Section, Offset: n.Site.Offset, Kind: arch.Describe(arch.Probe, arch.Call), State: Unknown,
		Probe: n.ID(), Note: note,
	}
	found, err := states.StateOfNote(n.Site.Addr)
	if err != nil {
		return Site{}, err
	}
	if found.State == sitestate.Disabled {
		m.State = Disabled
	}
	return m, nil
}
