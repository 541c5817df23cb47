package patch

import (
	"debug/elf"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
	"sdtconvert/patch/internal/tracers"
)

// applier queues a plan in an edit.
type applier struct {
	p      *Plan
	o      *elfreloc.Object
	m      arch.Machine
	e      *elfreloc.Edit
	probes *probeFinder
	notes  *tracers.Writer // nil when there are to be none
	thunk  *uint32         // symbol of the return thunk, once it is needed
	helper *uint32         // symbol of the helper or of its section, once it is needed

	patches []elfreloc.Patch           // of the section whose sites are disabled
	relocs  []elfreloc.RelocationEntry // and of its relocations

	keeps map[stubIn]linkerset.Ref // a record of each stub in each section, for loads

	semaphores tracers.Symbols
	tests      map[string]uint32 // the symbols of helpers that load semaphores, by their names
}

// Apply queues a plan in an edit of the same object, which is to be saved before it is
// applied to another. A plan with refusals panics.
func (p *Plan) Apply(e *elfreloc.Edit) error {
	if len(p.Refused) > 0 {
		panic("patch: a plan with refusals is applied")
	}
	if len(p.Scan.Stubs)+p.semaphores.Len() == 0 {
		return nil
	}
	if p.edited && len(p.Sites) == 0 { // -G has to find its stubs again
		return nil
	}
	if p.Options.DOF != nil {
		return p.applyDOF(e)
	}
	probes, err := newProbeFinder(p, e)
	if err != nil {
		return err
	}
	a := &applier{
		p: p, o: p.Scan.Object, m: p.Scan.Machine, e: e, probes: probes,
		keeps: map[stubIn]linkerset.Ref{}, tests: map[string]uint32{},
	}
	if a.semaphores, err = p.semaphores.Add(e); err != nil {
		return err
	}
	if p.Options.HasNotes() {
		known, err := p.probes()
		if err != nil {
			return err
		}
		a.notes = tracers.NewWriter(known, e, func(err error) { p.Warnings = append(p.Warnings, err) })
	}
	for from := 0; from < len(p.Sites); {
		to := from
		for to < len(p.Sites) && p.Sites[to].Relocs.Target == p.Sites[from].Relocs.Target {
			to++
		}
		if err := a.section(p.Sites[from:to]); err != nil {
			return err
		}
		from = to
	}
	a.loads()
	if a.notes != nil {
		a.notes.Finish()
	}
	probes.retireStubs()
	return nil
}

