package patch

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// applier queues a plan in an edit.
type applier struct {
	p      *Plan
	o      *elfreloc.Object
	m      arch.Machine
	e      *elfreloc.Edit
	probes *probeFinder
	notes  *noteWriter // nil when there are to be none
	thunk  *uint32     // symbol of the return thunk, once it is needed
	helper *uint32     // symbol of the helper's section, once it is needed
}

// Apply queues a plan in an edit of the same object, which is to be saved before it is
// applied to another. A plan with refusals panics.
func (p *Plan) Apply(e *elfreloc.Edit) error {
	if len(p.Refused) > 0 {
		panic("patch: a plan with refusals is applied")
	}
	if len(p.Scan.Stubs) == 0 {
		return nil
	}
	probes, err := newProbeFinder(p, e)
	if err != nil {
		return err
	}
	a := &applier{p: p, o: p.Scan.Object, m: p.Scan.Machine, e: e, probes: probes}
	if p.Options.Stapsdt {
		if a.notes, err = newNoteWriter(p, e); err != nil {
			return err
		}
	}
	for from := 0; from < len(p.Sites); {
		to := from
		for to < len(p.Sites) && p.Sites[to].Relocs.Target == p.Sites[from].Relocs.Target {
			to++
		}
		e.Reserve(*p.Sites[from].Relocs, to-from)
		if err := a.section(p.Sites[from:to]); err != nil {
			return err
		}
		from = to
	}
	probes.retireStubs()
	return nil
}

// section disables the sites of one text section and records them.
func (a *applier) section(sites []Site) error {
	for _, kind := range []arch.Kind{arch.Probe, arch.Enabled} {
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
	a.e.Patch(s.Relocs.Target, c.Site.Offset, c.Site.Code, c.New)
	none := elfreloc.Relocation{Offset: s.Reloc.Offset, Type: a.m.Traits().None, Sym: keep.Sym, Addend: keep.Addend}
	for i := range s.Paired {
		// A linker has nothing left to relax here.
		a.neutralise(s, s.Index+1+i, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none.Type})
	}
	if c.Target == arch.TargetNone {
		a.neutralise(s, s.Index, none)
		return nil
	}
	to, err := a.target(s)
	if err != nil {
		return err
	}
	a.e.SetRelocation(*s.Relocs, s.Index, elfreloc.Relocation{Offset: c.Reloc.Offset, Type: c.Reloc.Type, Sym: to, Addend: c.Reloc.Addend})
	if c.Target == arch.TargetThunk {
		if err := a.listReturn(a.e.SectionSymbol(s.Relocs.Target), c.Site.Offset); err != nil {
			return err
		}
	}
	if a.p.Options.DropRelocations || a.p.Options.NoRecords {
		return nil
	}
	return a.e.AddRelocation(s.Relocs.Target, none)
}

func (a *applier) neutralise(s *Site, index int, none elfreloc.Relocation) {
	if a.p.Options.DropRelocations {
		a.e.DeleteRelocation(*s.Relocs, index)
	} else {
		a.e.SetRelocation(*s.Relocs, index, none)
	}
}

// target returns the symbol that a retargeted jump goes to.
func (a *applier) target(s *Site) (uint32, error) {
	if s.Change.Target == arch.TargetThunk {
		return a.thunkSymbol(), nil
	}
	env := arch.Env{ReturnThunk: a.p.Thunk != ""}
	if a.helper != nil {
		return *a.helper, nil
	}
	h := a.m.Helper(env)
	sec := a.e.AddSection(elfreloc.NewSection{
		Name: h.Section, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Align: h.Align,
		Data: h.Code, Relocs: h.Thunk != nil, Rela: s.Relocs.Rela,
	})
	sym := a.e.SectionSymbol(sec)
	a.helper = &sym
	if h.Thunk == nil {
		return sym, nil
	}
	r := elfreloc.Relocation{Offset: h.Thunk.Offset, Type: h.Thunk.Type, Sym: a.thunkSymbol(), Addend: h.Thunk.Addend}
	if err := a.e.AddRelocation(sec, r); err != nil {
		return 0, err
	}
	return sym, a.listReturn(sym, h.Thunk.Offset-1)
}

// thunkSymbol finds the return thunk, or makes an undefined symbol for it.
func (a *applier) thunkSymbol() uint32 {
	if a.thunk == nil {
		sym := a.probes.global(a.p.Thunk)
		if sym == 0 {
			sym = a.e.AddSymbol(elfreloc.Symbol{Name: a.p.Thunk, Bind: elf.STB_GLOBAL})
		}
		a.thunk = &sym
	}
	return *a.thunk
}

// returnSites is where objtool lists the jumps to the return thunk, which the
// Linux kernel patches at boot: a PC-relative 32-bit distance for each.
const returnSites = ".return_sites"

// listReturn lists a new jump to the return thunk where objtool has listed the
// others.
func (a *applier) listReturn(sym uint32, off uint64) error {
	for i := range a.o.Sections {
		if a.o.Sections[i].Name != returnSites {
			continue
		}
		at := a.e.Append(i, make([]byte, 4))
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
