package patch

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Load is a reference that loads the address of its stub into a register, where calls of
// sites use it.
type Load struct {
	*Reference
	Site arch.Site // the instruction
	New  []byte    // what takes its place, nil for one that stays
	// OwnsRelocation reports that no site of the plan owns the relocation of the load, so the load neutralises it.
	OwnsRelocation bool
}

// addCall plans the sites of one reference.
func (p *planner) addCall(ref *Reference) error {
	t, err := p.text.read(ref.Relocs.Target)
	if err != nil {
		return err
	}
	relocs := append(p.text.relocs[:0], ref.Reloc)
	relocs = append(relocs, ref.Paired...)
	p.text.relocs = relocs
	decode := p.Scan.Machine.Decode
	if p.Scan.Settings.DTraceForms {
		decode = p.decodeDTrace(ref)
	}
	site, err := decode(t, relocs)
	follower, ok := p.Scan.Machine.(arch.Follower)
	if err != nil && isRefusal(err) && ok && follower.Follows(ref.Reloc.Type) && len(relocs) == 1 {
		return p.addLoad(follower, ref, t)
	}
	return p.addSite(ref, locatedSite{Site: site, err: err}, t)
}

// addLoad plans the sites that a load of a stub's address leads to, in the text of its section.
func (p *planner) addLoad(follower arch.Follower, ref *Reference, t arch.Text) error {
	load, err := p.followLoad(follower, ref)
	if err != nil {
		return err
	}
	refused := load.Refused
	if refused == nil && ref.Stub.Defined {
		// A compiler that sees the stub may know which registers it changes.
		refused = arch.Refuse("define it elsewhere", "a call through a register of a stub that the object defines")
	}
	if refused != nil {
		p.refuse(ref, refused)
		return nil
	}
	if load.New != nil && p.semaphores.loadableBytes(ref.Stub.ID, ref.Stub.Kind) != 0 {
		// The load has room for what loads the semaphore, and the calls have none.
		p.loadsThroughRegister = true
		return p.addSite(ref, locatedSite{Site: load.Load}, t)
	}
	p.Loads = append(p.Loads, Load{Reference: ref, Site: load.Load, New: load.New, OwnsRelocation: len(load.Sites) == 0})
	for i, site := range load.Sites {
		if err := p.addSite(ref, locatedSite{Site: site, shared: i > 0}, t); err != nil {
			return err
		}
	}
	return nil
}

// followLoad returns the sites that a load leads to. All loads of a section are followed at once.
func (p *planner) followLoad(follower arch.Follower, ref *Reference) (*arch.Followed, error) {
	if p.follow == nil {
		code, err := p.Scan.code()
		if err != nil {
			return nil, err
		}
		p.follow = follower.Follow(code)
	}
	section := ref.Relocs.Target
	if p.followed == nil || p.followedIn != section {
		var loads []arch.StubLoad
		var relocs []relocation
		all := p.Scan.Calls
		first := sort.Search(len(all), func(i int) bool { return all[i].Relocs.Target >= section })
		end := sort.Search(len(all), func(i int) bool { return all[i].Relocs.Target > section })
		calls := all[first:end]
		for i := range calls {
			c := &calls[i]
			if follower.Follows(c.Reloc.Type) && len(c.Paired) == 0 {
				loads = append(loads, arch.StubLoad{Relocation: c.Reloc, Stub: int(c.Stub.Symbol)})
				relocs = append(relocs, relocation{c.Relocs.Index, c.Index})
			}
		}
		followed, err := p.follow(section, loads)
		if err != nil {
			return nil, err
		}
		p.followed, p.followedIn = make(map[relocation]*arch.Followed, len(followed)), section
		for i := range followed {
			p.followed[relocs[i]] = &followed[i]
		}
	}
	return p.followed[relocation{ref.Relocs.Index, ref.Index}], nil
}

// relocation names a relocation by the index of its section and its own index in that.
type relocation struct{ section, index int }

// code returns what leads into the text of the object.
func (s *Scan) code() (arch.ObjectCode, error) {
	o, syms := s.Object, s.symbols()
	code := arch.ObjectCode{Text: func(section int) (arch.Text, error) {
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
				Addr: elfreloc.Addr{Section: sym.Section, Offset: sym.Value},
				Func: sym.Type == elf.STT_FUNC || sym.Type == elf.STT_GNU_IFUNC,
			})
		}
	}
	slices.SortStableFunc(code.Symbols, func(a, b arch.Symbol) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Offset, b.Offset))
	})
	code.LandingPads = slices.ContainsFunc(o.Sections, func(sec elfreloc.Section) bool {
		return strings.HasPrefix(sec.Name, ".gcc_except_table")
	})
	rels, err := o.RelocSections()
	if err != nil {
		return arch.ObjectCode{}, err
	}
	for _, rs := range rels {
		if code.Refs, err = s.refs(code.Refs, rs, wanted); err != nil {
			return arch.ObjectCode{}, err
		}
	}
	return code, nil
}

// refs appends the targets of the relocations of a section: all of them in text, and in other sections those against
// wanted symbols.
func (s *Scan) refs(refs []arch.CodeRef, rs elfreloc.RelocSection, wanted []bool) ([]arch.CodeRef, error) {
	target := &s.Object.Sections[rs.Target]
	text := target.Executable()
	if !text && (target.Flags&elf.SHF_ALLOC == 0 || s.isUnwindTable(target)) {
		return refs, nil
	}
	if text {
		wanted = nil
	}
	err := s.Object.EachRelocationAgainst(rs, wanted, func(_ int, r elfreloc.Relocation) error {
		ref := arch.CodeRef{Relocation: r, Section: rs.Target, Code: text}
		if section, value := s.symbols().Place(int(r.Sym)); section > 0 {
			ref.To = elfreloc.Addr{Section: section, Offset: value}
		}
		refs = append(refs, ref)
		return nil
	})
	return refs, err
}