// section disables the sites of one text section and records them.
func (a *applier) section(sites []Site) error {
	a.patches = make([]elfreloc.Patch, 0, len(sites))
	a.relocs = make([]elfreloc.RelocationEntry, 0, len(sites))
	defer a.flush(sites[0].Relocs)
	for kind := range arch.Kinds {
		var of []*Site
		for i := range sites {
			if sites[i].Stub.Kind == kind {
				of = append(of, &sites[i])
			}
		}
		if len(of) == 0 {
			continue
		}
		at := a.places(kind, of)
		keep, err := a.record(kind, of, at)
		if err != nil {
			return err
		}
		if a.notes != nil && kind == arch.Probe {
			if err := a.note(of, at); err != nil {
				return err
			}
		}
		for i, s := range of {
			if err := a.disable(s, keep[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush queues the changes of a section and its relocations.
func (a *applier) flush(rs *elfreloc.RelocSection) {
	a.e.Patch(rs.Target, a.patches...)
	a.e.SetRelocations(*rs, a.relocs...)
	a.patches, a.relocs = nil, nil
}

// places returns what names the recorded address of each site of one kind and one
// section, as far as a record or a note will tell it.
func (a *applier) places(kind arch.Kind, sites []*Site) []linkerset.Ref {
	if a.p.Options.NoRecords && (a.notes == nil || kind != arch.Probe) {
		return nil
	}
	at := make([]linkerset.Ref, len(sites))
	for i, s := range sites {
		if a.m.Traits().Relaxes {
			at[i] = linkerset.Ref{Sym: a.label(s)}
		} else {
			at[i] = linkerset.Ref{Sym: a.e.SectionSymbol(s.Relocs.Target), Addend: int64(s.Change.Record)}
		}
	}
	return at
}

// record writes the records of sites of one kind and one section, and returns
// what the text has to refer to in order to keep each alive.
func (a *applier) record(kind arch.Kind, sites []*Site, at []linkerset.Ref) ([]linkerset.Ref, error) {
	if a.p.Options.NoRecords {
		return make([]linkerset.Ref, len(sites)), nil
	}
	records := make([]linkerset.Record, len(sites))
	for i, s := range sites {
		probe, err := a.probes.probe(s)
		if err != nil {
			return nil, err
		}
		records[i] = linkerset.Record{Probe: probe, Site: at[i]}
	}
	return a.p.Options.Layout.Add(a.e, a.m, *sites[0].Relocs, kind, records)
}

// disable overwrites one site, and turns its relocation into a reference to
// its record that changes no bytes.
func (a *applier) disable(s *Site, keep linkerset.Ref) error {
	c := &s.Change
	a.patches = append(a.patches, elfreloc.Patch{Offset: c.Site.Offset, Old: c.Site.Code, New: c.New})
	if c.Site.Register {
		a.keeps[stubIn{s.Relocs.Target, s.Stub}] = keep
	}
	if s.Shared {
		return nil
	}
	none := elfreloc.Relocation{Offset: s.Reloc.Offset, Type: a.m.Traits().None, Sym: keep.Sym, Addend: keep.Addend}
	for i := range s.Paired {
		// A linker has nothing left to relax here.
		a.neutralise(&s.Reference, s.Index+1+i, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none.Type})
	}
	if c.Target == arch.TargetNone {
		a.neutralise(&s.Reference, s.Index, none)
		return nil
	}
	to, err := a.target(s)
	if err != nil {
		return err
	}
	a.setRelocation(s.Index, elfreloc.Relocation{Offset: c.Reloc.Offset, Type: c.Reloc.Type, Sym: to, Addend: c.Reloc.Addend})
	if c.Target == arch.TargetThunk {
		if err := a.listReturn(a.e.SectionSymbol(s.Relocs.Target), c.Site.Offset); err != nil {
			return err
		}
	}
	if c.Low != nil {
		low := elfreloc.Relocation{Offset: c.Low.Offset, Type: c.Low.Type, Sym: a.label(s), Addend: c.Low.Addend}
		if err := a.e.AddRelocation(s.Relocs.Target, low); err != nil {
			return err
		}
	}
	if a.p.Options.DropRelocations || a.p.Options.NoRecords {
		return nil
	}
	return a.e.AddRelocation(s.Relocs.Target, none)
}

// stubIn is a section that reaches a stub.
type stubIn struct {
	section int
	stub    *Stub
}

// loads overwrites the loads of addresses that no call uses any more.
func (a *applier) loads() {
	for i := range a.p.Loads {
		l := &a.p.Loads[i]
		if l.New != nil {
			a.patches = append(a.patches, elfreloc.Patch{Offset: l.Site.Offset, Old: l.Site.Code, New: l.New})
		}
		if l.Unshared {
			keep := a.keeps[stubIn{l.Relocs.Target, l.Stub}]
			a.neutralise(&l.Reference, l.Index, elfreloc.Relocation{
				Offset: l.Reloc.Offset, Type: a.m.Traits().None, Sym: keep.Sym, Addend: keep.Addend,
			})
		}
		a.flush(l.Relocs)
	}
}

func (a *applier) neutralise(s *Reference, index int, none elfreloc.Relocation) {
	if a.p.Options.DropRelocations {
		a.e.DeleteRelocation(*s.Relocs, index)
	} else {
		a.setRelocation(index, none)
	}
}

func (a *applier) setRelocation(index int, r elfreloc.Relocation) {
	a.relocs = append(a.relocs, elfreloc.RelocationEntry{Index: index, Relocation: r})
}

// target returns the symbol that a retargeted jump goes to.
func (a *applier) target(s *Site) (uint32, error) {
	switch s.Change.Target {
	case arch.TargetThunk:
		return a.thunkSymbol()
	case arch.TargetSemaphore:
		sym, _ := a.semaphores.Lookup(s.Stub.ID)
		return sym, nil
	case arch.TargetTest:
		return a.test(s)
	}
	if a.helper == nil {
		sec, size, err := a.addHelper(helperSection, s.Relocs.Rela, nil, arch.Stub{Kind: arch.Enabled, Thunk: a.p.Thunk})
		if err != nil {
			return 0, err
		}
		sym := a.e.SectionSymbol(sec)
		if a.m.Traits().CodeMark != "" {
			sym = a.e.AddSymbol(elfreloc.Symbol{Name: helperName, Bind: elf.STB_LOCAL, Type: elf.STT_FUNC, Section: sec, Size: size})
		}
		a.helper = &sym
	}
	return *a.helper, nil
}

// helperName is what the helper is called where it has a symbol, and helperSection is its
// section.
const (
	helperName    = "__sdt_return_0"
	helperSection = ".text." + helperName
)

// IsHelper reports whether a name is one that conversions give to helpers, the functions
// that disabled is-enabled tests go to. Some helpers have no symbol.
func IsHelper(name string) bool {
	return name == helperName || strings.HasPrefix(name, testPrefix)
}

// addHelper adds a section with the code of a helper, which is that of a stub and the
// mark, and returns it and its size. symbols are those that the code names, but for the
// return thunk.
func (a *applier) addHelper(name string, rela bool, symbols map[string]uint32, s arch.Stub) (sec int, size uint64, err error) {
	t := a.m.Traits()
	var code []byte
	var insns []arch.Insn // those with relocations, which are from the start of the code
	for _, insn := range a.m.Stub(s) {
		if insn.Reloc != nil {
			r := *insn.Reloc
			r.Offset += uint64(len(code))
			insns = append(insns, arch.Insn{Symbol: insn.Symbol, Reloc: &r})
		}
		code = append(code, insn.Code...)
	}
	code = append(code, t.HelperMark.Code...)
	sec = a.e.AddSection(elfreloc.NewSection{
		Name: name, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Align: t.HelperAlign,
		Data: code, Relocs: len(insns) > 0, Rela: rela,
	})
	if t.CodeMark != "" {
		a.e.AddSymbol(elfreloc.Symbol{Name: t.CodeMark, Bind: elf.STB_LOCAL, Section: sec})
	}
	for _, insn := range insns {
		r := insn.Reloc
		sym, ok := symbols[insn.Symbol]
		if !ok {
			if sym, err = a.thunkSymbol(); err != nil {
				return 0, 0, err
			}
			if err := a.listReturn(a.e.SectionSymbol(sec), r.Offset-t.ReturnThunk.Field); err != nil {
				return 0, 0, err
			}
		}
		if err := a.e.AddRelocation(sec, elfreloc.Relocation{Offset: r.Offset, Type: r.Type, Sym: sym, Addend: r.Addend}); err != nil {
			return 0, 0, err
		}
	}
	return sec, uint64(len(code)), nil
}

// testPrefix is what the helpers are called that load semaphores, before the name of the
// probe.
const testPrefix = "__sdt_enabled_"

// test returns the symbol of the helper that loads the semaphore of a site's probe, which
// is added once for an object.
func (a *applier) test(s *Site) (uint32, error) {
	semaphore, name := a.semaphores.Lookup(s.Stub.ID)
	name = testPrefix + name
	if sym := a.tests[name]; sym != 0 {
		return sym, nil
	}
	t := a.m.Traits()
	sym := a.e.AddSymbol(elfreloc.Symbol{Name: name, Bind: elf.STB_LOCAL, Type: elf.STT_FUNC})
	sec, size, err := a.addHelper(".text."+name, s.Relocs.Rela, map[string]uint32{semaphoreSymbol: semaphore, selfSymbol: sym}, arch.Stub{
		Kind: arch.Enabled, LandingPad: (t.Veneers || a.p.indirect) && t.Features.LandingPad != 0, Thunk: a.p.Thunk, Semaphore: semaphoreSymbol, Self: selfSymbol,
	})
	function := a.e.Symbol(sym)
	function.Section, function.Size = sec, size
	a.e.SetSymbol(sym, function)
	a.tests[name] = sym
	return sym, err
}

// What a helper is told that symbols are called, which it names in relocations alone. No
// return thunk is called so.
const (
	semaphoreSymbol = "\x00semaphore"
	selfSymbol      = "\x00self"
)

// thunkSymbol finds the return thunk, or makes an undefined symbol for it.
func (a *applier) thunkSymbol() (uint32, error) {
	if a.thunk != nil {
		return *a.thunk, nil
	}
	syms, err := a.o.Symbols()
	if err != nil {
		return 0, err
	}
	sym := uint32(0)
	for i, s := range syms.WithPrefix(a.p.Thunk) {
		if i >= syms.FirstGlobal() && s.Name == a.p.Thunk {
			sym = uint32(i)
			break
		}
	}
	if sym == 0 {
		sym = a.e.AddSymbol(elfreloc.Symbol{Name: a.p.Thunk, Bind: elf.STB_GLOBAL})
	}
	a.thunk = &sym
	return sym, nil
}

// listReturn lists a new jump to the return thunk where the others are listed, if they
// are.
func (a *applier) listReturn(sym uint32, off uint64) error {
	list := a.m.Traits().ReturnThunk.Sites
	for i := range a.o.Sections {
		if list == "" || a.o.Sections[i].Name != list {
			continue
		}
		field := make([]byte, 4)
		if !a.m.Traits().Rela {
			a.o.Encoding.Order.PutUint32(field, uint32(off))
		}
		at := a.e.Append(i, field)
		if err := linkerset.AddDistance(a.e, a.m, i, at, linkerset.Ref{Sym: sym, Addend: int64(off)}); err != nil {
			return err
		}
	}
	return nil
}

// label makes a symbol at a site where linkers delete bytes before it. It is
// local, and by its name nothing that anyone would show: linkers, addr2line and
// objdump would take a global symbol for the function from there on, and
// loaders, which keep local labels out of their tables, would too.
func (a *applier) label(s *Site) uint32 {
	return a.e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_site", Bind: elf.STB_LOCAL, Section: s.Relocs.Target, Value: s.Change.Record})
}
