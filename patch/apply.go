package patch

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"

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
	notes  *noteWriter     // nil when there are to be none
	tables *functionWriter // of functions; nil when there are to be none
	thunk  uint32          // symbol of the return thunk, 0 until it is needed
	helper uint32          // symbol of the helper or of its section, 0 until it is needed

	anchors map[stubInSection]linkerset.SymbolRef // a record of each stub in each section, for loads

	tests map[string]uint32 // the symbols of helpers that load semaphores, by their names
}

// Apply queues a plan in an edit of its own object. It is called once for an Edit, and the plan has no refusals.
func (p *Plan) Apply(e *elfreloc.Edit) error {
	if p.changesNothing() {
		return nil
	}
	// Its probes are converted now: an image is to show only those that no conversion has met.
	for i := range p.Scan.Object.Sections {
		if p.Scan.Object.Sections[i].Name == UnconvertedSection && len(p.Sites) > 0 && p.Scan.hasMarks() {
			e.Empty(i)
		}
	}
	if err := p.disableSites(e); err != nil || p.Scan.Settings.Also == nil {
		return err
	}
	return p.Scan.Settings.Also(p, e)
}

// changesNothing reports whether an object is right as it is.
func (p *Plan) changesNothing() bool {
	return len(p.Scan.Stubs) == 0 && len(p.noted) == 0 && (p.semaphores == nil || len(p.semaphores.list) == 0) ||
		p.disabledByDTrace && len(p.Sites) == 0 // -G has to find its stubs again
}

// disableSites queues the sites of a plan, with their records and notes.
func (p *Plan) disableSites(e *elfreloc.Edit) error {
	if p.Scan.Settings.DTraceForms {
		return p.applyDTraceForms(e)
	}
	probes, err := newProbeFinder(p, e)
	if err != nil {
		return err
	}
	a := &applier{
		p: p, o: p.Scan.Object, m: p.Scan.Machine, e: e, probes: probes,
		anchors: map[stubInSection]linkerset.SymbolRef{}, tests: map[string]uint32{},
	}
	if err := p.semaphores.add(e); err != nil {
		return err
	}
	if p.Scan.Settings.hasNotes() {
		if a.notes, err = newNoteWriter(p, e); err != nil {
			return err
		}
	}
	if p.Scan.Settings.Functions {
		if a.tables, err = newFunctionWriter(a); err != nil {
			return err
		}
	}
	for sites := p.Sites; len(sites) > 0; {
		n := 1
		for n < len(sites) && sites[n].Relocs.Target == sites[0].Relocs.Target {
			n++
		}
		if err := a.disableSection(sites[:n]); err != nil {
			return err
		}
		sites = sites[n:]
	}
	if err := a.addNoted(e); err != nil {
		return err
	}
	if err := a.neutraliseLoads(); err != nil {
		return err
	}
	if a.notes != nil {
		a.notes.warnHidden()
	}
	probes.removeStubs()
	return nil
}

// patch overwrites a site with its disabled form.
func (s *Site) patch(e *elfreloc.Edit) error {
	return e.Patch(s.Relocs.Target, elfreloc.Patch{Offset: s.Change.Site.Offset, Old: s.Change.Site.Code, New: s.Change.New})
}

