package check

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/sitestate"
	"sdtconvert/internal/stapnotes"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
	"sdtconvert/resolve"
)

// fileChecker checks one file.
type fileChecker struct {
	*input.Object
	set     *Set
	link    *link
	index   int          // of the file in the set
	code    *locate.Code // nil for a machine that is not known
	probes  *linkerset.Probes
	states  *sitestate.Reader
	entries []linkerset.Entry // sorted by their sites
	// noteSites are those without a record, sorted too.
	noteSites  []*noteSite
	noteAt     map[image.Addr]*stapnotes.Note // by what notes name
	wantsNotes bool                           // each recorded probe call is to have a note
	counts     map[counted]bool

	live      map[image.Addr]bool // sites that live-call was said of
	untold    []untoldSite
	firstSite map[string]image.Addr // of each probe that has an id
}

// check applies the rules to the file. After an error some of them were not applied.
func (l *fileChecker) check() error {
	s := l.set
	s.files = append(s.files, l.Name)
	l.index, l.link = len(s.files)-1, s.linkOf(l.Object)
	l.live, l.firstSite, l.counts = map[image.Addr]bool{}, map[string]image.Addr{}, map[counted]bool{}
	mentioned, err := l.NamesContain(s.opts.Names.Needles())
	if err != nil {
		return err
	}
	var stubs *patch.Scan
	if mentioned && l.relocatable() {
		if stubs, err = l.calls(); err != nil {
			return err
		}
	}
	if l.code == nil {
		return nil // then it is not converted
	}
	l.probes = linkerset.NewProbes(l.code.Image, s.opts.ProbePrefix)
	l.states = sitestate.New(l.Object.Object, l.code.Image, l.code.Image, 0, s.opts.Names)
	if err := l.definitions(); err != nil {
		return err
	}
	recorded, err := l.records()
	if err != nil {
		return err
	}
	if err := l.notes(); err != nil {
		return err
	}
	if err := l.missingNotes(); err != nil {
		return err
	}
	if err := l.operands(); err != nil {
		return err
	}
	if err := l.guardSymbols(); err != nil {
		return err
	}
	if err := l.dofEdits(); err != nil {
		return err
	}
	if err := l.guardReads(); err != nil {
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
	if err := l.untoldSites(); err != nil {
		return err
	}
	if recorded || stubs != nil && len(stubs.Calls) > 0 {
		return l.prototypes()
	}
	return nil
}

func (l *fileChecker) relocatable() bool { return l.Type == elf.ET_REL }

// hasSymbols reports whether the symbols of functions are there, of the file or of its
// separate debug file. The code has to be read.
func (l *fileChecker) hasSymbols() bool {
	from := l.code.Functions().From()
	return from == resolve.Symtab || from == resolve.Debug
}

// finding makes a finding at a place.
func (l *fileChecker) finding(rule *Rule, at image.Addr, probe, format string, args ...any) (*Finding, error) {
	f := Finding{
		Rule: rule, File: l.Name, Place: l.code.Image.Place(at), Address: at.Offset,
		Probe: probe, Message: fmt.Sprintf(format, args...), file: l.index, at: at,
	}
	if at.Section > 0 && at.Section < len(l.Sections) {
		f.Section = l.Sections[at.Section].Name
	}
	if l.code.Image.Executable(at) {
		if err := l.code.Read(); err != nil {
			return nil, err
		}
		place := l.code.Function(at)
		f.Function, f.FunctionOffset, f.Symbol, f.Unsized = place.Function, place.FunctionOffset, place.Symbol, place.Unsized
		f.Source, f.Line = l.code.Source(at)
	}
	return &f, nil
}

// add adds a finding at a place.
func (l *fileChecker) add(rule *Rule, at image.Addr, probe, format string, args ...any) error {
	f, err := l.finding(rule, at, probe, format, args...)
	if err == nil {
		l.set.findings = append(l.set.findings, *f)
	}
	return err
}

// addWhole adds a finding of the whole file.
func (l *fileChecker) addWhole(rule *Rule, probe, format string, args ...any) {
	l.set.findings = append(l.set.findings, Finding{
		Rule: rule, File: l.Name, Probe: probe, Message: fmt.Sprintf(format, args...), file: l.index,
	})
}

// site notes that a probe has a site, in a function.
func (l *fileChecker) site(p linkerset.Probe, at image.Addr, function string) {
	if _, ok := l.firstSite[p.ID]; !ok && p.ID != "" {
		l.firstSite[p.ID] = at
	}
	name := Probe{p.Provider, cmp.Or(p.Module, l.code.Module), cmp.Or(p.Function, function), p.Name}
	l.set.sites = append(l.set.sites, knownSite{name, p.ID, p.FromStruct, l.link})
}

// stubSite notes that a probe has a site which is not recorded.
func (l *fileChecker) stubSite(id string, at image.Addr) error {
	if err := l.code.Read(); err != nil {
		return err
	}
	l.site(linkerset.FromID(id), at, l.code.Function(at).Function)
	l.link.live[scopedID{l.scope(), idOf(linkerset.SplitID(id))}] = true
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
