package sitestate

import (
	"cmp"
	"debug/elf"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// relocations are those of the code of an object. They are read once they are asked for.
type relocations struct {
	object  *elfreloc.Object
	machine arch.Machine
	tables  map[int][]elfreloc.RelocSection // by the section that they apply to
	fields  map[int][]elfreloc.Relocation   // of a section of code, sorted by offset
}

// first returns the first relocation of so many bytes of code, nil if there is none.
func (t *relocations) first(at image.Addr, size uint64) (*elfreloc.Relocation, error) {
	fields, err := t.inSection(at.Section)
	if err != nil {
		return nil, err
	}
	i, _ := slices.BinarySearchFunc(fields, at.Offset, func(r elfreloc.Relocation, off uint64) int { return cmp.Compare(r.Offset, off) })
	if i == len(fields) || fields[i].Offset-at.Offset >= size {
		return nil, nil
	}
	return &fields[i], nil
}

// symbol returns the symbol that a relocation names; of a section, it has no name.
func (t *relocations) symbol(r *elfreloc.Relocation) (image.Ref, error) {
	syms, err := t.object.Symbols()
	if err != nil || r.Sym == 0 {
		return image.Ref{Undefined: true}, err
	}
	s := syms.At(int(r.Sym))
	ref := image.Ref{Addr: image.Addr{Section: max(s.Section, 0), Offset: s.Value}, Symbol: s.Name, Undefined: s.Section <= 0}
	if s.Type == elf.STT_SECTION {
		ref.Symbol = ""
	}
	return ref, nil
}

// target returns the symbol that the first relocation of some code names: an
// instruction's, where it begins, or that of one behind a landing pad. Conversions name
// what they refer to.
func (t *relocations) target(at image.Addr) (image.Ref, bool, error) {
	sizes := &t.machine.Traits().Sizes
	r, err := t.first(at, max(sizes.Load, sizes.Site))
	if r == nil || err != nil {
		return image.Ref{}, false, err
	}
	ref, err := t.symbol(r)
	return ref, err == nil && ref.Symbol != "", err
}

// inSection lists those of a section that do something.
func (t *relocations) inSection(section int) ([]elfreloc.Relocation, error) {
	if fields, ok := t.fields[section]; ok {
		return fields, nil
	}
	if err := t.readTables(); err != nil {
		return nil, err
	}
	var fields []elfreloc.Relocation
	for _, rs := range t.tables[section] {
		if err := t.object.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			if r.Type != t.machine.Traits().None {
				fields = append(fields, r)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(fields, func(a, b elfreloc.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
	t.fields[section] = fields
	return fields, nil
}

func (t *relocations) readTables() error {
	if t.tables != nil {
		return nil
	}
	all, err := t.object.RelocSections()
	if err != nil {
		return err
	}
	t.tables, t.fields = map[int][]elfreloc.RelocSection{}, map[int][]elfreloc.Relocation{}
	for _, rs := range all {
		t.tables[rs.Target] = append(t.tables[rs.Target], rs)
	}
	return nil
}
