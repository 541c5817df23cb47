package patch

import (
	"debug/elf"
	"slices"

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

	keeps map[stubIn]linkerset.Ref // a record of each stub in each section, for loads

	semaphores tracers.Symbols
	tests      map[string]uint32 // the symbols of helpers that load semaphores, by their names
}

// Apply queues a plan in an edit of the same object, which is to be saved before it is
// applied to another. A plan with refusals panics. What the edit is saved as needs the plan
// until it was written.
func (p *Plan) Apply(e *elfreloc.Edit) error {
	if len(p.Refused) > 0 {
		panic("patch: a plan with refusals is applied")
	}
	if len(p.Scan.Stubs)+p.semaphores.Len() == 0 {
		return nil
	}
	if p.edited && p.Sites.Len() == 0 { // -G has to find its stubs again
		return nil
	}
	p.emptyUnconverted(e)
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
	for from := 0; from < p.Sites.Len(); {
		to := from
		for to < p.Sites.Len() && p.Sites.target(to) == p.Sites.target(from) {
			to++
		}
		if err := a.section(from, to); err != nil {
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
	if p.Sites.Len() == 0 {
		return nil
	}
	if err := p.addAliases(e); err != nil {
		return err
	}
	none := p.Scan.Machine.Traits().None
	a := &applier{p: p, o: p.Scan.Object, m: p.Scan.Machine, e: e} // for what has a target
	for s := range p.Sites.All() {
		if s.Reloc.Type == none {
			continue // of an earlier run
		}
		e.Patch(s.Relocs.Target, elfreloc.Patch{Offset: s.Change.Site.Offset, Old: s.Change.Site.Code, New: s.Change.New})
		if s.Change.Target != arch.TargetNone {
			if err := a.release(&s, linkerset.Ref{}); err != nil {
				return err
			}
			continue
		}
		setRelocation(e, &s.Reference, s.Index, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none, Sym: s.Reloc.Sym})
		for j := range s.Paired {
			setRelocation(e, &s.Reference, s.Index+1+j, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none})
		}
	}
	return p.retireStubs(e)
}

// section disables the sites of one text section, those from an index up to another, and
// records them.
func (a *applier) section(from, to int) error {
	sites := &a.p.Sites
	rs := sites.At(from).Relocs
	a.e.PatchEach(rs.Target, to-from, func(i int) elfreloc.Patch {
		s := &sites.all[from+i]
		before, after := sites.bytes(s)
		return elfreloc.Patch{Offset: s.offset, Old: before, New: after}
	})
	var keep [arch.Kinds]linkerset.KeepAlive
	for kind := range arch.Kinds {
		of := sites.among(from, to, func(i int) bool { return sites.kind(i) == kind })
		if of.len == 0 {
			continue
		}
		records, err := a.records(kind, of)
		if err != nil {
			return err
		}
		if !a.p.Options.NoRecords {
			keep[kind] = a.p.Options.Layout.Add(a.e, a.m, *rs, kind, of.len, records.at)
		}
		if a.notes != nil && kind == arch.Probe {
			if err := a.note(of, records); err != nil {
				return err
			}
		}
		for i := range of.len {
			if a.isUsual(of.at(i)) {
				continue
			}
			s := sites.At(of.at(i))
			if err := a.release(&s, keep[kind].Ref(i)); err != nil {
				return err
			}
		}
	}
	a.neutraliseUsual(from, to, keep)
	return nil
}

// neutraliseUsual makes the relocations of the usual sites of a section refer to their
// records. They may be in several sections of relocations.
func (a *applier) neutraliseUsual(from, to int, keep [arch.Kinds]linkerset.KeepAlive) {
	sites := &a.p.Sites
	var done []uint32
	for i := from; i < to; i++ {
		rel := sites.call(&sites.all[i]).rel
		if slices.Contains(done, rel) {
			continue
		}
		done = append(done, rel)
		n := &neutral{sites: sites, none: a.m.Traits().None, keep: keep}
		n.of = sites.among(from, to, func(i int) bool { return sites.call(&sites.all[i]).rel == rel && a.isUsual(i) })
		a.e.SetEachRelocation(sites.calls.rels[rel], n.of.len, n.at)
	}
}

// isUsual reports whether a site has a relocation of its own alone, which is not needed
// once the site is disabled, and stays.
func (a *applier) isUsual(i int) bool {
	return !a.p.Options.DropRelocations && a.p.Sites.needsNoRelocation(i)
}

// neutral makes relocations of usual sites, which refer to records and change no bytes.
type neutral struct {
	sites *Sites
	none  uint32 // the type of relocation that does so
	keep  [arch.Kinds]linkerset.KeepAlive
	of    some
}

