package patch

// `dtrace -G` disables sites in forms of its own, and records nothing: package internal/dtrace
// describes them. Relocations of such sites stay, as ones that do nothing, against symbols of their stubs'
// names.

import (
	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/dof"
	"sdtconvert/linkerset"
)

// decodeDTrace decodes a call, or one that an earlier run has disabled.
func (p *Plan) decodeDTrace(ref *Reference) func(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	m := p.Scan.Machine.(arch.DOFMachine)
	if ref.Reloc.Type != m.Traits().None {
		return m.Decode
	}
	return func(t arch.Text, _ []elfreloc.Relocation) (arch.Site, error) {
		site, ok := m.DisabledDOF(t, ref.Reloc.Offset, ref.Stub.Kind)
		if !ok {
			return site, arch.Refuse("compile it again, and if it includes sdt.h, with -DSDT_CALLS", "a mark of code that is not a site of an earlier dtrace -G")
		}
		return site, nil
	}
}

// disableForDTrace gives the form of a site that DTrace arms, and finds its function.
func (p *Plan) disableForDTrace(ref *Reference, site arch.Site) (arch.Change, error) {
	change, err := p.Scan.Machine.(arch.DOFMachine).DisableDOF(site, ref.Stub.Kind)
	if err != nil {
		return change, err
	}
	if _, ok, err := p.Scan.FunctionAt(ref.Relocs.Target, change.RecordedOffset); err != nil || ok {
		return change, err
	}
	return change, arch.Refuse("give it a symbol with .type and .size", "code of no function, which DTrace has no name for")
}

// applyDTraceForms queues a plan that has Options.DTraceForms.
func (p *Plan) applyDTraceForms(e *elfreloc.Edit) error {
	none := p.Scan.Machine.Traits().None
	a := &applier{p: p, o: p.Scan.Object, m: p.Scan.Machine, e: e} // for what has a target
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Reloc.Type == none {
			continue // of an earlier run
		}
		if err := s.patch(e); err != nil {
			return err
		}
		if s.Change.Target != arch.TargetNone {
			if err := a.retargetRelocation(s, linkerset.SymbolRef{}); err != nil {
				return err
			}
			continue
		}
		e.SetRelocation(*s.Relocs, s.Index, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none, Sym: s.Reloc.Sym})
		for j := range s.Paired {
			e.SetRelocation(*s.Relocs, s.Index+1+j, elfreloc.Relocation{Offset: s.Reloc.Offset, Type: none})
		}
	}
	return nil
}

// findDTraceMarks sets whether `dtrace -G` may have disabled sites of the object, which call no stub any more.
func (p *planner) findDTraceMarks() error {
	if _, ok := p.Scan.Machine.(arch.DOFMachine); !ok || p.Scan.Settings.DTraceForms || !p.Scan.hasMarks() {
		return nil
	}
	var err error
	p.mayHaveDTraceMarks, err = p.Scan.Object.NamesContain([][]byte{[]byte(dof.AliasPrefix)})
	return err
}

// isDisabledByDTrace reports whether a reference is what `dtrace -G` has left of a call that it has disabled.
func (p *planner) isDisabledByDTrace(ref *Reference) (bool, error) {
	if !p.mayHaveDTraceMarks || ref.Reloc.Type != p.Scan.Machine.Traits().None {
		return false, nil
	}
	t, err := p.text.read(ref.Relocs.Target)
	if err != nil {
		return false, err
	}
	_, ok := p.Scan.Machine.(arch.DOFMachine).DisabledDOF(t, ref.Reloc.Offset, ref.Stub.Kind)
	return ok, nil
}