// disableSection disables the sites of one text section, and records them by kind.
func (a *applier) disableSection(sites []Site) error {
	for i := range sites {
		if err := sites[i].patch(a.e); err != nil {
			return err
		}
	}
	for kind := range arch.Kinds {
		ofKind := make([]*Site, 0, len(sites))
		for i := range sites {
			if sites[i].Stub.Kind == kind {
				ofKind = append(ofKind, &sites[i])
			}
		}
		if len(ofKind) > 0 {
			if err := a.recordSites(kind, ofKind); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordSites adds the records, the notes and the functions of the sites of one kind in a text section, and has
// their relocations keep these alive.
func (a *applier) recordSites(kind arch.Kind, sites []*Site) error {
	settings := &a.p.Scan.Settings
	var anchors linkerset.RecordAnchors
	isNoted := a.notes != nil && kind == arch.Probe
	if isNoted || a.tables != nil || !settings.NoRecords {
		records, err := a.makeRecords(sites)
		if err != nil {
			return err
		}
		if !settings.NoRecords {
			if anchors, err = settings.Layout.Add(a.e, a.m, *sites[0].Relocs, kind, records); err != nil {
				return err
			}
		}
		if isNoted {
			refs, err := a.notes.add(sites, records)
			if err := cmp.Or(err, a.keepAlive(sites[0], refs)); err != nil {
				return err
			}
		}
		if a.tables != nil {
			refs, err := a.tables.add(kind, sites, records, anchors)
			if err := cmp.Or(err, a.keepAlive(sites[0], refs)); err != nil {
				return err
			}
		}
	}
	if !settings.DropRelocations {
		a.e.GrowRelocations(*sites[0].Relocs, len(sites))
	}
	for i, s := range sites {
		if err := a.retargetRelocation(s, anchors.At(i)); err != nil {
			return err
		}
	}
	return nil
}

// keepAlive has the text section of a site refer to what describes its sites.
func (a *applier) keepAlive(s *Site, refs []linkerset.SymbolRef) error {
	if a.p.Scan.Settings.DropRelocations {
		return nil
	}
	for _, ref := range refs {
		if err := a.e.AddRelocation(s.Relocs.Target, a.noneRelocation(s.Reference, ref)); err != nil {
			return err
		}
	}
	return nil
}

// makeRecords returns the records of sites in one text section. With Settings.NoRecords they name
// no probes: notes need their sites alone.
func (a *applier) makeRecords(sites []*Site) ([]linkerset.Record, error) {
	records, section := make([]linkerset.Record, len(sites)), sites[0].Relocs.Target
	for i, s := range sites {
		records[i].Site = a.codeRef(section, s.Change.RecordedOffset)
	}
	if a.p.Scan.Settings.NoRecords {
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

// codeRef returns what fields refer to that name a place in code.
func (a *applier) codeRef(section int, off uint64) linkerset.SymbolRef {
	if a.m.Traits().Relaxes {
		return linkerset.SymbolRef{Sym: a.addLabel(section, off)}
	}
	return linkerset.SymbolRef{Sym: a.e.SectionSymbol(section), Addend: int64(off)}
}

// retargetRelocation turns the relocation of a site into what its disabled form needs, or
// else into a reference to its record that changes no bytes.
func (a *applier) retargetRelocation(s *Site, anchor linkerset.SymbolRef) error {
	c := &s.Change
	if c.Site.Register {
		a.anchors[stubInSection{s.Relocs.Target, s.Stub}] = anchor
	}
	if s.SharesRelocation {
		return nil
	}
	for i := range s.Paired {
		// A linker has nothing left to relax here.
		a.neutralise(s.Reference, s.Index+1+i, linkerset.SymbolRef{})
	}
	if c.Target == arch.TargetNone {
		a.neutralise(s.Reference, s.Index, anchor)
		return nil
	}
	to, err := a.targetSymbol(s)
	if err != nil {
		return err
	}
	a.e.SetRelocation(*s.Relocs, s.Index, elfreloc.Relocation{Offset: c.Reloc.Offset, Type: c.Reloc.Type, Sym: to, Addend: c.Reloc.Addend})
	if c.Target == arch.TargetThunk {
		if err := a.listReturn(a.e.SectionSymbol(s.Relocs.Target), c.Site.Offset); err != nil {
			return err
		}
	}
	if c.Low != nil {
		low := elfreloc.Relocation{Offset: c.Low.Offset, Type: c.Low.Type, Sym: a.addLabel(s.Relocs.Target, c.RecordedOffset), Addend: c.Low.Addend}
		if err := a.e.AddRelocation(s.Relocs.Target, low); err != nil {
			return err
		}
	}
	if a.p.Scan.Settings.DropRelocations || a.p.Scan.Settings.NoRecords {
		return nil
	}
	return a.e.AddRelocation(s.Relocs.Target, a.noneRelocation(s.Reference, anchor))
}

// stubInSection is a section that reaches a stub.
type stubInSection struct {
	section int
	stub    *Stub
}

// neutraliseLoads overwrites the loads of stubs' addresses, which no call uses any more, and neutralises their
// relocations.
func (a *applier) neutraliseLoads() error {
	for i := range a.p.Loads {
		l := &a.p.Loads[i]
		if l.New != nil {
			if err := a.e.Patch(l.Relocs.Target, elfreloc.Patch{Offset: l.Site.Offset, Old: l.Site.Code, New: l.New}); err != nil {
				return err
			}
		}
		if l.OwnsRelocation {
			a.neutralise(l.Reference, l.Index, a.anchors[stubInSection{l.Relocs.Target, l.Stub}])
		}
	}
	return nil
}

// neutralise turns a relocation at the offset of a reference into R_*_NONE against the record of anchor, or deletes
// it (Settings.DropRelocations).
func (a *applier) neutralise(r *Reference, index int, anchor linkerset.SymbolRef) {
	if a.p.Scan.Settings.DropRelocations {
		a.e.DeleteRelocation(*r.Relocs, index)
	} else {
		a.e.SetRelocation(*r.Relocs, index, a.noneRelocation(r, anchor))
	}
}

// noneRelocation returns the relocation R_*_NONE at the offset of a reference. It changes no bytes, and keeps the
// record of anchor alive.
func (a *applier) noneRelocation(r *Reference, anchor linkerset.SymbolRef) elfreloc.Relocation {
	return elfreloc.Relocation{Offset: r.Reloc.Offset, Type: a.m.Traits().None, Sym: anchor.Sym, Addend: anchor.Addend}
}

// addLabel adds a symbol at a site, where linkers may delete bytes before it. It is local and its name begins with .L,
// so that linkers, loaders, addr2line and objdump do not take it for a function.
func (a *applier) addLabel(section int, off uint64) uint32 {
	return a.e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_site", Bind: elf.STB_LOCAL, Section: section, Value: off})
}

// signatureMagic ends the signature behind a module (Linux, module_signature.h).
const signatureMagic = "~Module signature appended~\n"

// copyTrailingBytes gives an output the padding that the object has. What else is behind the object
// is lost, of which it warns.
func copyTrailingBytes(o *elfreloc.Object, out *elfreloc.Output) (warning, err error) {
	lost := o.Size() - o.End()
	if lost <= 0 {
		return nil, nil
	}
	old, err := padding(o)
	if err != nil {
		return nil, err
	}
	if old != nil {
		// As LLVM's ar pads a member.
		if n := -out.Size & (memberPadding - 1); n > 0 {
			out.Extents = append(out.Extents, elfreloc.Extent{Data: bytes.Repeat([]byte("\n"), int(n)), Len: n})
			out.Size += n
		}
		return nil, nil
	}
	what := fmt.Sprintf("%d bytes behind the ELF file are dropped", lost)
	if n := int64(len(signatureMagic)); lost >= n {
		end, err := o.ReadFile(o.Size()-n, n)
		if err != nil {
			return nil, err
		}
		if string(end) == signatureMagic {
			what = "the module's signature is dropped, because it no longer fits; sign the module again"
		}
	}
	return &elfreloc.Error{File: o.Name, Err: errors.New(what)}, nil
}

// memberPadding is the multiple, in bytes, to which LLVM's ar pads members of archives for Darwin. The padding counts as
// contents.
const memberPadding = 8

// padding returns what pads a member behind the end of the object in it, or nil for something else.
func padding(o *elfreloc.Object) ([]byte, error) {
	n := o.Size() - o.End()
	if n <= 0 || n >= memberPadding || o.Size()%memberPadding != 0 {
		return nil, nil
	}
	b, err := o.ReadFile(o.End(), n)
	if len(bytes.Trim(b, "\n")) > 0 {
		b = nil
	}
	return b, err
}
