package check

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"iter"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
	"sdtconvert/resolve"
)

// fileChecker checks one file.
type fileChecker struct {
	*input.Object
	set       *Set
	link      *link
	scope     *scope
	index     int          // of the file in the set
	mentioned bool         // the names of the file hold one of a stub
	code      *locate.Code // nil for a machine that is not known
	space     *sites.Space
	hasCalls  bool // of stubs, or records
	// wantsNotes says that each recorded call has to have a note.
	wantsNotes bool
	found      map[findingKey]bool
	counted    map[counted]bool
	calls      []probeCall // that are recorded, or still live

	liveSites map[image.Addr]bool // sites that live-call has reported
	unclear   []unclearSite
	firstSite map[string]image.Addr // of each probe that has an id

	hiddenNames map[string]bool // of undefined symbols that reach into no other module, nil before they are asked for

	// err is the first that keeps a rule from being applied. Nothing is noted after it, and what is
	// read after it is empty.
	err error
}

// begin takes the file into the set, and finds the calls of stubs in an object.
func (c *fileChecker) begin() {
	s := c.set
	s.files = append(s.files, c.Name)
	c.index, c.link = len(s.files)-1, s.linkOf(c.Object)
	c.scope = c.link.scopeOf(c.index)
	if c.relocatable() {
		c.scope = c.link.scopeOf(allObjects)
	}
	c.liveSites, c.firstSite, c.counted, c.found = map[image.Addr]bool{}, map[string]image.Addr{}, map[counted]bool{}, map[findingKey]bool{}
	if c.mentioned = c.namesContain(s.opts.Names.StubTexts()...); c.mentioned && c.relocatable() {
		c.stubCalls()
	}
}

// check applies the rules to the file. After an error some of them were not applied.
func (c *fileChecker) check() error {
	s := c.set
	c.begin()
	if c.code == nil || c.err != nil {
		return c.err // without code it is not converted
	}
	if !c.relocatable() && len(c.Sections) == 0 {
		s.opts.Warn(fmt.Errorf("%s: has no section headers, so its notes are not found; check it before they are removed", c.Name))
	}
	c.openSpace()
	if c.fail(c.space.Read()) {
		c.link.unconverted[c.index] = true // as far as this program can tell
		return c.err
	}
	for _, apply := range []func(){
		c.definitions, c.sites, c.notes, c.unconverted, c.requiredNotes, c.operands, c.guardSymbols, c.kernelTracepoints,
		c.dofEdits, c.guardReads, c.linkedStubs, c.reportUnclear, c.prototypes,
	} {
		if apply(); c.err != nil {
			break
		}
	}
	return c.err
}

// openSpace makes the space of the file, whose sites are not read yet.
func (c *fileChecker) openSpace() {
	opts := &c.set.opts
	c.space = sites.New(c.Object.Object, c.code.Image, c.code.Image, 0, opts.Options)
}

// sitesFrom returns the sites of a source, sorted by address.
func (c *fileChecker) sitesFrom(source sites.Source) iter.Seq[*sites.Site] {
	return func(yield func(*sites.Site) bool) {
		for i := range c.space.Sites {
			if s := &c.space.Sites[i]; s.Source == source && !yield(s) {
				return
			}
		}
	}
}

// recordedCalls returns the records of probe calls, sorted by address.
func (c *fileChecker) recordedCalls() iter.Seq[*sites.Site] {
	return func(yield func(*sites.Site) bool) {
		for s := range c.sitesFrom(sites.FromRecord) {
			if s.Kind == arch.Probe && !yield(s) {
				return
			}
		}
	}
}

// has reports whether there is any site.
func has(found iter.Seq[*sites.Site]) bool {
	for range found {
		return true
	}
	return false
}

