package elfreloc

import (
	"cmp"
	"fmt"
	"slices"
)

// writeRelocations queues every relocation section that is edited, or that may
// name a symbol which has moved.
func (s *saver) writeRelocations() error {
	rels, err := s.o.RelocSections()
	if err != nil {
		return err
	}
	extents := make([]Extent, len(rels)) // one for each, at once
	for i, rs := range rels {
		re := s.e.relocs[rs.Index]
		if re == nil {
			if s.numbers.moved {
				sec := &s.sections[rs.Index]
				extents[i] = Extent{Src: int64(sec.Offset), Len: int64(sec.Size), Rewrite: s.rewriteRelocs(rs, nil)}
				s.content[rs.Index] = extents[i : i+1]
			}
			continue
		}
		if err := s.writeRelocSection(rs, re); err != nil {
			return err
		}
	}
	return nil
}

func (s *saver) writeRelocSection(rs RelocSection, re *relocEdit) error {
	slices.SortFunc(re.set, func(a, b entry) int { return cmp.Compare(a.index, b.index) })
	sec := &s.sections[rs.Index]
	var added []byte
	for _, r := range re.added {
		added = s.appendReloc(added, r, rs.Rela)
	}
	if len(re.deleted) == 0 {
		s.content[rs.Index] = []Extent{
			{Src: int64(sec.Offset), Len: int64(sec.Size), Rewrite: s.rewriteRelocs(rs, re.set)},
			{Data: added, Len: int64(len(added))},
		}
		sec.Size += uint64(len(added))
		return nil
	}
	slices.Sort(re.deleted)
	var kept []byte
	deleted, set := re.deleted, re.set
	err := s.o.EachRelocation(rs, func(i int, r Relocation) error {
		if len(deleted) > 0 && deleted[0] == i {
			deleted = deleted[1:]
			return nil
		}
		if len(set) > 0 && set[0].index == i {
			r, set = set[0].Relocation, set[1:]
		}
		kept = s.appendReloc(kept, r, rs.Rela)
		return nil
	})
	s.setData(rs.Index, append(kept, added...))
	return err
}

// rewriteRelocs applies edits of entries, sorted by index, and renumbers symbols. It is
// where the time goes in a large object with debug information, so an entry
// that stays is not decoded further than its symbol.
func (s *saver) rewriteRelocs(rs RelocSection, set []entry) func(int64, []byte) error {
	size := s.o.Encoding.relocSize(rs.Rela)
	l, final, old := s.o.Encoding, s.numbers.final, uint32(s.e.symbols.Len())
	return func(at int64, block []byte) error {
		first, count := int(at)/size, len(block)/size
		if s.numbers.moved {
			for i := range count {
				b := block[i*size:]
				sym := l.relocSymbol(b)
				if sym >= old {
					return s.o.SectionError(rs.Index, fmt.Errorf("relocation %d: symbol %d of %d", first+i, sym, old))
				}
				if final[sym] != sym {
					r := l.getReloc(b, rs.Rela)
					r.Sym = final[sym]
					l.putReloc(b, r, rs.Rela)
				}
			}
		}
		from, _ := slices.BinarySearchFunc(set, first, func(x entry, first int) int { return cmp.Compare(x.index, first) })
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
