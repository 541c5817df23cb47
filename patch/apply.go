package patch

import (
	"debug/elf"

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

// applyDOF queues a plan that has Options.DOF.
func (p *Plan) applyDOF(e *elfreloc.Edit) error {
	if len(p.Sites) == 0 {
		return nil
	}
	if err := p.addAliases(e); err != nil {
		return err
	}
	none := p.Scan.Machine.Traits().None
	a := &applier{p: p, o: p.Scan.Object, m: p.Scan.Machine, e: e} // for what has a target
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Reloc.Type == none {
			continue // of an earlier run
		}
		if s.Change.Target != arch.TargetNone {
			if err := a.disable(s, linkerset.Ref{}); err != nil {
				return err
			}
		} else {
			a.patches = append(a.patches, elfreloc.Patch{Offset: s.Change.Site.Offset, Old: s.Change.Site.Code, New: s.Change.New})
			a.setRelocation(s.Index, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none, Sym: s.Reloc.Sym})
			for j := range s.Paired {
				a.setRelocation(s.Index+1+j, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none})
			}
		}
		a.flush(s.Relocs)
	}
	return p.retireStubs(e)
}

// section disables the sites of one text section and records them.
func (a *applier) section(sites []Site) error {
	a.patches = make([]elfreloc.Patch, 0, len(sites))
	a.relocs = make([]elfreloc.RelocationEntry, 0, len(sites))
	defer a.flush(sites[0].Relocs)
	for kind := range arch.Kinds {
		of := sitesOf(sites, kind)
		if len(of) == 0 {
			continue
		}
		records, err := a.records(kind, of)
		if err != nil {
			return err
		}
		keep := linkerset.KeepAlive{}
		if !a.p.Options.NoRecords {
			if keep, err = a.p.Options.Layout.Add(a.e, a.m, *sites[0].Relocs, kind, records); err != nil {
				return err
			}
		}
		if a.notes != nil && kind == arch.Probe {
			if err := a.note(of, records); err != nil {
				return err
			}
		}
		for i, s := range of {
			if err := a.disable(s, keep.Ref(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sitesOf returns those of a kind. Mostly these are all.
func sitesOf(sites []Site, kind arch.Kind) (of []*Site) {
	for i := range sites {
		if sites[i].Stub.Kind != kind {
			continue
		}
		if of == nil {
			of = make([]*Site, 0, len(sites)-i)
		}
		of = append(of, &sites[i])
	}
	return of
}

// flush queues the changes of a section and its relocations.
func (a *applier) flush(rs *elfreloc.RelocSection) {
	a.e.Patch(rs.Target, a.patches...)
	a.e.SetRelocations(*rs, a.relocs...)
	a.patches, a.relocs = nil, nil
}

// records returns the records of sites of one kind and one section, as far as anything
// will tell of them: without records of probes, notes have the sites alone.
func (a *applier) records(kind arch.Kind, sites []*Site) ([]linkerset.Record, error) {
	noRecords := a.p.Options.NoRecords
	if noRecords && (a.notes == nil || kind != arch.Probe) {
		return nil, nil
	}
	records := make([]linkerset.Record, len(sites))
	for i, s := range sites {
		if a.m.Traits().Relaxes {
			records[i].Site = linkerset.Ref{Sym: a.label(s)}
		} else {
			records[i].Site = linkerset.Ref{Sym: a.e.SectionSymbol(s.Relocs.Target), Addend: int64(s.Change.Record)}
		}
	}
	if noRecords {
		return records, nil
	}
	for i, s := range sites {
		var err error
		if records[i].Probe, err = a.probes.probe(s); err != nil {
			return nil, err
		}
	}
	return records, nil
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
		a.neutralise(s.Reference, s.Index+1+i, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none.Type})
	}
	if c.Target == arch.TargetNone {
		a.neutralise(s.Reference, s.Index, none)
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
			a.neutralise(l.Reference, l.Index, elfreloc.Relocation{
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

// label makes a symbol at a site where linkers delete bytes before it. It is
// local, and by its name nothing that anyone would show: linkers, addr2line and
// objdump would take a global symbol for the function from there on, and
// loaders, which keep local labels out of their tables, would too.
func (a *applier) label(s *Site) uint32 {
	return a.e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_site", Bind: elf.STB_LOCAL, Section: s.Relocs.Target, Value: s.Change.Record})
}
