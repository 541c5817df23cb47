package check

import (
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/internal/sitestate"
	"sdtconvert/linkerset"
)

// records checks the records of a file, and reports whether there are any.
func (c *fileChecker) records() (found bool, err error) {
	if err := linkerset.CheckVersion(c.Object.Object); err != nil {
		c.link.unconverted[c.index] = true // as far as this program can tell
		return false, err
	}
	var entries []linkerset.Entry
	var layouts []linkerset.Layout
	foreign, err := linkerset.ForeignLayouts(c.Object.Object, c.Machine, c.set.opts.Layouts, []string{c.set.opts.ProbePrefix})
	if err != nil {
		return false, err
	}
	for _, layout := range slices.Concat(c.set.opts.Layouts, foreign) {
		records, faults, err := layout.Read(c.code.Image)
		if err != nil {
			return false, err
		}
		for _, fault := range faults {
			if err := c.add(DanglingRecord, fault.Record, "", "%v", withoutPlace(fault)); err != nil {
				return false, err
			}
		}
		if len(records)+len(faults) > 0 && layout.Format != linkerset.Tracepoints {
			layouts = append(layouts, layout)
		}
		entries = append(entries, records...)
	}
	if len(layouts)+len(entries) == 0 {
		return false, nil
	}
	if err := c.code.Read(); err != nil {
		return false, err
	}
	linkerset.Sort(entries)
	c.entries = entries
	for i := range entries {
		if err := c.record(entries, i); err != nil {
			return false, err
		}
	}
	if err := c.bounds(layouts); err != nil {
		return false, err
	}
	return true, c.traits(layouts)
}

// recordedSites returns the sites that have a record.
func (c *fileChecker) recordedSites() map[image.Addr]bool {
	sites := make(map[image.Addr]bool, len(c.entries))
	for i := range c.entries {
		sites[c.entries[i].Site] = true
	}
	return sites
}

// isCall reports whether a record is of a probe call.
func isCall(e linkerset.Entry) bool { return e.Kind == arch.Probe }

// record checks the i-th record. The records are sorted by their sites.
func (c *fileChecker) record(entries []linkerset.Entry, i int) error {
	e := &entries[i]
	probe, err := c.probes.Lookup(e.Probe)
	if err != nil {
		return err
	}
	id, place := nameOf(probe), c.code.Function(e.Site)
	c.site(probe, e.Site, place.Function)
	c.link.recordProviders[scopedID{c.scope(), linkerset.EncodeName(probe.Provider)}] = true
	if e.Kind == arch.Probe {
		c.link.recordedCalls[c.noteID(probe)] = true
	}
	if !place.Known() {
		if err := c.add(UnanchoredSite, e.Site, id, "no function holds this site"); err != nil {
			return err
		}
	}
	if i > 0 && entries[i-1].Site == e.Site {
		if err := c.add(DuplicateRecord, e.Site, id, "this site has a record already, of %s", c.describe(&entries[i-1])); err != nil {
			return err
		}
	} else if err := c.state(e, probe); err != nil {
		return err
	}
	return c.recorded(e, id)
}

// state checks the code at a site.
func (c *fileChecker) state(e *linkerset.Entry, probe linkerset.Probe) error {
	id := nameOf(probe)
	found, err := c.states.StateOf(e)
	if err != nil {
		return err
	}
	switch found.State {
	case sitestate.Disabled:
		if e.Kind == arch.Enabled {
			return c.noteTest(e, probe)
		}
	case sitestate.Live:
		if c.liveSites[e.Site] {
			return nil
		}
		c.liveSites[e.Site] = true
		return c.add(LiveCall, e.Site, id, "a call or jump is at this site, and no disabled form")
	case sitestate.Armed:
		return c.add(UnknownSite, e.Site, id, "a breakpoint is at this site, in the file")
	case sitestate.Unknown:
		if found.To != "" {
			c.unclear = append(c.unclear, unclearSite{e.Site, id, found})
			return nil
		}
		return c.unknown(e.Site, id, &found)
	}
	return nil
}

// unclearSite is a site with a branch whose target may be a stub or other code.
type unclearSite struct {
	at    image.Addr
	probe string
	found sitestate.Site
}

// unknown reports a site whose state is unknown.
func (c *fileChecker) unknown(at image.Addr, probe string, found *sitestate.Site) error {
	return c.add(UnknownSite, at, probe, "this site %s", found.Unexplained(sitestate.CodeAt(c.code.Image, at)))
}

// reportUnclear reports the unclear sites that were not found to be calls of stubs.
func (c *fileChecker) reportUnclear() error {
	for i := range c.unclear {
		s := &c.unclear[i]
		if c.liveSites[s.at] {
			continue
		}
		if err := c.unknown(s.at, s.probe, &s.found); err != nil {
			return err
		}
	}
	return nil
}

