package elfreloc

import (
	"cmp"
	"debug/elf"
	"errors"
	"slices"
)

// writeRelocations writes every relocation section that is edited, or that may
// name a symbol which has moved, or a dropped one.
func (s *saver) writeRelocations() error {
	rels, err := s.o.RelocSections()
	if err != nil {
		return err
	}
	moved := make([]bool, s.e.symbols.Len()) // or dropped
	for i := range moved {
		moved[i] = s.numbers.final[i] != uint32(i)
	}
	for i := range s.e.dropped {
		moved[i] = true
	}
	for _, rs := range rels {
		re, final := s.e.relocs[rs.Index], s.finalSymbols(rs)
		if re == nil && !s.numbers.moved && !s.dropsRefs(rs) {
			continue
		}
		if re == nil { // most sections of debug information name no such symbol, and are copied
			re = &relocEdit{}
			err := s.o.EachRelocationAgainst(rs, moved, func(_ int, r Relocation) error {
				if final[r.Sym] != r.Sym {
					return errMoved
				}
				return nil
			})
			if err == nil {
				continue
			} else if err != errMoved {
				return err
			}
		}
		if s.o.Sections[rs.Index].Type == shtCREL {
			err = s.writeCREL(rs, re, final)
		} else {
			err = s.writeRelocSection(rs, re, final)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errMoved ends the reading of relocations at the first whose symbol has moved.
var errMoved = errors.New("a symbol that has moved")

// dropsRefs reports whether a section may name symbols of DropDebugRefs.
func (s *saver) dropsRefs(rs RelocSection) bool {
	return len(s.e.dropped) > 0 && s.o.Sections[rs.Target].Flags&elf.SHF_ALLOC == 0
}

// writeRelocSection writes a section of entries of one size.
func (s *saver) writeRelocSection(rs RelocSection, re *relocEdit, final []uint32) error {
	data, err := s.o.Data(rs.Index)
	if err != nil {
		return err
	}
	if err := s.renumber(rs, data, final[:s.e.symbols.Len()]); err != nil {
		return err
	}
	l, size := s.o.Encoding, s.o.Encoding.relocSize(rs.Rela)
	for _, x := range re.set {
		x.Sym = final[x.Sym]
		l.putReloc(data[x.index*size:], x.Relocation, rs.Rela)
	}
	slices.Sort(re.deleted)
	entries, next := data[:0], 0
	for _, i := range re.deleted {
		entries, next = append(entries, data[next*size:i*size]...), i+1
	}
	entries = append(entries, data[next*size:]...)
	for _, r := range re.added {
		r.Sym = final[r.Sym]
		entries = l.appendReloc(entries, r, rs.Rela)
	}
	s.setData(rs.Index, entries)
	return nil
}

// renumber gives entries of one size, with symbols as the Edit has them, their new symbols. An entry
// that stays is not decoded further than its symbol.
func (s *saver) renumber(rs RelocSection, entries []byte, final []uint32) error {
	l, size, symbols := s.o.Encoding, s.o.Encoding.relocSize(rs.Rela), s.o.Encoding.relocSymbols()
	for at := 0; at < len(entries); at += size {
		b := entries[at : at+size]
		sym := symbols.of(b)
		if count := uint32(len(final)); sym >= count {
			return s.o.relocSymbolError(rs, at/size, sym, count)
		}
		if final[sym] != sym {
			r := l.getReloc(b, rs.Rela)
			s.retarget(&r, final)
			l.putReloc(b, r, rs.Rela)
		}
	}
	return nil
}

// writeCREL writes an SHT_CREL section anew.
func (s *saver) writeCREL(rs RelocSection, re *relocEdit, final []uint32) error {
	count, mask := 0, uint64(0)
	err := s.eachEdited(rs, re, func(r Relocation) {
		count++
		mask |= r.Offset
	})
	if err != nil {
		return err
	}
	c := newCREL(s.o.Encoding, count, rs.Rela, mask)
	err = s.eachEdited(rs, re, func(r Relocation) {
		s.retarget(&r, final)
		c.add(r)
	})
	s.setData(rs.Index, c.data)
	return err
}

// eachEdited calls f for each entry that a section will have, with symbols as the Edit
// has them.
func (s *saver) eachEdited(rs RelocSection, re *relocEdit, f func(r Relocation)) error {
	slices.Sort(re.deleted)
	slices.SortFunc(re.set, func(a, b relocationEntry) int { return cmp.Compare(a.index, b.index) })
	deleted, set := re.deleted, re.set
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

// retarget gives a relocation its new symbol.
func (s *saver) retarget(r *Relocation, final []uint32) {
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
