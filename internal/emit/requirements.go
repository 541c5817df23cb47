package emit

// Requirements find out what a link of objects with probes still needs, and
// write the object that has it: probe objects with their providers, for probes
// that no source defines, and functions for stubs that are not converted.
//
// Definitions are weak, so that a real one, in an object that was not given, wins.
//
//   - Probe objects and providers have the visibility of the references to them:
//     default, which leaves that of a real definition as it is, and hidden where a
//     reference is, as those of relative records are. Linkers give a symbol the
//     most constrained visibility of all objects, so a hidden definition here
//     would take the probe objects of a library away from the programs that fire
//     its probes.
//   - Stub functions are hidden, as include/sdt.h declares stubs: each program and
//     library has its own.
//   - Entries of linker sets name the definition here by its section. So a reader
//     does not meet a real definition twice, but one more probe that has no site.
//
// Each probe is in a COMDAT group of its own, with its entry in the linker set, as
// those of DTRACE_PROBE are: two such objects in one link define it once, and
// with --gc-sections it goes when its last record goes.

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// RequirementsOptions say what probes are called.
type RequirementsOptions struct {
	patch.Options
	// Converted says that no call of a stub is left in the link, so that none needs
	// a function.
	Converted bool
	// Hidden says that records can only name what the program itself defines.
	Hidden bool
}

// Requirements are what a link needs, of the objects that were added.
type Requirements struct {
	opts    RequirementsOptions
	empty   *elfreloc.Object // of the ABI of the first object
	machine arch.Machine     // nil for one that is not known
	notes   LinkNotes
	thunk   string

	stubs    map[string]arch.Kind     // undefined in some object
	probes   map[string]*missingProbe // by the name of the probe object
	defined  map[string]bool          // by an object: stubs, probe objects and providers; false if the link may leave it out
	sources  map[string]bool          // providers of which a source defines a probe
	exported map[string]bool          // by a shared library: probe objects and providers

	references []string // symbols that the object refers to, besides
}

// missingProbe is a probe that some object uses.
type missingProbe struct {
	object string // its name
	id     string
	user   string // the first file that uses it
	hidden bool   // some reference is
}

// NewRequirements needs nothing yet.
func NewRequirements(opts RequirementsOptions) *Requirements {
	opts.ProbePrefix = cmp.Or(opts.ProbePrefix, patch.DefaultProbePrefix)
	return &Requirements{
		opts: opts, stubs: map[string]arch.Kind{}, probes: map[string]*missingProbe{},
		defined: map[string]bool{}, sources: map[string]bool{}, exported: map[string]bool{},
	}
}

// providerPrefix is what the name of a provider's object begins with (SDT(9)).
const providerPrefix = "sdt_provider_"

// Add takes in a relocatable object, or what a shared library exports. All are
// of one machine. They may be closed afterwards.
func (n *Requirements) Add(o *elfreloc.Object, m arch.Machine) error { return n.AddScan(o, m, nil) }

// AddScan is Add with what patch.Find has found in a relocatable object, or nil.
func (n *Requirements) AddScan(o *elfreloc.Object, m arch.Machine, scan *patch.Scan) error {
	if o.Type == elf.ET_DYN {
		return n.addExports(o)
	}
	if err := n.Begin(o, m); err != nil {
		return err
	}
	if err := n.notes.Add(o, m); err != nil {
		return err
	}
	if scan == nil {
		texts := append(n.opts.Names.StubTexts(), []byte(n.opts.ProbePrefix), []byte(providerPrefix))
		if found, err := o.NamesContain(texts); err != nil || !found {
			return err
		}
	}
	syms, err := o.Symbols()
	if err != nil {
		return err
	}
	uses := n.addSymbols(syms)
	if err := n.addCalls(o, scan, uses.hidden); err != nil {
		return err
	}
	if len(uses.hidden) == 0 && !uses.hasNew {
		return nil // the records say nothing new
	}
	return n.addRecords(o, uses.hidden)
}

// Merge takes in what another has taken in.
func (n *Requirements) Merge(added *Requirements) {
	if n.empty == nil {
		n.empty, n.machine = added.empty, added.machine
	}
	if n.thunk == "" {
		n.thunk = added.thunk
	}
	n.notes.merge(&added.notes)
	maps.Copy(n.stubs, added.stubs)
	for name, linked := range added.defined {
		n.defined[name] = n.defined[name] || linked
	}
	maps.Copy(n.sources, added.sources)
	maps.Copy(n.exported, added.exported)
	for name, p := range added.probes {
		n.addProbe(name, p.id, p.user, map[string]bool{name: p.hidden})
	}
}

