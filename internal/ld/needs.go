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
	"sdtconvert/internal/emit"
	"sdtconvert/internal/input"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// probeNeeds is what the probes of a file need of a link.
type probeNeeds struct {
	definitions *emit.Requirements
	hasRecords  bool             // of an earlier conversion with the flags of this one
	conflicts   []error          // records of an earlier conversion with other flags
	err         error            // why the file cannot be read
	kinds       [arch.Kinds]bool // of sites that the link has records of

	// ltoDefinitions are names in intermediate code, and whether it defines them: it only uses the others, which
	// are of probe objects.
	ltoDefinitions map[string]bool
}

func stubOptions(o patch.Options) emit.RequirementsOptions {
	return emit.RequirementsOptions{
		Options: o, Converted: true, Hidden: o.Layout.Format == linkerset.Relative,
	}
}

// newNeeds returns the needs of no file yet.
func newNeeds(o patch.Options) *probeNeeds {
	return &probeNeeds{definitions: emit.NewRequirements(stubOptions(o))}
}

// readNeeds returns the needs of an object, or of the members of an archive.
func readNeeds(o patch.Options, file string) *probeNeeds {
	p := newNeeds(o)
	f, err := input.Open(file)
	if err != nil {
		p.err = err
		return p
	}
	defer f.Close()
	p.err = f.Each(input.Options{FollowThin: true}, func(src *input.Source) error {
		if typ, err := src.Type(); err != nil || typ != input.ELFFile {
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

// mergeNeeds returns the needs of parts of a file. Some may be nil; if all are, so is the result.
func mergeNeeds(o patch.Options, parts ...*probeNeeds) *probeNeeds {
	parts = slices.DeleteFunc(parts, func(p *probeNeeds) bool { return p == nil })
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	merged := newNeeds(o)
	for _, p := range parts {
		merged.definitions.Merge(p.definitions)
		merged.hasRecords = merged.hasRecords || p.hasRecords
		merged.conflicts = append(merged.conflicts, p.conflicts...)
		for kind, has := range p.kinds {
			merged.kinds[kind] = merged.kinds[kind] || has
		}
		if merged.ltoDefinitions == nil {
			merged.ltoDefinitions = p.ltoDefinitions
		}
		merged.err = errors.Join(merged.err, p.err)
	}
	return merged
}

// add adds an object. scan is what patch.Find has found in it, or an empty scan if the object is known to name probes. If scan
// is nil, add looks for names of probes first.
func (p *probeNeeds) add(o patch.Options, obj *input.Object, scan *patch.Scan) error {
	if scan == nil {
		if named, err := obj.NamesContain(probeTexts(o)); err != nil || !named {
			return err
		}
	}
	checked := scan
	if checked == nil {
		checked = patch.NewScan(obj.Object, obj.Machine, o)
	}
	hasRecords, err := checked.CheckEarlier()
	switch {
	case err == nil:
		p.hasRecords = p.hasRecords || hasRecords
	case obj.Source.Member != nil:
		p.conflicts = []error{err} // one for all members
	default:
		p.conflicts = append(p.conflicts, err)
	}
	p.addKinds(obj, checked)
	return p.definitions.AddScan(obj.Object, obj.Machine, scan)
}

// addLTO adds the symbols of a source that the linker generates code of. obj is the object that has them, nil for
// bitcode. The linker takes no machine code of it.
func (p *probeNeeds) addLTO(o patch.Options, file string, obj *input.Object, symbols []lto.Symbol) error {
	if obj != nil {
		if err := p.definitions.Begin(obj.Object, obj.Machine); err != nil {
			return err
		}
	}
	if p.ltoDefinitions == nil {
		p.ltoDefinitions = map[string]bool{}
	}
	for _, s := range symbols {
		if kind, id, ok := o.Names.Match(s.Name); ok {
			p.kinds[kind] = true
			if object := o.ProbePrefix + id; !s.Defined && !p.ltoDefinitions[object] {
				p.ltoDefinitions[object] = false
			}
		}
		if s.Defined {
			p.ltoDefinitions[s.Name] = true
		}
		p.definitions.AddLTO(file, s.Name, s.Defined)
	}
	return nil
}

// ltoReferences returns the probe objects which intermediate code defines and, once it is converted,
// records refer to. Without a reference they are dropped with all else that nothing refers to.
func ltoReferences(files []*servedFile) (names []string) {
	used, defined := map[string]bool{}, map[string]bool{}
	for _, p := range allNeeds(files) {
		for name, isDefined := range p.ltoDefinitions {
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

// addKinds adds the kinds of sites that an object has records of: those that the scan has found, and those of an
// earlier conversion, in the layout of the object's target.
func (p *probeNeeds) addKinds(obj *input.Object, scan *patch.Scan) {
	for _, ref := range scan.Calls {
		p.kinds[ref.Stub.Kind] = true
	}
	for i := range obj.Sections {
		if kind, ok := scan.Settings.Layout.IsRecordSection(&obj.Sections[i]); ok {
			p.kinds[kind] = true
		}
	}
}

// allNeeds returns the needs of the files that have any.
func allNeeds(files []*servedFile) (needs []*probeNeeds) {
	for _, f := range files {
		if f.needs != nil {
			needs = append(needs, f.needs)
		}
	}
	return needs
}

// requirements returns what the link of some files lacks, nil for nothing, and the flags that the linker gets.
// It refuses records that do not go together. converts says that files are converted for this link.
func (l *link) requirements(files []*servedFile, converts bool) (lacking *emit.Requirements, flags []string, err error) {
	needs := allNeeds(files)
	if err := checkAgreement(needs, converts); err != nil {
		return nil, nil, err
	}
	if err := l.checkPrefixes(files); err != nil {
		return nil, nil, err
	}
	if !l.Convert.Patch.NoRecords {
		flags = boundFlags(l.layout(), needs)
	}
	lacking, err = l.lackingDefinitions(files)
	return lacking, flags, err
}

// checkAgreement refuses files that cannot be read, and records that do not go together. Records of earlier
// conversions that are all alike go together, whatever the flags are, if nothing is converted now.
func checkAgreement(needs []*probeNeeds, converts bool) error {
	var errs, conflicts []error
	isMixed := converts
	for _, p := range needs {
		if p.err != nil {
			errs = append(errs, p.err)
		}
		isMixed = isMixed || p.hasRecords
		for _, conflict := range p.conflicts {
			conflicts = append(conflicts, conflict)
			isMixed = isMixed || cause(conflict) != cause(conflicts[0])
		}
	}
	if isMixed {
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

// lackingDefinitions returns what the link of some files lacks, or nil.
func (l *link) lackingDefinitions(files []*servedFile) (*emit.Requirements, error) {
	if l.NoStubs || l.Convert.Patch.NoRecords {
		return nil, nil
	}
	lacking := emit.NewRequirements(stubOptions(l.Convert.Patch))
	for _, f := range files {
		switch {
		case f.needs == nil:
		case f.isOptional || f.isArchive():
			lacking.MergeOptional(f.needs.definitions)
		default:
			lacking.Merge(f.needs.definitions)
		}
	}
	if lacking.Missing() && !lacking.HasMachine() { // of bitcode alone
		lacking.Merge(l.machineOf(files))
	}
	for _, f := range files {
		if !lacking.Missing() {
			return nil, nil
		}
		if !f.isShared() {
			continue
		}
		if err := addLibrary(lacking, f.path); err != nil {
			return nil, err
		}
	}
	if !lacking.Missing() {
		return nil, nil
	}
	return lacking, nil
}

// machineOf returns requirements of nothing, with the machine of the first object among some files.
func (l *link) machineOf(files []*servedFile) *emit.Requirements {
	machine := emit.NewRequirements(stubOptions(l.Convert.Patch))
	for _, f := range files {
		if f.isObject() && withImage(f.path, func(o *input.Object) error { return machine.Begin(o.Object, o.Machine) }) == nil {
			break
		}
	}
	return machine
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

// addLibrary adds what a shared library defines to requirements.
func addLibrary(lacking *emit.Requirements, file string) error {
	f, err := input.Open(file)
	if err != nil {
		return nil // the linker reports it
	}
	defer f.Close()
	o, err := f.Source().Image()
	if err != nil {
		return err
	}
	return lacking.Add(o.Object, nil)
}

// librariesToRepeat returns the arguments that lead to shared libraries with providers of what a link lacks. GNU
// ld drops a library of --as-needed that nothing before it refers to.
func (l *link) librariesToRepeat(lacking *emit.Requirements, files []*servedFile) (arguments []string) {
	if l.linker.family != gnu {
		return nil
	}
	for _, f := range files {
		hasProvider := false
		if f.isShared() && f.argument != "" {
			_ = withImage(f.path, func(o *input.Object) (err error) { // the linker reports what is wrong with it
				hasProvider, err = lacking.ProvidersOf(o.Object)
				return err
			})
		}
		if hasProvider {
			arguments = append(arguments, f.argument)
		}
	}
	return arguments
}

// reportUnknown warns of probes that may be misspelt, or refuses the link for them.
func (l *link) reportUnknown(probes []emit.UnknownProbe) error {
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

// needsCollector collects the needs of objects that are about to be converted, from several
// goroutines.
type needsCollector struct {
	options patch.Options
	mu      sync.Mutex
	needs   map[string]map[int64]*probeNeeds // by the path of a file, and where objects begin in it
}

// add adds an object, or a member of an archive.
func (c *needsCollector) add(obj *input.Object, plan *patch.Plan) error {
	if len(plan.Scan.Stubs) == 0 { // it may have definitions
		if named, err := obj.NamesContain(probeTexts(c.options)); err != nil || !named {
			return err
		}
	}
	p := newNeeds(c.options)
	err := p.add(c.options, obj, plan.Scan)
	c.mu.Lock()
	defer c.mu.Unlock()
	path := obj.Source.File.Path
	if c.needs[path] == nil {
		c.needs[path] = map[int64]*probeNeeds{}
	}
	c.needs[path][obj.Source.Start] = p
	return err
}

// take returns the needs of a file, nil if nothing of it was about to be converted.
func (c *needsCollector) take(file string) *probeNeeds {
	c.mu.Lock()
	objects := c.needs[file]
	delete(c.needs, file)
	c.mu.Unlock()
	var parts []*probeNeeds
	for _, start := range slices.Sorted(maps.Keys(objects)) {
		parts = append(parts, objects[start])
	}
	return mergeNeeds(c.options, parts...)
}
