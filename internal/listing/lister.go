package listing

import (
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
)

// lister makes the listing of one image.
type lister struct {
	*Options
	*sites.Space
	code   *locate.Code
	out    *Listing
	byName map[[4]string]*Probe
	warned bool // of the prefix of probe objects
}

// code lists what the memory of an image holds.
func (o *Options) code(code *locate.Code, memory image.Image, out *Listing) error {
	out.Machine = code.Image.Machine().Traits().Name
	space := sites.New(code.Object, code.Image, memory, code.Base, o.Options)
	l := &lister{Options: o, Space: space, code: code, out: out, byName: map[[4]string]*Probe{}}
	if err := space.Read(); err != nil {
		return err
	}
	for _, fault := range space.Faults.Records {
		out.fail(fault)
	}
	for _, fault := range space.Faults.DOF {
		out.fail(fault)
	}
	// What dtrace -G has edited is listed where it is linked.
	space.Sites = slices.DeleteFunc(space.Sites, func(site sites.Site) bool { return site.Source == sites.FromEdit })
	if len(space.RecordLayouts)+len(space.Sites)+len(out.Errors) == 0 {
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
		for _, fault := range l.Faults.Notes {
			l.Places.Warn(fault)
		}
		if l.Faults.NotesUnread != nil {
			l.Places.Warn(l.Faults.NotesUnread)
		}
	}
	for i := range space.Sites {
		if err := l.add(&space.Sites[i]); err != nil {
			return err
		}
	}
	return nil
}

// add puts a site into the line of its probe.
func (l *lister) add(e *sites.Site) error {
	probe, err := l.Probe(e)
	if err != nil {
		return err
	}
	if e.Source == sites.FromRecord {
		if err := l.warnOfPrefix(&e.Entry, &probe); err != nil {
			return err
		}
	}
	p, place := Identify(l.code, e, &probe)
	if !l.Filter.Match(&p) {
		return nil
	}
	if !place.Known() && e.Source == sites.FromRecord {
		hint := ""
		if l.code.Object != nil && l.code.Object.Type == elf.ET_REL {
			hint = "; a module that is stripped of its symbols keeps the functions of its sites with --functions, or strip --strip-debug"
		}
		l.fault(&e.Entry, "no function holds this site of %s%s", p.String(), hint)
	}
	l.code.Complete(&place)
	site, err := l.site(e, &p, place)
	if err != nil {
		return err
	}
	if site.Semaphore, err = l.semaphore(e); err != nil {
		return err
	}
	if s := site.Semaphore; e.Kind == arch.Enabled && site.State == sites.Disabled && s != nil && s.Value != nil && *s.Value > 0 {
		site.State = sites.Armed
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

// Identify returns the name of a site's probe, and where the site is. The module is that of the code, and the function the
// one that holds the site, if the probe itself has none.
func Identify(code *locate.Code, site *sites.Site, probe *linkerset.Probe) (Probe, locate.Place) {
	p := Probe{Provider: probe.Provider, Module: probe.Module, Function: probe.Function, Name: probe.Name}
	if p.Module == "" {
		p.Module = code.Module
	}
	place := code.Function(site.Address)
	// DTrace's object format names the function also where symbols are stripped.
	if p.Function == "" || site.Source == sites.FromDOF && place.Known() && !place.NoSymbol {
		p.Function = message.OrDash(place.Function)
	}
	return p, place
}

// warnOfPrefix tells, once, that a probe object has a symbol which is not named as those of
// probe objects are.
func (l *lister) warnOfPrefix(e *linkerset.Entry, probe *linkerset.Probe) error {
	if l.warned || probe.Provider != "" || probe.Name != "" {
		return nil
	}
	symbol, err := l.Probes.Symbol(e.Probe)
	if err == nil && symbol != "" {
		l.warned = true
		l.Places.Warn(fmt.Errorf("%s: the probe object %s does not begin with %s; see --probe-object-prefix", l.Memory.Name(), symbol, l.Space.ProbePrefix))
	}
	return err
}

// fault notes an error of a site.
func (l *lister) fault(e *linkerset.Entry, format string, args ...any) {
	l.out.fail(fmt.Errorf("%s: %s: %w", l.Memory.Name(), l.Memory.Place(e.Address), fmt.Errorf(format, args...)))
}

func (l *lister) site(e *sites.Site, p *Probe, place locate.Place) (Site, error) {
	s := Site{Address: fmt.Sprintf("%#x", e.Address.Offset), Place: place}
	if e.Address.Section != 0 {
		s.Section = l.Object.Sections[e.Address.Section].Name
	}
	code, err := l.Code(e)
	s.Kind, s.State = code.Kind, code.State
	s.Operands = e.Operands()
	if s.State == sites.Unknown && e.Source != sites.FromNote {
		l.fault(&e.Entry, "this site of %s %s", p.String(), code.Unexplained(sites.CodeAt(l.Memory, e.Address)))
	}
	return s, err
}

// warnOfUnconverted warns of probes with tracepoints that are not listed, as no conversion has
// met them.
func (l *lister) warnOfUnconverted() error {
	if l.Object.Type == elf.ET_REL {
		return nil
	}
	ids, err := sites.UnconvertedProbes(l.Object)
	if len(ids) > 0 {
		l.Places.Warn(fmt.Errorf("%s: tracepoints of %s are not converted, and not listed: %s", l.Memory.Name(), message.Plural(len(ids), "probe"), sites.ConvertAdvice()))
	}
	return err
}

// errNoRecords explains an image without records, by those that it has in another layout, if there are
// some.
func (l *lister) errNoRecords() error {
	for _, f := range linkerset.Formats() {
		layout := linkerset.Layout{Format: f}
		if entries, faults, err := layout.Read(l.Memory); err == nil && len(entries)+len(faults) > 0 {
			return fmt.Errorf("%s: holds no records in the section %s, but in %s; see --layout and --section",
				l.Memory.Name(), l.Space.Layouts[0].Section(arch.Probe), layout.Section(arch.Probe))
		}
	}
	if l.Object.Type == elf.ET_REL {
		return fmt.Errorf("%s: %w; inspect shows the calls in an object that is not converted", l.Memory.Name(), errNoProbes)
	}
	ids, err := sites.UnconvertedProbes(l.Object)
	if err != nil {
		return err
	}
	defined, err := l.Probes.Set()
	if err != nil {
		return err
	}
	if len(ids)+len(defined) > 0 {
		return fmt.Errorf("%s: %w, and is not converted: %s", l.Memory.Name(), errNoProbes, sites.ConvertAdvice())
	}
	return fmt.Errorf("%s: %w", l.Memory.Name(), errNoProbes)
}

// semaphore describes the semaphore of a site, nil for none or if none is wanted. If its bytes cannot be read, it
// has no value.
func (l *lister) semaphore(e *sites.Site) (*Semaphore, error) {
	if !l.Semaphores {
		return nil, nil
	}
	ref, ok, err := l.Semaphore(e)
	if err != nil || !ok {
		return nil, err
	}
	name, err := notes.SemaphoreNameAt(l.Memory, ref)
	if err != nil || ref.Undefined {
		return &Semaphore{Symbol: name}, err
	}
	out := &Semaphore{Address: fmt.Sprintf("%#x", ref.Offset), Symbol: name}
	if ref.Section != 0 {
		out.Section = l.Object.Sections[ref.Section].Name
	}
	if b, err := l.Memory.Bytes(ref.Addr, notes.SemaphoreSize); err == nil {
		value := l.Memory.Encoding().Order.Uint16(b)
		out.Value = &value
	}
	return out, nil
}
