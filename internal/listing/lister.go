package listing

import (
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sitestate"
	"sdtconvert/linkerset"
)

// lister makes the listing of one image.
type lister struct {
	*Options
	memory image.Image // that the records are in: the image of the file, or a process
	code   *locate.Code
	probes *linkerset.Probes
	out    *Listing
	byName map[[4]string]*Probe
	states *sitestate.Reader
	warned bool // of the prefix of probe objects
}

// site is a site of a probe, of a record or of what describes one without.
type site struct {
	linkerset.Entry
	source source
	probe  linkerset.Probe // unless the source is a record
	note   *notes.Note     // nil for none
}

// source is what describes a site.
type source uint8

const (
	recorded source = iota
	inNote
	inDOF // DTrace's object format
)

// code lists what the memory of an image holds.
func (o *Options) code(code *locate.Code, memory image.Image, out *Listing) error {
	if err := linkerset.CheckVersion(code.Object); err != nil {
		return err
	}
	out.Machine = code.Image.Machine().Traits().Name
	l := &lister{
		Options: o, memory: memory, code: code, probes: linkerset.NewProbes(memory, o.ProbePrefix), out: out, byName: map[[4]string]*Probe{},
		states: sitestate.New(code.Image, memory, code.Base, o.Names),
	}
	entries, found, err := l.records()
	if err != nil {
		return err
	}
	notes, faults, err := notes.Read(code.Object, code.Image)
	if err != nil {
		faults = append(faults, err)
	}
	probes, err := l.dofProbes()
	if err != nil {
		return err
	}
	sites := l.sites(entries, notes, probes)
	if !found && len(sites)+len(out.Errors) == 0 {
		return l.errNoRecords()
	}
	if err := l.warnOfUnconverted(); err != nil {
		return err
	}
	// Only now: most of what a process loads has no records.
	if err := code.Read(); err != nil {
		return err
	}
	if o.Semaphores {
		for _, fault := range faults {
			o.Warn(fault)
		}
	}
	for i := range sites {
		if err := l.add(&sites[i]); err != nil {
			return err
		}
	}
	return nil
}

// records reads the records, and reports whether there are any, be they right or wrong.
func (l *lister) records() (entries []linkerset.Entry, found bool, err error) {
	for _, layout := range l.Layouts {
		records, faults, err := layout.Read(l.memory)
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, records...)
		for _, fault := range faults {
			l.out.fail(fault)
		}
		found = found || len(records)+len(faults) > 0
	}
	return entries, found, nil
}

// dofProbes reads the probes in DTrace's object format.
func (l *lister) dofProbes() ([]dof.FunctionProbe, error) {
	probes, faults, err := dof.Read(l.code.Object, l.code.Image)
	for _, fault := range faults {
		l.out.fail(fault)
	}
	return probes, err
}

// sites returns the sites of records, of notes and of DTrace's object format, sorted, each probe of a
// site once. Headers of others make notes without records, linkers fold functions of several
// probes together, and they leave notes of functions that they have dropped, whose addresses are
// not those of code.
func (l *lister) sites(entries []linkerset.Entry, notes []notes.Note, probes []dof.FunctionProbe) []site {
	var sites []site
	atRecord := map[image.Addr]int{} // indexes of sites
	for _, e := range entries {
		atRecord[e.Site] = len(sites)
		sites = append(sites, site{Entry: e})
	}
	type probeAt struct {
		at             image.Addr
		provider, name string
	}
	listed := map[probeAt]bool{}
	for i := range notes {
		n := &notes[i]
		at := n.Site.Addr.Add(l.code.Base)
		key := probeAt{at, n.Provider, n.Name}
		if k, ok := atRecord[at]; ok {
			sites[k].note = n
		} else if !n.Site.Undefined && !listed[key] && l.code.Image.Executable(n.Site.Addr) {
			listed[key] = true
			sites = append(sites, site{
				Entry: linkerset.Entry{Kind: arch.Probe, Site: at}, source: inNote, note: n,
				probe: linkerset.Probe{Provider: linkerset.DisplayName(n.Provider), Name: linkerset.DisplayName(n.Name)},
			})
		}
	}
	described := map[image.Addr]bool{}
	for i := range sites {
		described[sites[i].Site] = true
	}
	for _, p := range probes {
		probe := linkerset.Probe{Provider: p.Provider, Function: p.Function, Name: p.Name, Args: p.Args}
		for _, s := range p.Sites {
			if at := s.Addr.Add(l.code.Base); !described[at] {
				sites = append(sites, site{Entry: linkerset.Entry{Kind: s.Kind, Site: at}, source: inDOF, probe: probe})
			}
		}
	}
	slices.SortStableFunc(sites, func(a, b site) int { return a.Site.Compare(b.Site) })
	return sites
}

// add puts a site into the line of its probe.
func (l *lister) add(e *site) error {
	probe := e.probe
	if e.source == recorded {
		var err error
		if probe, err = l.probes.Lookup(e.Probe); err != nil {
			return err
		}
		if err := l.warnOfPrefix(&e.Entry, &probe); err != nil {
			return err
		}
	}
	p := Probe{Provider: probe.Provider, Module: probe.Module, Function: probe.Function, Name: probe.Name}
	if p.Module == "" {
		p.Module = l.code.Module
	}
	place := l.code.Function(e.Site)
	// DTrace's object format names the function also where symbols are stripped.
	if p.Function == "" || e.source == inDOF && place.Known() && !place.NoSymbol {
		p.Function = message.OrDash(place.Function)
	}
	if !l.Filter.match(&p) {
		return nil
	}
	if !place.Known() && e.source == recorded {
		l.fault(&e.Entry, "no function holds this site of %s", p.String())
	}
	l.code.Complete(&place)
	site, err := l.site(e, &p, place)
	if err != nil {
		return err
	}
	if site.Semaphore, err = l.semaphore(e); err != nil {
		return err
	}
	if s := site.Semaphore; e.Kind == arch.Enabled && site.State == sitestate.Disabled && s != nil && s.Value != nil && *s.Value > 0 {
		site.State = sitestate.Armed
	}
	k := [4]string{p.Provider, p.Module, p.Function, p.Name}
	line := l.byName[k]
	if line == nil {
		line = &Probe{Provider: p.Provider, Module: p.Module, Function: p.Function, Name: p.Name}
		for _, a := range probe.Args {
			line.Arguments = append(line.Arguments, Argument(a))
		}
		l.byName[k] = line
		l.out.Probes = append(l.out.Probes, line)
	}
	line.Sites = append(line.Sites, site)
	return nil
}

