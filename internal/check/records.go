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

// records looks at the records of a file, and reports whether there are any.
func (l *fileChecker) records() (found bool, err error) {
	var entries []linkerset.Entry
	var layouts []linkerset.Layout
	foreign, err := linkerset.ForeignLayouts(l.Object.Object, l.Machine, l.set.opts.Layouts, []string{l.set.opts.ProbePrefix})
	if err != nil {
		return false, err
	}
	for _, layout := range slices.Concat(l.set.opts.Layouts, foreign) {
		some, faults, err := layout.Read(l.code.Image)
		if err != nil {
			return false, err
		}
		for _, fault := range faults {
			if err := l.add(DanglingRecord, fault.Record, "", "%v", reason(fault)); err != nil {
				return false, err
			}
		}
		if len(some)+len(faults) > 0 && layout.Format != linkerset.Tracepoints {
			layouts = append(layouts, layout)
		}
		entries = append(entries, some...)
	}
	if len(layouts)+len(entries) == 0 {
		return false, nil
	}
	if err := l.code.Read(); err != nil {
		return false, err
	}
	linkerset.Sort(entries)
	l.entries = entries
	for i := range entries {
		if err := l.record(entries, i); err != nil {
			return false, err
		}
	}
	if err := l.bounds(layouts); err != nil {
		return false, err
	}
	return true, l.traits(layouts)
}

// record looks at one of the records, which are sorted by their sites.
func (l *fileChecker) record(entries []linkerset.Entry, i int) error {
	e := &entries[i]
	probe, err := l.probes.Lookup(e.Probe)
	if err != nil {
		return err
	}
	id, place := nameOf(probe), l.code.Function(e.Site)
	l.site(probe, e.Site, place.Function)
	l.link.ofRecords[scopedID{l.scope(), linkerset.EncodeName(probe.Provider)}] = true
	if e.Kind == arch.Probe {
		l.link.fired[l.notedID(probe)] = true
	}
	if !place.Known() {
		if err := l.add(UnanchoredSite, e.Site, id, "no function holds this site"); err != nil {
			return err
		}
	}
	if i > 0 && entries[i-1].Site == e.Site {
		if err := l.add(DuplicateRecord, e.Site, id, "this site has a record already, of %s", l.describe(&entries[i-1])); err != nil {
			return err
		}
	} else if err := l.state(e, probe); err != nil {
		return err
	}
	return l.recorded(e, id)
}

// state looks at what is at a site.
func (l *fileChecker) state(e *linkerset.Entry, probe linkerset.Probe) error {
	id := nameOf(probe)
	found, err := l.states.Of(e)
	if err != nil {
		return err
	}
	switch found.State {
	case sitestate.Disabled:
		if e.Kind == arch.Enabled {
			return l.test(e, probe)
		}
	case sitestate.Live:
		if l.live[e.Site] {
			return nil
		}
		l.live[e.Site] = true
		return l.add(LiveCall, e.Site, id, "a call or jump is at this site, and no disabled form")
	case sitestate.Armed:
		return l.add(UnknownSite, e.Site, id, "a breakpoint is at this site, in the file")
	case sitestate.Unknown:
		if found.To != "" {
			l.untold = append(l.untold, untoldSite{e.Site, id, found})
			return nil
		}
		return l.unknown(e.Site, id, &found)
	}
	return nil
}

// untoldSite is one that goes somewhere, and what is there does not tell whether that is a
// stub.
type untoldSite struct {
	at    image.Addr
	probe string
	found sitestate.Site
}

// unknown reports a site whose state is unknown.
func (l *fileChecker) unknown(at image.Addr, probe string, found *sitestate.Site) error {
	text := sitestate.CodeAround(l.code.Image, at)
	return l.add(UnknownSite, at, probe, "this site %s", found.Unexplained(text.At(at.Offset, 4)))
}

// untoldSites reports those that nothing else has told to be calls of stubs.
func (l *fileChecker) untoldSites() error {
	for i := range l.untold {
		s := &l.untold[i]
		if l.live[s.at] {
			continue
		}
		if err := l.unknown(s.at, s.probe, &s.found); err != nil {
			return err
		}
	}
	return nil
}

