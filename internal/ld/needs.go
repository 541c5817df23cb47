package ld

import (
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// probeNeeds is what the probes of a file need of a link.
type probeNeeds struct {
	definitions *stubs.Requirements
	earlier     bool    // it holds records of an earlier conversion with the flags of this one
	conflicts   []error // or with others
	err         error
	records     [arch.Kinds]bool // the kinds of sites that the link has records of
	lto         map[string]bool  // names of intermediate code: probe objects that it uses, and true for what it defines
}

func stubOptions(o patch.Options) stubs.Options {
	return stubs.Options{
		Names: o.Names, ProbePrefix: o.ProbePrefix, Thunk: o.ReturnThunk, Layouts: o.Layout.Candidates(),
		Converted: true, Hidden: o.Layout.Format == linkerset.Relative,
	}
}

// newNeeds returns the needs of no file yet.
func newNeeds(o patch.Options) *probeNeeds {
	return &probeNeeds{definitions: stubs.New(stubOptions(o))}
}

// readNeeds reads an object, or the members of an archive.
func readNeeds(o patch.Options, file string) *probeNeeds {
	p := newNeeds(o)
	f, err := input.Open(file)
	if err != nil {
		p.err = err
		return p
	}
	defer f.Close()
	p.err = f.Each(input.Options{FollowThin: true}, func(src *input.Source) error {
		if typ, err := src.Type(); err != nil || typ != filetype.ELF {
			return err
		}
		obj, err := src.Image()
		if err != nil || obj.Type != elf.ET_REL {
			return nil // or it would be refused by now, if it held probes
		}
		return p.add(o, obj, nil)
	})
	return p
}

// add adds an object. scan is what was found in it, or nil; then the object need not have
// to do with probes.
func (p *probeNeeds) add(o patch.Options, obj *input.Object, scan *patch.Scan) error {
	if scan == nil {
		if found, err := obj.NamesContain(probeTexts(o)); err != nil || !found {
			return err
		}
	}
	earlier, err := o.CheckEarlier(obj.Object, obj.Machine)
	switch {
	case err == nil:
		p.earlier = p.earlier || earlier
	case obj.Source.Member != nil:
		p.conflicts = []error{err} // one for all members
	default:
		p.conflicts = append(p.conflicts, err)
	}
	p.addRecords(o, obj, scan)
	return p.definitions.AddScan(obj.Object, obj.Machine, scan)
}

// addLTO adds a source that the linker generates code of: its symbols, and the object that they
// are in, if it is one. The linker does not take the machine code of that.
func (p *probeNeeds) addLTO(o patch.Options, file string, obj *input.Object, symbols []input.LTOSymbol) error {
	if obj != nil {
		if err := p.definitions.Begin(obj.Object, obj.Machine); err != nil {
			return err
		}
	}
	if p.lto == nil {
		p.lto = map[string]bool{}
	}
	for _, s := range symbols {
		if kind, id, ok := o.Names.Match(s.Name); ok {
			p.records[kind] = true
			if object := o.ProbePrefix + id; !s.Defined && !p.lto[object] {
				p.lto[object] = false
			}
		}
		if s.Defined {
			p.lto[s.Name] = true
		}
		p.definitions.AddLTO(file, s.Name, s.Defined)
	}
	return nil
}

// ltoReferences returns the probe objects which intermediate code defines and, once it is converted,
// records refer to. Without a reference they are dropped with all else that nothing refers to.
func ltoReferences(inputs []*linkInput) (names []string) {
	used, defined := map[string]bool{}, map[string]bool{}
	for _, p := range needsOf(inputs) {
		for name, isDefined := range p.lto {
			defined[name] = defined[name] || isDefined
			used[name] = used[name] || !isDefined
		}
		for _, name := range p.definitions.Used() {
			used[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if used[name] && defined[name] {
			names = append(names, name)
		}
	}
	return names
}

// addRecords notes of which kinds an object has records: from its conversion, of which
// scan is nil if there was none, or from an earlier one.
func (p *probeNeeds) addRecords(o patch.Options, obj *input.Object, scan *patch.Scan) {
	if scan != nil {
		for _, ref := range scan.Calls {
			p.records[ref.Stub.Kind] = true
		}
	}
	for i := range obj.Sections {
		if kind, ok := o.Layout.IsRecordSection(&obj.Sections[i]); ok {
			p.records[kind] = true
		}
	}
}

// needsOf returns the needs of the files that have any.
func needsOf(inputs []*linkInput) (needs []*probeNeeds) {
	for _, in := range inputs {
		if in.needs != nil {
			needs = append(needs, in.needs)
		}
	}
	return needs
}

// requirements returns what the link of some files lacks, nil for nothing, and the flags that it gets. It
// refuses records that do not go together. converted is whether files are converted for this link.
func (l *link) requirements(inputs []*linkInput, converted bool) (need *stubs.Requirements, flags []string, err error) {
	needs := needsOf(inputs)
	if err := checkAgreement(needs, converted); err != nil {
		return nil, nil, err
	}
	if err := l.checkPrefixes(inputs); err != nil {
		return nil, nil, err
	}
	if !l.Convert.Patch.NoRecords {
		flags = bounds(l.Convert.Patch.Layout, kinds(needs))
	}
	need, err = l.missing(inputs)
	return need, flags, err
}

// checkAgreement refuses what cannot be read, and records that do not go together. Those
// that are all alike do, whatever the flags are, if nothing is converted now.
func checkAgreement(needs []*probeNeeds, converted bool) error {
	var errs, conflicts []error
	mixed := converted
	for _, p := range needs {
		if p.err != nil {
			errs = append(errs, p.err)
		}
		mixed = mixed || p.earlier
		for _, conflict := range p.conflicts {
			conflicts = append(conflicts, conflict)
			mixed = mixed || cause(conflict) != cause(conflicts[0])
		}
	}
	if mixed {
		errs = append(errs, conflicts...)
	}
	return errors.Join(errs...)
}

// cause returns what records differ in, without names of theirs.
func cause(err error) string {
	if prefix := (*patch.PrefixError)(nil); errors.As(err, &prefix) {
		return "another prefix"
	}
	if located := (*elfreloc.Error)(nil); errors.As(err, &located) {
		return located.Err.Error()
	}
	return err.Error()
}

// missing returns what the link of some files lacks, or nil.
func (l *link) missing(inputs []*linkInput) (*stubs.Requirements, error) {
	if l.NoStubs || l.Convert.Patch.NoRecords {
		return nil, nil
	}
	need := stubs.New(stubOptions(l.Convert.Patch))
	for _, in := range inputs {
		switch {
		case in.needs == nil:
		case in.optional || in.isArchive():
			need.MergeOptional(in.needs.definitions)
		default:
			need.Merge(in.needs.definitions)
		}
	}
	if need.Missing() && !need.HasMachine() { // of bitcode alone
		need.Merge(l.machineOf(inputs))
	}
	for _, in := range inputs {
		if !need.Missing() {
			return nil, nil
		}
		if !in.isShared() {
			continue
		}
		if err := addLibrary(need, in.path); err != nil {
			return nil, err
		}
	}
	if !need.Missing() {
		return nil, nil
	}
	return need, nil
}

// machineOf returns a need of nothing, with the machine of the first object among some files.
func (l *link) machineOf(inputs []*linkInput) *stubs.Requirements {
	need := stubs.New(stubOptions(l.Convert.Patch))
	for _, in := range inputs {
		if in.isObject() && withImage(in.path, func(o *input.Object) error { return need.Begin(o.Object, o.Machine) }) == nil {
			break
		}
	}
	return need
}

// withImage calls a function with an ELF file.
func withImage(path string, call func(*input.Object) error) error {
	f, err := input.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	o, err := f.Source().Image()
	if err != nil {
		return err
	}
	return call(o)
}

// addLibrary takes in what a shared library defines.
func addLibrary(need *stubs.Requirements, file string) error {
	f, err := input.Open(file)
	if err != nil {
		return nil // the linker knows why
	}
	defer f.Close()
	o, err := f.Source().Image()
	if err != nil {
		return err
	}
	return need.Add(o.Object, nil)
}

// neededAgain returns words for shared libraries that have providers of what a link lacks. GNU ld
// drops a library of --as-needed that nothing before it refers to.
func (l *link) neededAgain(need *stubs.Requirements, inputs []*linkInput) (words []string) {
	if l.linker.hasName("gold") || l.linker.hasName("lld") || l.linker.hasName("mold") {
		return nil
	}
	for _, in := range inputs {
		has := false
		if in.isShared() && in.word != "" {
			_ = withImage(in.path, func(o *input.Object) (err error) { // the linker knows what is wrong with it
				has, err = need.ProvidersOf(o.Object)
				return err
			})
		}
		if has {
			words = append(words, in.word)
		}
	}
	return words
}

// reportUnknown warns of probes that may be misspelt, or refuses the link for them.
func (l *link) reportUnknown(probes []stubs.Unknown) error {
	var errs []error
	for _, p := range probes {
		err := fmt.Errorf("%s: nothing defines %s, and the link defines other probes of %s; correct the name or define the probe", p.File, p.Object, p.Provider)
		if !l.NoUndefinedProbes {
			message.Warning(l.Stderr, err)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// object returns the object of what a link lacks.
func (l *link) object(need *stubs.Requirements) ([]byte, error) {
	if err := l.reportUnknown(need.Unknown()); err != nil {
		return nil, err
	}
	return need.Object()
}

// needsCollector collects the needs of objects that are about to be converted, from several
// goroutines.
type needsCollector struct {
	options patch.Options
	mu      sync.Mutex
	needs   map[string]*probeNeeds
}

// add adds an object. Members of archives are read anew: those that are not converted count too.
func (c *needsCollector) add(obj *input.Object, plan *patch.Plan) error {
	if obj.Source.Member != nil {
		return nil
	}
	p := newNeeds(c.options)
	err := p.add(c.options, obj, plan.Scan)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needs[obj.Source.Name] = p
	return err
}

// take returns the needs of a file.
func (c *needsCollector) take(file string) *probeNeeds {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.needs[file]
	delete(c.needs, file)
	return p
}
