package image

// The image of an object: an address is an offset in a section, and relocations that
// the linker will apply tell what fields refer to.

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"sort"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// object is an object that is not linked yet, or a module that a kernel links
// when it loads it. Fields that refer to a place have relocations, and those of
// a section are read once one of its fields is asked for: an object may have
// millions of others, for debug information. It is an Image.
type object struct {
	o      *elfreloc.Object
	m      arch.Machine
	tables map[int][]elfreloc.RelocSection // by the section that they apply to, nil before they are asked for
	relocs map[int][]elfreloc.Relocation   // by section
	names  *names
}

func (b *object) Name() string                { return b.o.Name }
func (b *object) Machine() arch.Machine       { return b.m }
func (b *object) Encoding() elfreloc.Encoding { return b.o.Encoding }

func (b *object) Place(a Addr) string {
	if a.Section == 0 {
		return fmt.Sprintf("%#x", a.Offset)
	}
	name := fmt.Sprintf("section %d", a.Section)
	if b.has(a.Section) && b.o.Sections[a.Section].Name != "" {
		name = b.o.Sections[a.Section].Name
	}
	return fmt.Sprintf("%s+%#x", name, a.Offset)
}

// has reports whether there is such a section, besides section 0.
func (b *object) has(section int) bool { return section > 0 && section < len(b.o.Sections) }

func (b *object) Executable(a Addr) bool {
	if !b.has(a.Section) {
		return false
	}
	s := &b.o.Sections[a.Section]
	return s.Executable() && a.Offset < s.Size
}

func (b *object) FileOffset(a Addr) (uint64, bool) {
	if !b.has(a.Section) || !b.o.Sections[a.Section].InFile() || a.Offset >= b.o.Sections[a.Section].Size {
		return 0, false
	}
	return b.o.Sections[a.Section].Offset + a.Offset, true
}

func (b *object) Bytes(a Addr, n uint64) ([]byte, error) {
	if !b.has(a.Section) {
		return nil, b.errorAt(a, "is in no section")
	}
	data, err := b.o.Bytes(a.Section, a.Offset, n)
	if err != nil || uint64(len(data)) == n {
		return data, err
	}
	if n > uint64(b.o.Held()) { // of SHT_NOBITS, which may claim any size
		return nil, b.errorAt(a, "%#x bytes wanted of a file of %#x bytes", n, b.o.Held())
	}
	return make([]byte, n), nil
}

func (b *object) Word(a Addr) (Ref, error) {
	return b.readField(a, fieldWord, uint64(b.o.Encoding.Word()), b.o.Encoding.GetWord, Addr{})
}

func (b *object) Distance(a Addr) (Ref, error) {
	return b.readField(a, fieldDistance, 4, distanceIn(b), a)
}

// readField returns what a field of a kind and size refers to. get reads the number in the field. Without a
// relocation that is the distance from a place, because the assembler knew it.
func (b *object) readField(a Addr, want fieldKind, size uint64, get func([]byte) uint64, from Addr) (Ref, error) {
	r, ok, err := b.relocation(a, want)
	if err != nil {
		return Ref{}, err
	}
	if !ok || r.Implicit {
		data, err := b.Bytes(a, size)
		if err != nil {
			return Ref{}, err
		}
		if r.Addend = int64(get(data)); !ok {
			return Ref{Addr: from.Add(uint64(r.Addend))}, nil
		}
	}
	syms, err := b.o.Symbols()
	if err != nil {
		return Ref{}, err
	}
	return refTo(syms.At(int(r.Sym)), r.Sym, r.Addend, true), nil
}

// relocation finds the relocation of a field, which must be of the given kind.
func (b *object) relocation(a Addr, want fieldKind) (found elfreloc.Relocation, ok bool, err error) {
	if !b.has(a.Section) {
		return found, false, b.errorAt(a, "is in no section")
	}
	relocs, err := b.relocations(a.Section)
	if err != nil {
		return found, false, err
	}
	foundType, isField := b.m.Traits().Word, false // but a distance was wanted, or the other way round
	if want == fieldWord {
		foundType = b.m.Traits().Relative[0].Type
	}
	i := sort.Search(len(relocs), func(i int) bool { return relocs[i].Offset >= a.Offset })
	for ; i < len(relocs) && relocs[i].Offset == a.Offset; i++ {
		kind := b.kind(relocs[i].Type)
		isField = isField || kind != fieldNone
		switch kind {
		case want:
			return relocs[i], true, nil
		case fieldOther:
			foundType = relocs[i].Type
		}
	}
	if isField {
		err = b.errorAt(a, "a field with the relocation %s, which is not used in records", b.m.RelocName(foundType))
	}
	return found, false, err
}

