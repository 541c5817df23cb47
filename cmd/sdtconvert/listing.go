package main

import (
	"errors"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/message"
	"sdtconvert/internal/sitestate"
	"sdtconvert/linkerset"
)

// listing is what an image says of its probes. docs/listing.md describes its
// JSON.
type listing struct {
	Image   string         `json:"image"`
	Machine string         `json:"machine"`
	Probes  []*listedProbe `json:"probes"`
	Errors  []string       `json:"errors,omitempty"`
}

// listedProbe is a probe of one function.
type listedProbe struct {
	Number    int              `json:"id"`
	Provider  string           `json:"provider"`
	Module    string           `json:"module"`
	Function  string           `json:"function"`
	Name      string           `json:"name"`
	Arguments []listedArgument `json:"arguments,omitempty"`
	Sites     []listedSite     `json:"sites"`
}

type listedArgument struct {
	Index      int    `json:"index"`
	Native     string `json:"native"`
	Translated string `json:"translated,omitempty"`
}

// listedSite is a place that reaches a probe.
type listedSite struct {
	Address string `json:"address"` // hexadecimal: JSON's numbers are too short
	Section string `json:"section,omitempty"`
	placed
	Kind  string `json:"kind"`
	State string `json:"state"`
}

// probeKey is what makes a probe one line.
type probeKey struct{ provider, module, function, name string }

// lister makes a listing of what one unit holds.
type lister struct {
	im      image.Image // whose memory the records are in
	unit    *unit
	probes  *linkerset.Probes
	layouts []linkerset.Layout
	filter  *filter
	out     *listing
}

// read fills in the listing, and reports whether there are records at all.
func (l *lister) read() (found bool, err error) {
	var entries []linkerset.Entry
	for _, layout := range l.layouts {
		some, faults, err := layout.Read(l.im)
		if err != nil {
			return false, err
		}
		entries = append(entries, some...)
		for _, fault := range faults {
			l.fault(fault)
		}
		found = found || len(some)+len(faults) > 0
	}
	if !found {
		return false, nil
	}
	// Only now: most of what a process loads has no records.
	if err := l.unit.readNames(); err != nil {
		return true, err
	}
	linkerset.Sort(entries)
	byName := map[probeKey]*listedProbe{}
	for i := range entries {
		if err := l.add(&entries[i], byName); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (l *lister) fault(err error) { l.out.Errors = append(l.out.Errors, err.Error()) }

// add puts a site into the line of its probe.
func (l *lister) add(e *linkerset.Entry, byName map[probeKey]*listedProbe) error {
	probe, err := l.probes.Of(e.Probe)
	if err != nil {
		return err
	}
	p := listedProbe{Provider: probe.Provider, Module: probe.Module, Function: probe.Function, Name: probe.Name}
	for _, a := range probe.Args {
		p.Arguments = append(p.Arguments, listedArgument(a))
	}
	if p.Module == "" {
		p.Module = l.unit.module
	}
	function, ok := l.unit.function(e.Site)
	if p.Function == "" {
		p.Function = message.OrDash(function.Name)
	}
	if !l.filter.match(&p) {
		return nil
	}
	if !ok {
		l.faultAt(e, "no function holds this site of %s", p.description())
	}
	site := l.site(e, &p)
	key := probeKey{p.Provider, p.Module, p.Function, p.Name}
	if byName[key] == nil {
		byName[key] = &p
		l.out.Probes = append(l.out.Probes, &p)
	}
	byName[key].Sites = append(byName[key].Sites, site)
	return nil
}

func (p *listedProbe) description() string {
	return fmt.Sprintf("%s:%s:%s:%s", p.Provider, p.Module, p.Function, p.Name)
}

func (l *lister) faultAt(e *linkerset.Entry, format string, args ...any) {
	l.fault(fmt.Errorf("%s: %s: %w", l.im.Name(), l.im.Place(e.Site), fmt.Errorf(format, args...)))
}

func (l *lister) site(e *linkerset.Entry, p *listedProbe) listedSite {
	s := listedSite{Address: fmt.Sprintf("%#x", e.Site.Offset), placed: l.unit.place(e.Site)}
	if e.Site.Section != 0 {
		s.Section = l.unit.object.Sections[e.Site.Section].Name
	}
	s.Kind, s.State = sitestate.Of(e, l.im, l.unit.image, l.unit.base)
	if s.State == sitestate.Unknown {
		text := sitestate.CodeAround(l.im, e.Site)
		l.faultAt(e, "this site of %s holds % x: no disabled form, no call and no breakpoint", p.description(), text.At(e.Site.Offset, 4))
	}
	return s
}

// errNoRecords explains an image without records, by those that it has in
// another layout if there are some.
func (l *lister) errNoRecords() error {
	for _, f := range linkerset.Formats() {
		other := linkerset.Layout{Format: f}
		if entries, faults, err := other.Read(l.im); err == nil && len(entries)+len(faults) > 0 {
			return fmt.Errorf("%s: holds no records in the section %s, but in %s; see --layout and --section",
				l.im.Name(), l.layouts[0].Section(arch.Probe), other.Section(arch.Probe))
		}
	}
	return fmt.Errorf("%s: %w", l.im.Name(), errNoProbes)
}

var errNoProbes = errors.New("holds no records of probes")