// MergeOptional is Merge for what a linker may leave out of the link: members of archives. A linker
// that has left them out may not look for their definitions again.
func (n *Requirements) MergeOptional(added *Requirements) {
	optional := *added
	optional.defined = map[string]bool{}
	for name := range added.defined {
		optional.defined[name] = false
	}
	n.Merge(&optional)
}

// Missing reports whether probes lack a definition.
func (n *Requirements) Missing() bool { return len(n.missing()) > 0 }

// Objects returns the names of the probe objects that lack a definition.
func (n *Requirements) Objects() (names []string) {
	for _, p := range n.missing() {
		names = append(names, p.object)
	}
	return names
}

// Refer has the object refer to symbols, so that a link keeps them.
func (n *Requirements) Refer(names []string) { n.references = append(n.references, names...) }

// Used returns the names of the probe objects that are used.
func (n *Requirements) Used() []string { return slices.Collect(maps.Keys(n.probes)) }

// ProvidersOf reports whether a shared library has a provider of a probe that lacks a definition.
func (n *Requirements) ProvidersOf(library *elfreloc.Object) (bool, error) {
	exports := NewRequirements(n.opts)
	if err := exports.addExports(library); err != nil {
		return false, err
	}
	for _, p := range n.missing() {
		provider, _ := linkerset.SplitID(p.id)
		if object := providerPrefix + provider; !n.defined[object] && exports.exported[object] {
			return true, nil
		}
	}
	return false, nil
}

// HasMachine reports whether an object was added, which tells the machine.
func (n *Requirements) HasMachine() bool { return n.empty != nil }

// ErrNoObject says that there is no object to take the machine from.
var ErrNoObject = errors.New("no relocatable object is given, so the machine is not known")

// Begin takes the ABI of an object, if it is the first.
func (n *Requirements) Begin(o *elfreloc.Object, m arch.Machine) (err error) {
	if n.empty != nil {
		return nil
	}
	if m != nil {
		thunk, r := m.Traits().Thunk(n.opts.ReturnThunk)
		if r != nil {
			return &elfreloc.Error{File: o.Name, Err: fmt.Errorf("%s is %s; %s", m.Traits().Name, r.Reason, r.Hint)}
		}
		n.thunk = thunk
	}
	n.machine = m
	n.empty, err = o.Empty("")
	return err
}

// AddLTO takes in a global symbol of a file whose code is generated later: a stub that the code
// will call, or a definition.
func (n *Requirements) AddLTO(file, name string, defined bool) {
	if defined {
		n.addDefined(name, true)
		return
	}
	if _, id, ok := n.opts.Names.Match(name); ok {
		n.addProbe(n.opts.ProbePrefix+id, id, file, nil)
	}
}

// addExports takes in what a shared library defines for others.
func (n *Requirements) addExports(o *elfreloc.Object) error {
	// A linker opens libraries of its own, too, some with a hundred thousand names.
	found, err := o.DynamicNamesContain([][]byte{[]byte(n.opts.ProbePrefix), []byte(providerPrefix)})
	if err != nil || !found {
		return err
	}
	syms, err := o.DynamicSymbols()
	if err != nil {
		return err
	}
	for i := max(1, syms.FirstGlobal()); i < syms.Len(); i++ {
		if name := syms.Name(i); n.isObject(name) && syms.At(i).Section != 0 {
			n.exported[name] = true
		}
	}
	return nil
}

// isObject reports whether a symbol's name is one of a probe object or a provider.
func (n *Requirements) isObject(name string) bool {
	return strings.HasPrefix(name, n.opts.ProbePrefix) || strings.HasPrefix(name, providerPrefix)
}

// symbolUses are the probe objects that symbols of an object may be of.
type symbolUses struct {
	hasNew bool            // some were not met before
	hidden map[string]bool // those that the object hides; nil for none
}