// Relocations returns the relocations of a section of an object, but for those that do nothing, sorted by
// offset. They are not to be modified. Other images have none.
func Relocations(im Image, section int) ([]elfreloc.Relocation, error) {
	if b, ok := im.(*object); ok {
		return b.relocations(section)
	}
	return nil, nil
}

// relocations is Relocations, which reads those of a section once.
func (b *object) relocations(section int) ([]elfreloc.Relocation, error) {
	if relocs, ok := b.relocs[section]; ok {
		return relocs, nil
	}
	if b.tables == nil {
		tables, err := b.o.RelocSections()
		if err != nil {
			return nil, err
		}
		b.tables = map[int][]elfreloc.RelocSection{}
		for _, rs := range tables {
			b.tables[rs.Target] = append(b.tables[rs.Target], rs)
		}
	}
	var relocs relocTable
	for _, rs := range b.tables[section] {
		relocs = slices.Grow(relocs, rs.Len)
		err := b.o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			if r.Type != b.m.Traits().None {
				relocs = append(relocs, r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	relocs.sortByOffset()
	b.relocs[section] = relocs
	return relocs, nil
}

// relocTable is sorted by offset. Most tools write it so, or nearly so.
type relocTable []elfreloc.Relocation

func (t relocTable) sortByOffset() {
	byOffset := func(a, b elfreloc.Relocation) int { return cmp.Compare(a.Offset, b.Offset) }
	if !slices.IsSortedFunc(t, byOffset) {
		slices.SortStableFunc(t, byOffset)
	}
}

// fieldKind is what a relocation makes of its field.
type fieldKind uint8

const (
	fieldNone     fieldKind = iota // nothing by itself: the subtraction of the field's own address
	fieldOther                     // not an address, nor a distance
	fieldWord                      // an address
	fieldDistance                  // a 32-bit distance from the field itself
)

func (b *object) kind(typ uint32) fieldKind {
	t := b.m.Traits()
	switch i := slices.IndexFunc(t.Relative, func(r arch.RelativeReloc) bool { return r.Type == typ }); {
	case i >= 0 && t.Relative[i].Sub:
		return fieldNone
	case i >= 0, slices.Contains(t.AlsoRelative, typ):
		return fieldDistance
	case typ == t.Word:
		return fieldWord
	}
	return fieldOther
}

// refTo returns what a field refers to whose relocation names a symbol.
func refTo(s elfreloc.Symbol, sym uint32, addend int64, relocatable bool) Ref {
	r := Ref{Addr: Addr{Offset: s.Value + uint64(addend)}, Symbol: s.Name}
	switch {
	case sym == 0:
		return Ref{Addr: Addr{Offset: uint64(addend)}}
	case s.Section == 0 || s.Section == elfreloc.SectionCommon:
		r.Undefined = true // a common symbol's place is the linker's to choose
	case relocatable && s.Section > 0:
		r.Section = s.Section
	}
	if s.Type == elf.STT_SECTION {
		r.Symbol = "" // some tools name it like its section
	}
	return r
}

func (b *object) Arrays(name string) ([]Range, error) {
	var found []Range
	for i := range b.o.Sections {
		s := &b.o.Sections[i]
		if s.Name != name || s.Size == 0 || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if !s.InFile() {
			return nil, b.o.SectionError(i, errNoContents)
		}
		found = append(found, Range{Name: name, Start: Addr{Section: i}, Size: s.Size, Writable: s.Flags&elf.SHF_WRITE != 0})
	}
	if len(found) > 0 {
		// Else many sections of the same bytes would be records out of all
		// proportion to the file.
		if err := b.o.CheckOverlap(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (b *object) SymbolsAt(a Addr) ([]string, error) {
	if b.names == nil {
		syms, err := b.o.Symbols()
		if err != nil {
			return nil, err
		}
		b.names = indexNames(syms, true)
	}
	return b.names.lookup(b.o, a)
}

func (b *object) errorAt(a Addr, format string, args ...any) error {
	return &elfreloc.Error{File: b.o.Name, Section: b.Place(a), Err: fmt.Errorf(format, args...)}
}
