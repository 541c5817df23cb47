// Package patch finds the calls of probe stubs in an object, plans their
// disabled forms, and applies the plan.
//
// A plan is made completely before anything is changed: either every site of
// an object can be disabled, or none is, and all that stands in the way is
// reported at once.
//
// Begin with Convert, or with Examine to see the plan: its Sites and what is Refused.
// Find, NewPlan and Plan.Apply are the steps of both, for callers that need one alone.
//
// Offsets and sizes are in bytes. Errors are of type *elfreloc.Error. What comes of an
// object serves one goroutine at a time, as the object does; several goroutines may
// work on several objects, with the same Options.
package patch

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/resolve"
)

// Stub is a function that stands for a probe: a symbol of an object, mostly undefined.
type Stub struct {
	Symbol  uint32 // its index
	Name    string
	Kind    arch.Kind
	ID      string // of the probe: Name without its prefix
	Defined bool   // in this object, which keeps it
}

// Refusal is a reference that cannot be converted.
type Refusal struct {
	*Reference
	Err error // an *arch.Refusal, or what else is wrong; without the place
}

// Scan is what an object says of its probes.
type Scan struct {
	Object   *elfreloc.Object
	Machine  arch.Machine // nil for one that is not known
	Settings Settings     // for this object
	Stubs    []*Stub      // in the order of their symbols
	Calls    []Reference  // from code: calls, loads of a stub's address, marked NOPs; sorted by section and offset
	Refused  []Refusal    // from other sections that are loaded
	guards   []guard      // in the order of their symbols

	// ReturnsThroughThunk reports that the object itself refers to the
	// machine's return thunk.
	ReturnsThroughThunk bool

	stubTexts [][]byte // of Options
	namesStub *bool    // once NamesStub has looked
	limits    limits
	functions *resolve.Table // once Functions has made it
	image     image.Image    // once Image has opened it
}

// NewScan returns the scan of an object that is not read yet. m is nil for a machine that is not known. What the
// options leave to the object is decided here, once.
func NewScan(o *elfreloc.Object, m arch.Machine, opts Options) *Scan {
	return &Scan{Object: o, Machine: m, Settings: opts.Decide(o), stubTexts: opts.StubTexts(), limits: newLimits(o)}
}

// NamesStub reports whether the name of a stub, or of a guard that may have to be converted, occurs among the names of symbols. In
// most objects none does; then Examine only looks at records and notes that are there.
func (s *Scan) NamesStub() (bool, error) {
	if s.namesStub == nil {
		found, err := s.Object.NamesContain(s.stubTexts)
		if err != nil {
			return false, err
		}
		s.namesStub = &found
	}
	return *s.namesStub, nil
}

// Find finds the stubs of a relocatable object, and their references. m is nil for a machine that is not known. A stub that is
// a local symbol, and relocations in a format that is not supported, are errors: calls might be missed.
func Find(o *elfreloc.Object, m arch.Machine, opts Options) (*Scan, error) {
	s := NewScan(o, m, opts)
	if err := s.find(); err != nil {
		return nil, err
	}
	return s, nil
}

// find reads the symbols, and the relocations of what is loaded.
func (s *Scan) find() error {
	o := s.Object
	if named, err := s.NamesStub(); err != nil || !named {
		return err
	}
	if _, err := o.Symbols(); err != nil {
		return err
	}
	if s.Settings.Notes {
		if err := s.findGuards(); err != nil {
			return err
		}
	}
	if err := s.findStubs(newMatcher(s.Settings.Names)); err != nil {
		return err
	}
	if len(s.Stubs) == 0 {
		return nil
	}
	for i := range o.Sections {
		sec := &o.Sections[i]
		if target := int(sec.Info); sec.UnknownRelocations() && target < len(o.Sections) && o.Sections[target].Flags&elf.SHF_ALLOC != 0 {
			return o.SectionError(i, fmt.Errorf("relocations of unknown type %#x apply to %s", uint32(sec.Type), o.Sections[target].Name))
		}
	}
	rels, err := o.RelocSections()
	if err != nil {
		return err
	}
	stubs, wanted := make(map[uint32]*Stub, len(s.Stubs)), make([]bool, s.symbols().Len())
	for _, stub := range s.Stubs {
		stubs[stub.Symbol], wanted[stub.Symbol] = stub, true
	}
	for i := range rels {
		if err := s.findReferences(&rels[i], stubs, wanted); err != nil {
			return err
		}
	}
	sortStable(s.Calls, func(a, b *Reference) int { return a.addr().Compare(b.addr()) })
	return nil
}

