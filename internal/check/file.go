package check

import (
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
	"sdtconvert/resolve"
)

// looker looks at one file.
type looker struct {
	*File
	set     *Set
	link    *link
	index   int // of the file in the set
	probes  *linkerset.Probes
	entries []linkerset.Entry // sorted by their sites

	located   bool
	functions *resolve.Table
	lines     *lines.Table

	live      map[image.Addr]bool   // sites that live-call was said of
	firstSite map[string]image.Addr // of each probe that has an id
}

// Add looks at a file. An error is of the file: what is wrong with it keeps the
// rules from being applied.
func (s *Set) Add(f *File) error {
	err := s.add(f)
	if err == nil {
		s.looked = append(s.looked, f.Name)
	} else {
		s.partial = true
	}
	return err
}

func (s *Set) add(f *File) error {
	s.files = append(s.files, f.Name)
	l := &looker{File: f, set: s, link: s.linkOf(f), index: len(s.files) - 1, live: map[image.Addr]bool{}, firstSite: map[string]image.Addr{}}
	mentioned, err := f.Object.NamesContain(s.opts.Names.Needles())
	if err != nil {
		return err
	}
	var stubs *patch.Scan
	if mentioned && l.relocatable() {
		if stubs, err = l.calls(); err != nil {
			return err
		}
	}
	if f.Machine == nil {
		return nil // then nobody has converted it
	}
	l.probes = linkerset.NewProbes(f.Image, s.opts.ProbePrefix)
	if err := l.definitions(); err != nil {
		return err
	}
	recorded, err := l.records()
	if err != nil {
		return err
	}
	if err := s.reached.add(l); err != nil {
		return err
	}
	if !l.relocatable() {
		if err := l.linkedStubs(mentioned); err != nil {
			return err
		}
	}
	if recorded || stubs != nil && len(stubs.Calls) > 0 {
		return l.prototypes()
	}
	return nil
}

func (l *looker) relocatable() bool { return l.Object.Type == elf.ET_REL }

// locate reads what names addresses, once.
func (l *looker) locate() error {
	if l.located {
		return nil
	}
	l.located = true
	var err error
	l.functions, l.lines, err = l.Locate()
	return err
}

// finding makes a finding at a place.
func (l *looker) finding(rule *Rule, at image.Addr, probe, format string, args ...any) (*Finding, error) {
	f := Finding{
		Rule: rule, File: l.Name, Place: l.Image.Place(at), Address: at.Offset,
		Probe: probe, Message: fmt.Sprintf(format, args...), file: l.index, at: at,
	}
	if at.Section > 0 && at.Section < len(l.Object.Sections) {
		f.Section = l.Object.Sections[at.Section].Name
	}
	if l.Image.Executable(at) {
		if err := l.locate(); err != nil {
			return nil, err
		}
		if fn, ok := l.functions.Lookup(at.Section, at.Offset); ok {
			f.Function, f.FunctionOffset = fn.Name, at.Offset-fn.Start
			if fn.Raw != fn.Name {
				f.Symbol = fn.Raw
			}
		}
		if l.lines != nil {
			f.Source, f.Line = l.lines.Source(at.Section, at.Offset)
		}
	}
	return &f, nil
}

// add adds a finding at a place.
func (l *looker) add(rule *Rule, at image.Addr, probe, format string, args ...any) error {
	f, err := l.finding(rule, at, probe, format, args...)
	if err == nil {
		l.set.findings = append(l.set.findings, *f)
	}
	return err
}

// addWhole adds a finding of the whole file.
func (l *looker) addWhole(rule *Rule, probe, format string, args ...any) {
	l.set.findings = append(l.set.findings, Finding{
		Rule: rule, File: l.Name, Probe: probe, Message: fmt.Sprintf(format, args...), file: l.index,
	})
}

// site notes that a probe has a site.
func (l *looker) site(p linkerset.Probe, at image.Addr) error {
	if _, ok := l.firstSite[p.ID]; !ok && p.ID != "" {
		l.firstSite[p.ID] = at
	}
	name := Probe{p.Provider, p.Module, p.Function, p.Name}
	if name.Module == "" {
		name.Module = l.Module
	}
	if name.Function == "" {
		if err := l.locate(); err != nil {
			return err
		}
		f, _ := l.functions.Lookup(at.Section, at.Offset)
		name.Function = f.Name
	}
	l.set.sites = append(l.set.sites, knownSite{name, p.ID, p.Told, l.link})
	return nil
}

// reason is an error without the place, which a finding has anyhow.
func reason(err error) error {
	for {
		var at *elfreloc.Error
		if !errors.As(err, &at) {
			return err
		}
		err = at.Err
	}
}