// warnOfPrefix tells, once, that a probe object has a symbol which is not named as those of
// probe objects are.
func (l *lister) warnOfPrefix(e *linkerset.Entry, probe *linkerset.Probe) error {
	if l.warned || probe.Provider != "" || probe.Name != "" {
		return nil
	}
	symbol, err := l.probes.Symbol(e.Probe)
	if err == nil && symbol != "" {
		l.warned = true
		l.Warn(fmt.Errorf("%s: the probe object %s does not begin with %s; see --probe-object-prefix", l.memory.Name(), symbol, l.ProbePrefix))
	}
	return err
}

// fault notes an error of a site.
func (l *lister) fault(e *linkerset.Entry, format string, args ...any) {
	l.out.fail(fmt.Errorf("%s: %s: %w", l.memory.Name(), l.memory.Place(e.Site), fmt.Errorf(format, args...)))
}

func (l *lister) site(e *site, p *Probe, place locate.Place) (Site, error) {
	s := Site{Address: fmt.Sprintf("%#x", e.Site.Offset), Place: place}
	if e.Site.Section != 0 {
		s.Section = l.code.Object.Sections[e.Site.Section].Name
	}
	found, err := l.state(e)
	s.Kind, s.State = found.Kind, found.State
	if e.note != nil {
		s.Operands = e.note.Args
	}
	if s.State == sitestate.Unknown && e.source != inNote {
		l.fault(&e.Entry, "this site of %s %s", p.String(), found.Unexplained(sitestate.CodeAt(l.memory, e.Site)))
	}
	return s, err
}

// state returns what is at a site.
func (l *lister) state(e *site) (sitestate.Site, error) {
	switch e.source {
	case inNote:
		return l.states.StateOfNote(e.Site)
	case inDOF:
		return l.states.StateOfDOF(&e.Entry)
	}
	return l.states.StateOf(&e.Entry)
}

// warnOfUnconverted warns of probes with tracepoints that are not listed, as no conversion has
// met them.
func (l *lister) warnOfUnconverted() error {
	if l.code.Object.Type == elf.ET_REL {
		return nil
	}
	ids, err := sitestate.Unconverted(l.code.Object)
	if len(ids) > 0 {
		l.Warn(fmt.Errorf("%s: tracepoints of %s are not converted, and not listed: %s", l.memory.Name(), message.Plural(len(ids), "probe"), sitestate.ConvertAdvice()))
	}
	return err
}

// errNoRecords explains an image without records, by those that it has in another layout, if there are
// some.
func (l *lister) errNoRecords() error {
	for _, f := range linkerset.Formats() {
		layout := linkerset.Layout{Format: f}
		if entries, faults, err := layout.Read(l.memory); err == nil && len(entries)+len(faults) > 0 {
			return fmt.Errorf("%s: holds no records in the section %s, but in %s; see --layout and --section",
				l.memory.Name(), l.Layouts[0].Section(arch.Probe), layout.Section(arch.Probe))
		}
	}
	if l.code.Object.Type == elf.ET_REL {
		return fmt.Errorf("%s: %w; inspect shows the calls in an object that is not converted", l.memory.Name(), errNoProbes)
	}
	ids, err := sitestate.Unconverted(l.code.Object)
	if err != nil {
		return err
	}
	defined, err := l.probes.Set()
	if err != nil {
		return err
	}
	if len(ids)+len(defined) > 0 {
		return fmt.Errorf("%s: %w, and is not converted: %s", l.memory.Name(), errNoProbes, sitestate.ConvertAdvice())
	}
	return fmt.Errorf("%s: %w", l.memory.Name(), errNoProbes)
}

// semaphore returns the semaphore of a site, nil for none or if none is wanted: that of a probe call by its
// note, of an is-enabled test by its code. If its bytes cannot be read, it has no value.
func (l *lister) semaphore(e *site) (*Semaphore, error) {
	var ref image.Ref
	switch {
	case !l.Semaphores:
		return nil, nil
	case e.Kind == arch.Enabled:
		var ok bool
		var err error
		if ref, ok, err = l.states.Semaphore(&e.Entry); err != nil || !ok {
			return nil, err
		}
	case e.note == nil || e.note.Semaphore.Null():
		return nil, nil
	default:
		ref = e.note.Semaphore
		ref.Addr = ref.Addr.Add(l.code.Base)
	}
	name, err := notes.SemaphoreNameAt(l.memory, ref)
	if err != nil || ref.Undefined {
		return &Semaphore{Symbol: name}, err
	}
	out := &Semaphore{Address: fmt.Sprintf("%#x", ref.Offset), Symbol: name}
	if ref.Section != 0 {
		out.Section = l.code.Object.Sections[ref.Section].Name
	}
	if b, err := l.memory.Bytes(ref.Addr, notes.SemaphoreSize); err == nil {
		value := l.memory.Encoding().Order.Uint16(b)
		out.Value = &value
	}
	return out, nil
}