func (s *Scan) findStubs(m *matcher) error {
	syms := s.symbols()
	if s.Machine != nil && s.Machine.Traits().ReturnThunk.Symbol != "" {
		for range syms.Named(s.Machine.Traits().ReturnThunk.Symbol) {
			s.ReturnsThroughThunk = true
			break
		}
	}
	var used []bool // by relocations, once it is needed
	for i, sym := range syms.WithPrefix(m.common) {
		name := sym.Name
		kind, id, ok := m.match(name)
		if !ok {
			continue
		}
		if sym.Section != 0 && sym.Type != elf.STT_FUNC && sym.Type != elf.STT_NOTYPE && sym.Type != elf.STT_GNU_IFUNC {
			continue // it is something else that is defined here
		}
		if i < syms.FirstGlobal() {
			if used == nil && sym.Section == 0 {
				var err error
				if used, err = s.usedSymbols(); err != nil {
					return err
				}
			}
			if sym.Section == 0 && !used[i] {
				continue // ld -r --gc-sections leaves it of code that it has dropped
			}
			return &elfreloc.Error{File: s.Object.Name, Err: fmt.Errorf(
				"stub %q is a local symbol, so calls of it may have no relocation; declare it extern", name)}
		}
		if err := s.limits.stub(s.Object, name); err != nil {
			return err
		}
		s.Stubs = append(s.Stubs, &Stub{Symbol: uint32(i), Name: name, Kind: kind, ID: id, Defined: sym.Section != 0})
	}
	return nil
}

// usedSymbols returns which symbols relocations name.
func (s *Scan) usedSymbols() ([]bool, error) {
	used := make([]bool, s.symbols().Len())
	rels, err := s.Object.RelocSections()
	for i := 0; i < len(rels) && err == nil; i++ {
		err = s.Object.EachRelocation(rels[i], func(_ int, r elfreloc.Relocation) error {
			used[r.Sym] = true
			return nil
		})
	}
	return used, err
}

// symbols returns the symbols of the object, which find has read.
func (s *Scan) symbols() *elfreloc.Symbols {
	syms, _ := s.Object.Symbols()
	return syms
}

// fixAddress is what to do about a reference other than a call.
const fixAddress = "do not take the stub's address"

// findReferences finds the references to stubs among the relocations of a section.
func (s *Scan) findReferences(rs *elfreloc.RelocSection, stubs map[uint32]*Stub, wanted []bool) error {
	target := &s.Object.Sections[rs.Target]
	code, references, data := target.Executable(), uint64(0), error(nil)
	if target.Flags&elf.SHF_ALLOC == 0 && !code || !code && s.isUnwindTable(target) {
		return nil
	}
	return s.Object.EachRelocationAgainst(*rs, wanted, func(i int, r elfreloc.Relocation) error {
		stub := stubs[r.Sym]
		if err := s.limits.reference(s.Object, rs, stub); err != nil {
			return err
		}
		if stub == nil {
			if code { // and at the same place as the last call
				last := &s.Calls[len(s.Calls)-1]
				last.Paired = append(last.Paired, r)
			}
			return nil
		}
		if references++; references > target.Size/leastSize+1 {
			return s.Object.SectionError(rs.Index, fmt.Errorf("more than %d references to stubs in %d bytes", references-1, target.Size))
		}
		if code {
			if references > 32 && len(s.Calls) == cap(s.Calls) { // as many calls are expected among those left
				s.Calls = slices.Grow(s.Calls, 1+int(uint64(rs.Len-i)*references/uint64(i+1)))
			}
			s.Calls = append(s.Calls, Reference{Relocs: rs, Index: i, Reloc: r, Stub: stub})
			return nil
		}
		if data == nil { // all references from a section share it
			data = arch.RefuseStored(s.fixData(target), "")
		}
		s.Refused = append(s.Refused, Refusal{&Reference{Relocs: rs, Index: i, Reloc: r, Stub: stub}, data})
		return nil
	})
}

// fixData returns what to do about a reference from a section of data.
func (s *Scan) fixData(sec *elfreloc.Section) string {
	if s.Machine != nil {
		if t := s.Machine.Traits(); t.Pool != "" && sec.Name == t.Pool {
			return t.PoolFix
		}
	}
	return fixAddress
}

// isUnwindTable reports whether a section describes functions to unwinders. It
// may name a stub, and never calls one.
func (s *Scan) isUnwindTable(sec *elfreloc.Section) bool {
	c := machines.Conventions(s.Object.ABI())
	return sec.Name == ".eh_frame" || sec.Name == ".sframe" || slices.Contains(c.UnwindTypes, sec.Type) ||
		slices.ContainsFunc(c.UnwindNames, func(prefix string) bool { return strings.HasPrefix(sec.Name, prefix) })
}

