package elfreloc

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
)

// writeRelocations queues every relocation section that is edited, or that may
// name a symbol which has moved, or a dropped one.
func (s *saver) writeRelocations() error {
	rels, err := s.o.RelocSections()
	if err != nil {
		return err
	}
	for _, rs := range rels {
		re, crel := s.e.relocs[rs.Index], s.o.Sections[rs.Index].Type == shtCREL
		switch {
		case re == nil && !s.numbers.moved && !s.dropsRefs(rs):
		case crel:
			err = s.writeCREL(rs, re)
		case re == nil:
			sec := &s.sections[rs.Index]
			s.content[rs.Index] = []Extent{{Src: int64(sec.Offset), Len: int64(sec.Size), Rewrite: s.rewriteRelocs(rs, nil)}}
		default:
			err = s.writeRelocSection(rs, re)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropsRefs reports whether a section may name symbols of DropDebugRefs.
func (s *saver) dropsRefs(rs RelocSection) bool {
	return len(s.e.dropped) > 0 && s.o.Sections[rs.Target].Flags&elf.SHF_ALLOC == 0
}

// writeRelocSection queues a section of entries of one size: block by block where each
// that was there keeps its place, else all of it anew, in memory.
func (s *saver) writeRelocSection(rs RelocSection, re *relocEdit) error {
	if len(re.deleted) > 0 {
		var entries []byte
		err := s.eachEdited(rs, re, func(r Relocation) { entries = s.appendReloc(entries, r, rs.Rela) })
		s.setData(rs.Index, entries)
		return err
	}
	sec := &s.sections[rs.Index]
	var added []byte
	for _, r := range re.added {
		added = s.appendReloc(added, r, rs.Rela)
	}
	s.content[rs.Index] = []Extent{
		{Src: int64(sec.Offset), Len: int64(sec.Size), Rewrite: s.rewriteRelocs(rs, re.sortedSet())},
		{Data: added, Len: int64(len(added))},
	}
	sec.Size += uint64(len(added))
	return nil
}

// writeCREL writes an SHT_CREL section anew, if anything of it changes. re is nil
// where only symbols have moved.
func (s *saver) writeCREL(rs RelocSection, re *relocEdit) error {
	count, mask, changed, final := 0, uint64(0), re != nil, s.finalSymbols(rs)
	if re == nil {
		re = &relocEdit{}
	}
	err := s.eachEdited(rs, re, func(r Relocation) {
		count++
		mask |= r.Offset
		changed = changed || final[r.Sym] != r.Sym
	})
	if err != nil || !changed {
		return err
	}
	c := newCREL(s.o.Encoding, count, rs.Rela, mask)
	err = s.eachEdited(rs, re, func(r Relocation) {
		s.renumber(&r, final)
		c.add(r)
	})
	s.setData(rs.Index, c.data)
	return err
}

// eachEdited calls f for each entry that a section will have, with symbols as the Edit
// has them.
func (s *saver) eachEdited(rs RelocSection, re *relocEdit, f func(r Relocation)) error {
	slices.Sort(re.deleted)
	deleted, set := re.deleted, re.sortedSet()
	err := s.o.EachRelocation(rs, func(i int, r Relocation) error {
		if len(deleted) > 0 && deleted[0] == i {
			deleted = deleted[1:]
			return nil
		}
		if len(set) > 0 && set[0].index == i {
			r, set = set[0].Relocation, set[1:]
		}
		f(r)
		return nil
	})
	for _, r := range re.added {
		f(r)
	}
	return err
}

// sortedSet returns the entries that are set, by index.
func (re *relocEdit) sortedSet() []relocationEntry {
	slices.SortFunc(re.set, func(a, b relocationEntry) int { return cmp.Compare(a.index, b.index) })
	return re.set
}

// rewriteRelocs applies edits of entries, sorted by index, and renumbers symbols. It is
// where the time goes in a large object with debug information, so an entry
// that stays is not decoded further than its symbol.
func (s *saver) rewriteRelocs(rs RelocSection, set []relocationEntry) func(int64, []byte) error {
	size := s.o.Encoding.relocSize(rs.Rela)
	l, final, old := s.o.Encoding, s.finalSymbols(rs), uint32(s.e.symbols.Len())
	moved := s.numbers.moved || s.dropsRefs(rs)
	return func(at int64, block []byte) error {
		first, count := int(at)/size, len(block)/size
		if moved {
			for i := range count {
				b := block[i*size:]
				sym := l.relocSymbol(b)
				if sym >= old {
					return s.o.relocSymbolError(rs, first+i, sym, old)
				}
				if final[sym] != sym {
					r := l.getReloc(b, rs.Rela)
					s.renumber(&r, final)
					l.putReloc(b, r, rs.Rela)
				}
			}
		}
		from := sort.Search(len(set), func(i int) bool { return set[i].index >= first })
		for _, x := range set[from:] {
			if x.index >= first+count {
				break
			}
			x.Sym = final[x.Sym]
			l.putReloc(block[(x.index-first)*size:], x.Relocation, rs.Rela)
		}
		return nil
	}
}

// renumber gives a relocation its new symbol.
func (s *saver) renumber(r *Relocation, final []uint32) {
	if none, ok := s.e.dropped[r.Sym]; ok && final[r.Sym] == 0 {
		r.Type, r.Addend = none, 0
	}
	r.Sym = final[r.Sym]
}

// finalSymbols returns the new indexes of symbols, as the relocations of a section name
// them.
func (s *saver) finalSymbols(rs RelocSection) []uint32 {
	if !s.dropsRefs(rs) {
		return s.numbers.final
	}
	if s.unloaded == nil {
		s.unloaded = slices.Clone(s.numbers.final)
		for i := range s.e.dropped {
			s.unloaded[i] = 0
		}
	}
	return s.unloaded
}