// addSymbols takes in what a relocatable object defines, and of which providers it defines
// probes. Weak definitions come with a use, those of DTRACE_PROBE and of Requirements.Object, and say
// nothing of other names.
func (n *Requirements) addSymbols(syms *elfreloc.Symbols) (u symbolUses) {
	for i := max(1, syms.FirstGlobal()); i < syms.Len(); i++ {
		name := syms.Name(i)
		if !n.isObject(name) {
			continue
		}
		s := syms.At(i)
		if v := s.Visibility(); v == elf.STV_HIDDEN || v == elf.STV_INTERNAL {
			if u.hidden == nil {
				u.hidden = map[string]bool{}
			}
			u.hidden[name] = true
		}
		if s.Section <= 0 { // a common symbol's place is not known yet
			u.hasNew = u.hasNew || n.probes[name] == nil
		}
		if s.Section == 0 {
			continue
		}
		n.addDefined(name, s.Bind == elf.STB_GLOBAL)
	}
	return u
}

// addDefined takes in a definition. One that is strong is a source's.
func (n *Requirements) addDefined(name string, strong bool) {
	n.defined[name] = true
	id, ok := strings.CutPrefix(name, n.opts.ProbePrefix)
	if provider, _, hasName := strings.Cut(id, "___"); ok && hasName && strong {
		n.sources[provider] = true
	}
}

// UnknownProbe is a probe that nothing in a link defines, though a source in it defines others
// of its provider: its name may be misspelt.
type UnknownProbe struct {
	File     string // the first that uses it
	Object   string // the name of its probe object
	Provider string
}

// Unknown returns such probes, sorted by the name of the probe object.
func (n *Requirements) Unknown() (unknown []UnknownProbe) {
	for _, p := range n.missing() {
		if provider, _, ok := strings.Cut(p.id, "___"); ok && n.sources[provider] {
			unknown = append(unknown, UnknownProbe{p.user, p.object, provider})
		}
	}
	return unknown
}

// addCalls takes in the stubs of an object, and the probes whose sites a
// conversion would record. The object hides some of the symbols of probe objects.
func (n *Requirements) addCalls(o *elfreloc.Object, scan *patch.Scan, hidden map[string]bool) error {
	if scan == nil {
		var err error
		if scan, err = patch.Find(o, n.machine, n.opts.Options); err != nil {
			return err
		}
	}
	if len(scan.Stubs) == 0 {
		return nil
	}
	if n.machine == nil {
		return scan.Unsupported()
	}
	if n.thunk == "" && scan.ReturnsThroughThunk {
		n.thunk = n.machine.Traits().ReturnThunk.Symbol
	}
	for _, s := range scan.Stubs {
		if s.Defined {
			n.defined[s.Name] = true
		} else if !n.opts.Converted {
			n.stubs[s.Name] = s.Kind
		}
	}
	objects, err := scan.ProbeObjects()
	if err != nil {
		return err
	}
	add := func(s *patch.Stub) {
		if !objects.Local(s) {
			n.addProbe(objects.Name(s), s.ID, o.Name, hidden)
		}
	}
	for _, ref := range scan.Calls {
		add(ref.Stub)
	}
	for i := range scan.Refused {
		add(scan.Refused[i].Stub)
	}
	return nil
}

// addProbe takes in a probe of a file, which hides some of the symbols of probe objects.
func (n *Requirements) addProbe(object, id, user string, hidden map[string]bool) {
	p := n.probes[object]
	if p == nil {
		p = &missingProbe{object: object, id: id, user: user, hidden: n.opts.Hidden}
		n.probes[object] = p
	}
	p.hidden = p.hidden || hidden[object]
}

// addRecords takes in the probes that the records of a conversion refer to. The object
// hides some of the symbols of probe objects.
func (n *Requirements) addRecords(o *elfreloc.Object, hidden map[string]bool) error {
	if n.machine == nil {
		return nil // then it is not converted
	}
	im, err := image.Open(o, n.machine)
	if err != nil {
		return err
	}
	add := func(e *linkerset.Entry, fault *linkerset.Fault) error {
		if fault != nil {
			return fault
		}
		if !e.Probe.Undefined {
			return nil
		}
		return n.addRecord(o, e, hidden)
	}
	for _, l := range n.opts.Layout.Candidates() {
		if err := l.Each(im, add); err != nil {
			return err
		}
	}
	return nil
}

func (n *Requirements) addRecord(o *elfreloc.Object, e *linkerset.Entry, hidden map[string]bool) error {
	id, ok := strings.CutPrefix(e.Probe.Symbol, n.opts.ProbePrefix)
	if !ok || id == "" {
		return o.OffsetError(e.Record.Section, e.Record.Offset, fmt.Errorf("a record of %q, which is not the name of a probe object; see --probe-object-prefix", e.Probe.Symbol))
	}
	n.addProbe(e.Probe.Symbol, id, o.Name, hidden)
	return nil
}