// mappings returns what mapping symbols say of the sections that hold calls.
func (s *Scan) mappings() map[int][]arch.Mapping {
	maps := map[int][]arch.Mapping{}
	last := 0 // the section of the last call
	for i := range s.Calls {
		if target := s.Calls[i].Relocs.Target; target != last {
			maps[target], last = nil, target
		}
	}
	for at, letter := range s.symbols().Mappings(s.Machine.Traits().Mapping) {
		if m, ok := maps[at.Section]; ok {
			maps[at.Section] = append(m, arch.Mapping{Offset: at.Offset, Encoding: arch.Encoding(letter)})
		}
	}
	for _, m := range maps {
		sortStable(m, compareMappings)
	}
	return maps
}

// Unsupported returns the error of an object that calls stubs, of a machine that is not
// known.
func (s *Scan) Unsupported() error {
	return &elfreloc.Error{File: s.Object.Name, Err: fmt.Errorf("holds probes, and %s is not supported", machines.Unsupported(s.Object.ABI()))}
}

// maxAttributes is the size of the largest build attributes in bytes. They are read for each
// site, and compilers write some 50 bytes.
const maxAttributes = 4096

// attributes returns the object's build attributes, where sites depend on them.
func (s *Scan) attributes() ([]byte, error) {
	typ := s.Machine.Traits().Attributes
	if typ == elf.SHT_NULL {
		return nil, nil
	}
	i := slices.IndexFunc(s.Object.Sections, func(sec elfreloc.Section) bool { return sec.Type == typ })
	if i < 0 {
		return nil, nil
	}
	if size := s.Object.Sections[i].Size; size > maxAttributes {
		return nil, s.Object.SectionError(i, fmt.Errorf("has %d bytes, and build attributes at most %d", size, maxAttributes))
	}
	return s.Object.Data(i)
}

// compareMappings sorts by offset. At equal offsets code is behind data: the piece before is empty, and the last entry
// counts.
func compareMappings(a, b *arch.Mapping) int {
	switch {
	case a.Offset != b.Offset:
		return cmp.Compare(a.Offset, b.Offset)
	case (a.Encoding == arch.Data) == (b.Encoding == arch.Data):
		return 0
	case a.Encoding == arch.Data:
		return -1
	}
	return 1
}

// Functions returns the object's table of functions, made once.
func (s *Scan) Functions() (*resolve.Table, error) {
	if s.functions == nil {
		t, err := resolve.New(s.Object, resolve.Options{})
		if err != nil {
			return nil, err
		}
		s.functions = t
	}
	return s.functions, nil
}

// FunctionAt returns the function with a symbol that holds a place; ok is false if there is none.
func (s *Scan) FunctionAt(section int, off uint64) (f resolve.Function, ok bool, err error) {
	functions, err := s.Functions()
	if err != nil {
		return f, false, err
	}
	f, ok = functions.Lookup(section, off)
	return f, ok && f.Symbol != 0, nil
}

// Image returns the object as an image, opened once. The machine must not be nil.
func (s *Scan) Image() (image.Image, error) {
	if s.image == nil {
		im, err := image.Open(s.Object, s.Machine)
		if err != nil {
			return nil, err
		}
		s.image = im
	}
	return s.image, nil
}

// GuardPrefix begins the names of the semaphores that guards of include/sdt.h define and read. The id of the probe
// follows. A conversion with notes gives them the names that tracers expect, which a preprocessor cannot make.
const GuardPrefix = "__dtrace_semaphore_"

// guard is the symbol of a semaphore that guards read.
type guard struct {
	Symbol uint32 // its index
	ID     string // of the probe
}

// findGuards finds the semaphores of guards.
func (s *Scan) findGuards() error {
	for i, sym := range s.symbols().WithPrefix(GuardPrefix) {
		if id := sym.Name[len(GuardPrefix):]; id != "" {
			if err := s.limits.stub(s.Object, sym.Name); err != nil {
				return err
			}
			s.guards = append(s.guards, guard{uint32(i), id})
		}
	}
	return nil
}

// Reference is a relocation against a stub in a section that is loaded. It applies to
// Reloc.Offset of section Relocs.Target.
type Reference struct {
	Relocs *elfreloc.RelocSection
	Index  int                   // of the relocation in Relocs
	Reloc  elfreloc.Relocation   // the relocation itself
	Paired []elfreloc.Relocation // the relocations behind it, at the same offset
	Stub   *Stub
}

// addr returns the address of the relocated field.
func (r *Reference) addr() elfreloc.Addr {
	return elfreloc.Addr{Section: r.Relocs.Target, Offset: r.Reloc.Offset}
}

// hasMarks reports whether a reference of code is a relocation that does nothing, as it marks
// NOPs.
func (s *Scan) hasMarks() bool {
	none := s.Machine.Traits().None
	return slices.ContainsFunc(s.Calls, func(r Reference) bool { return r.Reloc.Type == none })
}
