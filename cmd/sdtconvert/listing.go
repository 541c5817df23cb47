package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/image"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
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

// A site may be armed: a breakpoint, or a call of a tracer, is in its place.
const stateArmed = "armed"

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
		p.Function = orDash(function.Name)
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
	s.Kind, s.State = l.state(e)
	if s.State == stateUnknown {
		text := codeAround(l.im, e.Site)
		l.faultAt(e, "this site of %s holds % x: no disabled form, no call and no breakpoint", p.description(), text.At(e.Site.Offset, 4))
	}
	return s
}

// state tells the form of a site and what is there now. The form of one that is
// armed in memory is that of the file.
func (l *lister) state(e *linkerset.Entry) (kind, state string) {
	m, text, at := l.im.Machine(), codeAround(l.im, e.Site), e.Site.Offset
	if site, ok := m.Disabled(text, at, e.Kind); ok {
		if l.jumpsToStub(text, e.Site) {
			return arch.Describe(e.Kind, site.Form), stateLive
		}
		return arch.Describe(e.Kind, site.Form), stateDisabled
	}
	kind = arch.Describe(e.Kind, arch.Call)
	file, disabled := m.Disabled(codeAround(l.unit.image, l.unit.inFile(e.Site)), l.unit.inFile(e.Site).Offset, e.Kind)
	if disabled {
		kind = arch.Describe(e.Kind, file.Form)
	}
	isBreakpoint := func(b []byte) bool { return bytes.Equal(text.At(at, len(b)), b) }
	switch live := m.Live(text, at); {
	case slices.ContainsFunc(m.Traits().Breakpoints, isBreakpoint), live && disabled:
		return kind, stateArmed
	case live:
		return kind, stateLive
	}
	return kind, stateUnknown
}

// jumpsToStub tells a tail call that is live from a disabled one that jumps as
// well, to a return thunk or a helper, by the names of where it goes.
func (l *lister) jumpsToStub(text arch.Text, site image.Addr) bool {
	to, ok := l.im.Machine().Jump(text, site.Offset)
	if !ok || site.Section != 0 {
		return false
	}
	names, err := l.im.SymbolsAt(image.Addr{Offset: to})
	return err == nil && slices.ContainsFunc(names, patch.DefaultNames().IsStub)
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
