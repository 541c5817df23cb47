package patch

import (
	"cmp"
	"debug/elf"
	"errors"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// decode finds the site of a call, where its relocation is or elsewhere. An error that
// is no *arch.Refusal is one of the object.
func (p *Plan) decode(ref *Reference, t arch.Text, relocs []arch.Reloc) (arch.Site, error) {
	m := p.Scan.Machine
	follower, ok := m.(arch.Follower)
	if !ok || !follower.Follows(ref.Reloc.Type) {
		return m.Decode(t, relocs)
	}
	if p.flow == nil {
		code, err := p.Scan.code()
		if err != nil {
			return arch.Site{}, err
		}
		p.flow = follower.Flow(code)
	}
	site, err := p.flow.Site(ref.Relocs.Target, relocs)
	if err == nil && ref.Stub.Defined {
		// Who compiles the stub too may know which registers it changes.
		err = arch.Refuse("define it elsewhere", "a call through a register of a stub that the object defines")
	}
	return site, err
}

// isRefusal tells a refusal from an error of the object.
func isRefusal(err error) bool { return errors.As(err, new(*arch.Refusal)) }

// code is what leads into the text of the object.
func (s *Scan) code() (arch.Code, error) {
	o := s.Object
	syms, err := o.Symbols()
	if err != nil {
		return arch.Code{}, err
	}
	code := arch.Code{Text: func(section int) (arch.Text, error) {
		data, err := o.Data(section)
		return arch.Text{Code: data}, err
	}}
	wanted := make([]bool, syms.Len())
	for i := 1; i < syms.Len(); i++ {
		sym := syms.At(i)
		if !sym.Defined() || !o.Sections[sym.Section].Executable() {
			continue
		}
		wanted[i] = true
		if sym.Type != elf.STT_SECTION {
			code.Symbols = append(code.Symbols, arch.Symbol{
				Place: arch.Place{Section: sym.Section, Offset: sym.Value},
				Func:  sym.Type == elf.STT_FUNC || sym.Type == elf.STT_GNU_IFUNC,
			})
		}
	}
	slices.SortStableFunc(code.Symbols, func(a, b arch.Symbol) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Offset, b.Offset))
	})
	rels, err := o.RelocSections()
	if err != nil {
		return arch.Code{}, err
	}
	for _, rs := range rels {
		if code.Refs, err = s.refs(code.Refs, rs, syms, wanted); err != nil {
			return arch.Code{}, err
		}
	}
	return code, nil
}

// refs appends what the relocations of a section lead to: all of those of text, and of
// others the wanted.
func (s *Scan) refs(refs []arch.Ref, rs elfreloc.RelocSection, syms *elfreloc.Symbols, wanted []bool) ([]arch.Ref, error) {
	target := &s.Object.Sections[rs.Target]
	text := target.Executable()
	if !text && (target.Flags&elf.SHF_ALLOC == 0 || s.isUnwindTable(target)) {
		return refs, nil
	}
	if text {
		wanted = nil
	}
	err := s.Object.EachRelocationAgainst(rs, wanted, func(_ int, r elfreloc.Relocation) error {
		ref := arch.Ref{Reloc: machineReloc(r), Section: rs.Target, Code: text}
		if sym := syms.At(int(r.Sym)); sym.Defined() {
			ref.To = arch.Place{Section: sym.Section, Offset: sym.Value}
		}
		refs = append(refs, ref)
		return nil
	})
	return refs, err
}
