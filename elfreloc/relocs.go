package elfreloc

import (
	"debug/elf"
	"fmt"
)

// Relocation is an entry of a relocation section (gABI, "Relocation").
//
// What package arch returns has no symbol, and may be Implicit and have an Addend as well, equal
// to that in the field: a section whose relocations have addends (SHT_CREL) gets it from there.
type Relocation struct {
	Offset   uint64 // in the target section, bytes
	Sym      uint32 // symbol index, 0 for none; below Symbols.Len
	Type     uint32 // R_<machine>_*
	Addend   int64  // 0 when Implicit
	Implicit bool   // the section holds no addends (RelocSection.Rela): it is in the target
}

// RelocSection is a section of relocations.
type RelocSection struct {
	Index  int  // of the section itself
	Target int  // of the section that it applies to
	Rela   bool // entries hold addends: SHT_RELA, and SHT_CREL whose header says so
	Len    int  // entries
}

// RelocSections lists the SHT_REL, SHT_RELA and SHT_CREL sections that use the
// symbol table, in section order.
func (o *Object) RelocSections() ([]RelocSection, error) {
	if o.rels != nil {
		return o.rels, nil
	}
	rels := make([]RelocSection, 0, len(o.Sections)/2) // mostly enough
	for i := range o.Sections {
		if !o.Sections[i].isRelocs() || int(o.Sections[i].Link) != o.symtab {
			continue
		}
		rs, err := o.relocSection(i)
		if err != nil {
			return nil, err
		}
		rels = append(rels, rs)
	}
	o.rels = rels
	return rels, nil
}

func (s *Section) isRelocs() bool {
	return s.Type == elf.SHT_REL || s.Type == elf.SHT_RELA || s.Type == shtCREL
}

func (o *Object) relocSection(i int) (RelocSection, error) {
	s := &o.Sections[i]
	rs := RelocSection{Index: i, Target: int(s.Info), Rela: s.Type == elf.SHT_RELA}
	if s.Type == shtCREL {
		h, err := o.crelHeader(i)
		if err != nil {
			return rs, err
		}
		rs.Rela, rs.Len = h.rela, h.count
	} else {
		size := uint64(o.Encoding.relocSize(rs.Rela))
		if s.Entsize != size || s.Size%size != 0 {
			return rs, o.SectionError(i, fmt.Errorf("%d bytes of relocations of %d bytes, want a multiple of %d", s.Size, s.Entsize, size))
		}
		rs.Len = int(s.Size / size)
	}
	if s.Info == 0 || int(s.Info) >= len(o.Sections) {
		return rs, o.SectionError(i, fmt.Errorf("applies to section %d of %d", s.Info, len(o.Sections)))
	}
	return rs, nil
}

// UnknownRelocations reports whether a section holds relocations in a format that this
// package does not read: Android's packed ones.
func (s *Section) UnknownRelocations() bool {
	return s.Type == shtAndroidREL || s.Type == shtAndroidRELA
}

// EachRelocation calls f for every entry of a relocation section, in the order
// of the file, until f returns an error, which it returns as it is. i is the entry's
// index. It streams the section.
func (o *Object) EachRelocation(rs RelocSection, f func(i int, r Relocation) error) error {
	return o.EachRelocationAgainst(rs, nil, f)
}

// EachRelocationOf calls f for every relocation that applies to a wanted section, in the order
// of the file, until f returns an error, which it returns as it is. target is the index of
// the section.
func (o *Object) EachRelocationOf(wanted func(*Section) bool, f func(target int, r Relocation) error) error {
	rels, err := o.RelocSections()
	if err != nil {
		return err
	}
	for _, rs := range rels {
		if !wanted(&o.Sections[rs.Target]) {
			continue
		}
		if err := o.EachRelocation(rs, func(_ int, r Relocation) error { return f(rs.Target, r) }); err != nil {
			return err
		}
	}
	return nil
}

// EachRelocationAgainst is EachRelocation for the entries against the wanted
// symbols, and for those that follow such an entry at the same offset: they
// belong together (gABI, "Relocation"). wanted is by symbol index; when it is
// nil all are.
func (o *Object) EachRelocationAgainst(rs RelocSection, wanted []bool, f func(i int, r Relocation) error) error {
	syms, err := o.Symbols()
	if err != nil {
		return err
	}
	if o.Sections[rs.Index].Type == shtCREL {
		return o.eachCREL(rs, syms.Len(), wanted, f)
	}
	count := uint32(syms.Len())
	var c relocationChain
	l, size, symbols := o.Encoding, o.Encoding.relocSize(rs.Rela), o.Encoding.relocSymbols()
	sec := &o.Sections[rs.Index]
	if err := o.CheckRead(int64(sec.Offset), int64(sec.Size)); err != nil {
		return err
	}
	block := blocks.Get().(*[BlockSize]byte)
	defer blocks.Put(block)
	for done := uint64(0); done < sec.Size; done += BlockSize {
		buf := block[:min(sec.Size-done, BlockSize)]
		if err := o.readInto(buf, int64(sec.Offset+done)); err != nil {
			return err
		}
		first := int(done) / size
		for i := range len(buf) / size {
			b := buf[i*size : (i+1)*size]
			sym := symbols.of(b)
			if sym >= count {
				return o.relocSymbolError(rs, first+i, sym, count)
			}
			match := wanted == nil || wanted[sym]
			if !match && !c.open {
				continue
			}
			r := l.getReloc(b, rs.Rela)
			if !c.takes(match, r.Offset) {
				continue
			}
			if err := f(first+i, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// relocationChain tells which entries follow one against a wanted symbol at its offset.
type relocationChain struct {
	open  bool   // whether those at place do
	place uint64 // of the last entry that was taken
}

// Groups returns, for each section that is a member of a section group, the
// index of the group's section.
func (o *Object) Groups() (map[int]int, error) {
	groups := make(map[int]int)
	for i := range o.Sections {
		if o.Sections[i].Type != elf.SHT_GROUP {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		if len(data)%4 != 0 || len(data) == 0 {
			return nil, o.SectionError(i, fmt.Errorf("a section group of %d bytes", len(data)))
		}
		for at := 4; at < len(data); at += 4 {
			member := int(o.Encoding.Order.Uint32(data[at:]))
			if member == 0 || member >= len(o.Sections) {
				return nil, o.SectionError(i, fmt.Errorf("member is section %d of %d", member, len(o.Sections)))
			}
			if group, ok := groups[member]; ok && group != i {
				return nil, o.SectionError(i, fmt.Errorf("section %d is a member of group %d too", member, group))
			}
			groups[member] = i
		}
	}
	return groups, nil
}
