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

	liveSites map[image.Addr]bool // sites that live-call has reported
	unclear   []unclearSite
	firstSite map[string]image.Addr // of each probe that has an id
}

// check applies the rules to the file. After an error some of them were not applied.
func (c *fileChecker) check() error {
	s := c.set
	s.files = append(s.files, c.Name)
	c.index, c.link = len(s.files)-1, s.linkOf(c.Object)
	c.liveSites, c.firstSite, c.counts = map[image.Addr]bool{}, map[string]image.Addr{}, map[counted]bool{}
	mentioned, err := c.NamesContain(s.opts.Names.StubTexts())
	if err != nil {
		return err
	}
	var stubs *patch.Scan
	if mentioned && c.relocatable() {
		if stubs, err = c.calls(); err != nil {
			return err
		}
	}
	if c.code == nil {
		return nil // then it is not converted
	}
	c.probes = linkerset.NewProbes(c.code.Image, s.opts.ProbePrefix)
	c.states = sitestate.New(c.Object.Object, c.code.Image, c.code.Image, 0, s.opts.Names)
	if err := c.definitions(); err != nil {
		return err
	}
	recorded, err := c.records()
	if err != nil {
		return err
	}
	for _, apply := range []func() error{
		c.notes, c.unconverted, c.missingNotes, c.operands, c.guardSymbols, c.kernelTracepoints, c.dofEdits, c.guardReads,
	} {
		if err := apply(); err != nil {
			return err
		}
	}
	if err := s.manifestDiff.add(c); err != nil {
		return err
	}
	if !c.relocatable() {
		if err := c.linkedStubs(mentioned); err != nil {
			return err
		}
	}
	if err := c.reportUnclear(); err != nil {
		return err
	}
	if recorded || stubs != nil && len(stubs.Calls) > 0 {
		return c.prototypes()
	}
	return nil
}

func (c *fileChecker) relocatable() bool { return c.Type == elf.ET_REL }

// sectionNamed returns the first section of a name, nil for none.
func (c *fileChecker) sectionNamed(name string) *elfreloc.Section {
	for i := range c.Sections {
		if c.Sections[i].Name == name {
			return &c.Sections[i]
		}
	}
	return nil
}

// hasSymbols reports whether the symbols of functions are there, of the file or of its
// separate debug file. The code has to be read.
func (c *fileChecker) hasSymbols() bool {
	from := c.code.Functions().From()
	return from == resolve.Symtab || from == resolve.Debug
}

// finding makes a finding at a place.
func (c *fileChecker) finding(rule *Rule, at image.Addr, probe, format string, args ...any) (*Finding, error) {
	f := Finding{
		Rule: rule, File: c.Name, Place: c.code.Image.Place(at), Address: at.Offset,
		Probe: probe, Message: fmt.Sprintf(format, args...), file: c.index, at: at,
	}
	if at.Section > 0 && at.Section < len(c.Sections) {
		f.Section = c.Sections[at.Section].Name
	}
	if c.code.Image.Executable(at) {
		if err := c.code.Read(); err != nil {
			return nil, err
		}
		place := c.code.Function(at)
		f.Function, f.FunctionOffset, f.Symbol, f.Unsized = place.Function, place.FunctionOffset, place.Symbol, place.Unsized
		f.Source, f.Line = c.code.Source(at)
	}
	return &f, nil
}

// add adds a finding at a place.
func (c *fileChecker) add(rule *Rule, at image.Addr, probe, format string, args ...any) error {
	f, err := c.finding(rule, at, probe, format, args...)
	if err == nil {
		c.set.findings = append(c.set.findings, *f)
	}
	return err
}

// addWhole adds a finding of the whole file.
func (c *fileChecker) addWhole(rule *Rule, probe, format string, args ...any) {
	c.set.findings = append(c.set.findings, Finding{
		Rule: rule, File: c.Name, Probe: probe, Message: fmt.Sprintf(format, args...), file: c.index,
	})
}

// site notes that a probe has a site, in a function.
func (c *fileChecker) site(p linkerset.Probe, at image.Addr, function string) {
	if _, ok := c.firstSite[p.ID]; !ok && p.ID != "" {
		c.firstSite[p.ID] = at
	}
	name := Probe{p.Provider, cmp.Or(p.Module, c.code.Module), cmp.Or(p.Function, function), p.Name}
	c.link.hasSites[c.index] = true
	c.set.sites = append(c.set.sites, probeSite{name, p.ID, p.FromStruct, c.link})
}

// stubSite notes that a probe has a site which is not recorded.
func (c *fileChecker) stubSite(id string, at image.Addr) error {
	if err := c.code.Read(); err != nil {
		return err
	}
	c.site(linkerset.ProbeFromID(id), at, c.code.Function(at).Function)
	c.link.liveCalls[scopedID{c.scope(), idOf(linkerset.SplitID(id))}] = true
	return nil
}

// withoutPlace returns an error without the place, which a finding has anyhow.
func withoutPlace(err error) error {
	for {
		var at *elfreloc.Error
		if !errors.As(err, &at) {
			return err
		}
		err = at.Err
	}
}