func (n *neutral) at(i int) elfreloc.RelocationEntry {
	index := n.of.at(i)
	s := &n.sites.all[index]
	call, keep := n.sites.call(s), n.keep[n.sites.kind(index)].Ref(int(s.number))
	return elfreloc.RelocationEntry{Index: call.index, Relocation: elfreloc.Relocation{Offset: call.offset, Type: n.none, Sym: keep.Sym, Addend: keep.Addend}}
}

// release turns the relocation of a site into what its disabled form needs, or else into
// a reference to its record that changes no bytes.
func (a *applier) release(s *Site, keep linkerset.Ref) error {
	c := &s.Change
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
	setRelocation(a.e, &s.Reference, s.Index, elfreloc.Relocation{Offset: c.Reloc.Offset, Type: c.Reloc.Type, Sym: to, Addend: c.Reloc.Addend})
	if c.Target == arch.TargetThunk {
		if err := a.listReturn(a.e.SectionSymbol(s.Relocs.Target), c.Site.Offset); err != nil {
			return err
		}
	}
	if c.Low != nil {
		low := elfreloc.Relocation{Offset: c.Low.Offset, Type: c.Low.Type, Sym: a.label(s.Relocs.Target, c.Record), Addend: c.Low.Addend}
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
			a.e.Patch(l.Relocs.Target, elfreloc.Patch{Offset: l.Site.Offset, Old: l.Site.Code, New: l.New})
		}
		if l.Unshared {
			keep := a.keeps[stubIn{l.Relocs.Target, l.Stub}]
			a.neutralise(&l.Reference, l.Index, elfreloc.Relocation{
				Offset: l.Reloc.Offset, Type: a.m.Traits().None, Sym: keep.Sym, Addend: keep.Addend,
			})
		}
	}
}

func (a *applier) neutralise(r *Reference, index int, none elfreloc.Relocation) {
	if a.p.Options.DropRelocations {
		a.e.DeleteRelocation(*r.Relocs, index)
	} else {
		setRelocation(a.e, r, index, none)
	}
}

// setRelocation replaces a relocation in the section of a reference.
func setRelocation(e *elfreloc.Edit, r *Reference, index int, to elfreloc.Relocation) {
	e.SetRelocations(*r.Relocs, elfreloc.RelocationEntry{Index: index, Relocation: to})
}

// label makes a symbol at a site where linkers delete bytes before it. It is
// local, and by its name nothing that anyone would show: linkers, addr2line and
// objdump would take a global symbol for the function from there on, and
// loaders, which keep local labels out of their tables, would too.
func (a *applier) label(section int, off uint64) uint32 {
	return a.e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_site", Bind: elf.STB_LOCAL, Section: section, Value: off})
}

// records are those of sites of one kind and one section.
type records struct {
	sites  *Sites
	of     some
	finder *probeFinder
	locals []uint32 // where in finder.refs the local probe objects are, by record; nil if there are none
	text   uint32   // symbol of the section
	labels uint32   // the first symbol of a site, where records need such; the others follow
}

// records returns the records of sites. With Options.NoRecords, they name no probes: only notes
// need them then, and of them only their sites.
func (a *applier) records(kind arch.Kind, sites some) (*records, error) {
	r := &records{sites: &a.p.Sites, of: sites, finder: a.probes}
	noRecords := a.p.Options.NoRecords
	if noRecords && (a.notes == nil || kind != arch.Probe) {
		return r, nil
	}
	section := a.p.Sites.target(sites.at(0))
	if a.m.Traits().Relaxes {
		for i := range sites.len {
			if sym := a.label(section, a.p.Sites.all[sites.at(i)].recorded()); i == 0 {
				r.labels = sym
			}
		}
	} else {
		r.text = a.e.SectionSymbol(section)
	}
	if noRecords {
		return r, nil
	}
	for i := range sites.len {
		at, local, err := a.probes.probe(sites.at(i))
		if err != nil {
			return nil, err
		}
		if local && r.locals == nil {
			r.locals = make([]uint32, sites.len)
		}
		if local {
			r.locals[i] = at
		}
	}
	return r, nil
}

// at returns record i.
func (r *records) at(i int) linkerset.Record {
	s := &r.sites.all[r.of.at(i)]
	at := r.finder.global[r.sites.call(s).stub]
	if at == 0 {
		at = r.locals[i]
	}
	return linkerset.Record{Probe: r.finder.refs[at], Site: r.site(i)}
}

// site returns what record i says of its site.
func (r *records) site(i int) linkerset.Ref {
	if r.labels > 0 {
		return linkerset.Ref{Sym: r.labels + uint32(i)}
	}
	return linkerset.Ref{Sym: r.text, Addend: int64(r.sites.all[r.of.at(i)].recorded())}
}