// fail keeps the first error, and reports whether there is any.
func (c *fileChecker) fail(err error) bool {
	c.err = cmp.Or(c.err, err)
	return c.err != nil
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

// hasSection reports whether the file has a section that is one of ours.
func (c *fileChecker) hasSection(ours func(*elfreloc.Section) bool) bool {
	for i := range c.Sections {
		if ours(&c.Sections[i]) {
			return true
		}
	}
	return false
}

// namesContain reports whether the names of the file's symbols hold one of some texts.
func (c *fileChecker) namesContain(texts ...[]byte) bool {
	found, err := c.NamesContain(texts)
	return !c.fail(err) && found
}

// symbols returns the symbols of the file.
func (c *fileChecker) symbols() *elfreloc.Symbols { return c.noneOnError(c.Symbols()) }

// dynamicSymbols returns the symbols that the loader sees.
func (c *fileChecker) dynamicSymbols() *elfreloc.Symbols { return c.noneOnError(c.DynamicSymbols()) }

func (c *fileChecker) noneOnError(syms *elfreloc.Symbols, err error) *elfreloc.Symbols {
	if c.fail(err) {
		return &elfreloc.Symbols{}
	}
	return syms
}

// probe returns the probe of a site.
func (c *fileChecker) probe(s *sites.Site) linkerset.Probe {
	probe, err := c.space.Probe(s)
	c.fail(err)
	return probe
}

// read reads what names the functions and the lines of the code, and reports whether they are known.
func (c *fileChecker) read() bool { return !c.fail(c.code.Read()) }

// function returns the function that holds a site.
func (c *fileChecker) function(at image.Addr) (place locate.Place) {
	if c.read() {
		place = c.code.Function(at)
	}
	return place
}

// hasSymbols reports whether the symbols of functions are there, of the file or of its
// separate debug file. The code has to be read.
func (c *fileChecker) hasSymbols() bool {
	from := c.code.Functions().From()
	return from == resolve.Symtab || from == resolve.Debug
}

// finding makes a finding at a place.
func (c *fileChecker) finding(rule *Rule, at image.Addr, probe, format string, args ...any) Finding {
	f := Finding{
		Rule: rule, File: c.Name, Place: c.code.Image.Place(at), Address: at.Offset,
		Probe: probe, Message: fmt.Sprintf(format, args...), file: c.index, at: at,
	}
	if at.Section > 0 && at.Section < len(c.Sections) {
		f.Section = c.Sections[at.Section].Name
	}
	if c.code.Image.Executable(at) && c.read() {
		place := c.code.Function(at)
		f.Function, f.FunctionOffset, f.Symbol, f.Unsized = place.Function, place.FunctionOffset, place.Symbol, place.Unsized
		f.Source, f.Line = c.code.Source(at)
	}
	return f
}

// add adds a finding at a place, once: several notes may say the same of a site.
func (c *fileChecker) add(rule *Rule, at image.Addr, probe, format string, args ...any) {
	if message := fmt.Sprintf(format, args...); c.isNew(rule, at, probe+" "+message) {
		c.addFinding(c.finding(rule, at, probe, "%s", message))
	}
}

// findingKey is what findings differ in.
type findingKey struct {
	rule *Rule
	at   image.Addr
	text string
}

// isNew reports whether it is called for the first time with a rule, a place and a text.
func (c *fileChecker) isNew(rule *Rule, at image.Addr, text string) bool {
	key := findingKey{rule, at, text}
	isKnown := c.found[key]
	c.found[key] = true
	return !isKnown
}

// addWhole adds a finding of the whole file.
func (c *fileChecker) addWhole(rule *Rule, probe, format string, args ...any) {
	c.addFinding(Finding{Rule: rule, File: c.Name, Probe: probe, Message: fmt.Sprintf(format, args...), file: c.index})
}

func (c *fileChecker) addFinding(f Finding) {
	if c.err == nil {
		c.set.findings = append(c.set.findings, f)
	}
}

// addSite notes that a probe has a site, in a function.
func (c *fileChecker) addSite(p linkerset.Probe, at image.Addr, function string) {
	if _, ok := c.firstSite[p.ID]; !ok && p.ID != "" {
		c.firstSite[p.ID] = at
	}
	name := Probe{p.Provider, cmp.Or(p.Module, c.code.Module), cmp.Or(p.Function, function), p.Name}
	c.link.hasSites[c.index] = true
	c.set.sites = append(c.set.sites, probeSite{name, p.ID, p.FromStruct, c.link})
}

// stubSite notes that a probe has a site which is not recorded.
func (c *fileChecker) stubSite(id string, at image.Addr) {
	place := c.function(at)
	if c.err == nil {
		c.addSite(linkerset.ProbeFromID(id), at, place.Function)
		c.scope.liveCalls[idOf(linkerset.SplitID(id))] = true
	}
}

// withoutPlace returns an error without the place, which a finding has anyhow.
func withoutPlace(err error) error {
	for {
		at, ok := errors.AsType[*elfreloc.Error](err)
		if !ok {
			return err
		}
		err = at.Err
	}
}