// recorded looks at the probe of a record.
func (l *fileChecker) recorded(e *linkerset.Entry, id string) error {
	switch {
	case e.Probe.Null():
		return l.add(UndefinedProbe, e.Site, id, "the record of this site has a null pointer for its probe object")
	case e.Probe.Undefined && l.link.knowsUse(e.Probe.Symbol, l.index):
		return nil
	case e.Probe.Undefined:
		rule := UndefinedProbe
		if !l.relocatable() {
			rule = UnresolvedProbe
		}
		f, err := l.finding(rule, e.Site, id, "")
		if err != nil {
			return err
		}
		hidden, err := l.hidden(e.Probe.Symbol)
		l.link.use(e.Probe.Symbol, use{*f, hidden})
		return err
	}
	if _, err := l.code.Image.Bytes(e.Probe.Addr, 1); err != nil && e.Probe.Symbol == "" {
		return l.add(DanglingRecord, e.Record, id, "a record of a probe object at %s, which is nowhere in the file", l.code.Image.Place(e.Probe.Addr))
	}
	l.link.usedAt(l.index, e.Probe)
	l.link.recorded[scopedID{l.scope(), id}] = true
	return nil
}

// hidden reports whether an object's reference to a symbol reaches into no other
// module.
func (l *fileChecker) hidden(name string) (bool, error) {
	if !l.relocatable() {
		return false, nil
	}
	if l.link.hiddenFile != l.index {
		l.link.hiddenFile, l.link.hiddenNames = l.index, map[string]bool{}
		syms, err := l.Symbols()
		if err != nil {
			return false, err
		}
		for i := syms.FirstGlobal(); i < syms.Len(); i++ {
			if s := syms.Nameless(i); s.Section == 0 && s.Visibility() != 0 {
				l.link.hiddenNames[syms.Name(i)] = true
			}
		}
	}
	return l.link.hiddenNames[name], nil
}

// notedID is the probe by the names that its notes have.
func (l *fileChecker) notedID(p linkerset.Probe) scopedID {
	return scopedID{l.scope(), idOf(linkerset.EncodeName(p.Provider), linkerset.EncodeName(p.Name))}
}

// describe names the probe of a record in a message.
func (l *fileChecker) describe(e *linkerset.Entry) string {
	p, err := l.probes.Lookup(e.Probe)
	if err != nil {
		return "another"
	}
	return Probe{p.Provider, p.Module, p.Function, p.Name}.String()
}

// nameOf is what findings call a probe.
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
func (l *fileChecker) traits(layouts []linkerset.Layout) error {
	if !l.relocatable() {
		return l.imageTraits(layouts)
	}
	for _, layout := range layouts {
		l.link.trait(trait{MixedLayout, "", describeLayout(layout)}, l.index)
	}
	kept, err := linkerset.KeptAlive(l.Object.Object, l.Machine)
	if err != nil {
		return err
	}
	o := l.Object.Object
	noted, shown := hasAny(o, stapsdt.Ours), hasAny(o, usdt.Ours)
	for i := range o.Sections {
		sec := &o.Sections[i]
		kind, ok := recordKind(layouts, sec.Name)
		if !ok || sec.Size == 0 {
			continue
		}
		l.link.trait(trait{MixedFlags, "the flags of " + sec.Name, flagsOf(sec)}, l.index)
		l.link.trait(trait{MixedFlags, "--drop-relocations", given(!kept[i])}, l.index)
		if kind == arch.Probe {
			l.link.trait(trait{MixedFlags, "--stapsdt", given(noted)}, l.index)
			l.link.trait(trait{MixedFlags, "--dtrace", given(shown)}, l.index)
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
func (l *fileChecker) imageTraits(layouts []linkerset.Layout) error {
	for _, other := range layouts[1:] {
		l.addWhole(MixedLayout, "", "holds records of %s, and of %s too", describeLayout(layouts[0]), describeLayout(other))
	}
	seen := map[string]*elfreloc.Section{}
	for i := range l.Sections {
		sec := &l.Sections[i]
		if _, ok := recordKind(layouts, sec.Name); !ok || sec.Size == 0 {
			continue
		}
		if first := seen[sec.Name]; first != nil {
			l.addWhole(MixedFlags, "", "holds two sections %s, at %#x with %s and at %#x with %s; __start_%s leads to one of them",
				sec.Name, first.Addr, flagsOf(first), sec.Addr, flagsOf(sec), sec.Name)
			continue
		}
		seen[sec.Name] = sec
	}
	return nil
}