// recorded checks the probe object of a record.
func (c *fileChecker) recorded(e *linkerset.Entry, id string) error {
	switch {
	case e.Probe.Null():
		return c.add(UndefinedProbe, e.Site, id, "the record of this site has a null pointer for its probe object")
	case e.Probe.Undefined && c.link.knowsUse(e.Probe.Symbol, c.index):
		return nil
	case e.Probe.Undefined:
		rule := UndefinedProbe
		if !c.relocatable() {
			rule = UnresolvedProbe
		}
		f, err := c.finding(rule, e.Site, id, "")
		if err != nil {
			return err
		}
		hidden, err := c.hidden(e.Probe.Symbol)
		c.link.use(e.Probe.Symbol, use{*f, hidden})
		return err
	}
	if _, err := c.code.Image.Bytes(e.Probe.Addr, 1); err != nil && e.Probe.Symbol == "" {
		return c.add(DanglingRecord, e.Record, id, "a record of a probe object at %s, which is nowhere in the file", c.code.Image.Place(e.Probe.Addr))
	}
	c.link.usedAt(c.index, e.Probe)
	c.link.recorded[scopedID{c.scope(), id}] = true
	return nil
}

// hidden reports whether an object's reference to a symbol reaches into no other
// module.
func (c *fileChecker) hidden(name string) (bool, error) {
	if !c.relocatable() {
		return false, nil
	}
	if c.link.hiddenFile != c.index {
		c.link.hiddenFile, c.link.hiddenNames = c.index, map[string]bool{}
		syms, err := c.Symbols()
		if err != nil {
			return false, err
		}
		for i := syms.FirstGlobal(); i < syms.Len(); i++ {
			if s := syms.At(i); s.Section == 0 && s.Visibility() != 0 {
				c.link.hiddenNames[s.Name] = true
			}
		}
	}
	return c.link.hiddenNames[name], nil
}

// noteID returns the key of a probe by the names that its notes have.
func (c *fileChecker) noteID(p linkerset.Probe) scopedID {
	return scopedID{c.scope(), idOf(linkerset.EncodeName(p.Provider), linkerset.EncodeName(p.Name))}
}

// describe names the probe of a record in a message.
func (c *fileChecker) describe(e *linkerset.Entry) string {
	p, err := c.probes.Lookup(e.Probe)
	if err != nil {
		return "another"
	}
	return Probe{p.Provider, p.Module, p.Function, p.Name}.String()
}

// nameOf returns what findings call a probe.
func nameOf(p linkerset.Probe) string {
	if p.ID != "" || p.Provider == "" && p.Name == "" {
		return p.ID
	}
	return p.Provider + ":::" + p.Name
}

func (p Probe) String() string {
	return p.Provider + ":" + p.Module + ":" + p.Function + ":" + p.Name
}

// traits notes how an object was converted, or finds an image that holds records
// of several conversions.
func (c *fileChecker) traits(layouts []linkerset.Layout) error {
	if !c.relocatable() {
		return c.imageTraits(layouts)
	}
	for _, layout := range layouts {
		c.link.trait(trait{MixedLayout, "", describeLayout(layout)}, c.index)
	}
	anchored, err := linkerset.AnchoredSections(c.Object.Object, c.Machine)
	if err != nil {
		return err
	}
	o := c.Object.Object
	hasStapsdtNotes, hasDTraceNotes := hasAny(o, stapsdt.IsNoteSection), hasAny(o, usdt.IsNoteSection)
	for i := range o.Sections {
		sec := &o.Sections[i]
		kind, ok := recordKind(layouts, sec.Name)
		if !ok || sec.Size == 0 {
			continue
		}
		c.link.trait(trait{MixedFlags, "the flags of " + sec.Name, flagsOf(sec)}, c.index)
		c.link.trait(trait{MixedFlags, "--drop-relocations", describeFlag(!anchored[i])}, c.index)
		if kind == arch.Probe {
			c.link.trait(trait{MixedFlags, "", describeNotes(hasStapsdtNotes)}, c.index)
			c.link.trait(trait{MixedFlags, "--dtrace", describeFlag(hasDTraceNotes)}, c.index)
		}
	}
	return nil
}

func recordKind(layouts []linkerset.Layout, section string) (arch.Kind, bool) {
	for _, l := range layouts {
		for k := range arch.Kinds {
			if l.Section(k) == section {
				return k, true
			}
		}
	}
	return 0, false
}

// imageTraits looks for what mixed conversions leave in an image: records of
// several layouts, and several output sections of one name.
func (c *fileChecker) imageTraits(layouts []linkerset.Layout) error {
	for _, other := range layouts[1:] {
		c.addWhole(MixedLayout, "", "holds records of %s, and of %s too", describeLayout(layouts[0]), describeLayout(other))
	}
	seen := map[string]*elfreloc.Section{}
	for i := range c.Sections {
		sec := &c.Sections[i]
		if _, ok := recordKind(layouts, sec.Name); !ok || sec.Size == 0 {
			continue
		}
		if first := seen[sec.Name]; first != nil {
			c.addWhole(MixedFlags, "", "holds two sections %s, at %#x with %s and at %#x with %s; __start_%s leads to one of them",
				sec.Name, first.Addr, flagsOf(first), sec.Addr, flagsOf(sec), sec.Name)
			continue
		}
		seen[sec.Name] = sec
	}
	return nil
}
