package image

// The image of an object: an address is an offset in a section, and relocations that
// the linker will apply tell what fields refer to.

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Object is an object that is not linked yet, or a module that a kernel links
// when it loads it. Fields that refer to a place have relocations, and those of
// a section are read once one of its fields is asked for: an object may have
// millions of others, for debug information. It is an Image.
type Object struct {
	o      *elfreloc.Object
	m      arch.Machine
	fields map[int][]field // by section, sorted by offset
	names  *names
}

// field is a relocation, as compact as in the file.
type field struct {
	off    uint64
	addend int64 // of fieldOther, the type of the relocation
	sym    uint32
	what   fieldKind
}

type fieldKind uint8

const (
	fieldOther    fieldKind = iota // not an address, nor a distance
	fieldWord                      // an address
	fieldDistance                  // a 32-bit distance from the field itself
)

func openObject(o *elfreloc.Object, m arch.Machine) *Object {
	return &Object{o: o, m: m, fields: map[int][]field{}}
}

func (b *Object) Name() string                { return b.o.Name }
func (b *Object) Machine() arch.Machine       { return b.m }
func (b *Object) Encoding() elfreloc.Encoding { return b.o.Encoding }

// Object returns the file that the image is of.
func (b *Object) Object() *elfreloc.Object { return b.o }

func (b *Object) Place(a Addr) string {
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
func (b *Object) has(section int) bool { return section > 0 && section < len(b.o.Sections) }

func (b *Object) Executable(a Addr) bool {
	if !b.has(a.Section) {
		return false
	}
	s := &b.o.Sections[a.Section]
	return s.Executable() && a.Offset < s.Size
}

func (b *Object) FileOffset(a Addr) (uint64, bool) {
	if !b.has(a.Section) || !b.o.Sections[a.Section].InFile() || a.Offset >= b.o.Sections[a.Section].Size {
		return 0, false
	}
	return b.o.Sections[a.Section].Offset + a.Offset, true
}

func (b *Object) Bytes(a Addr, n uint64) ([]byte, error) {
	if !b.has(a.Section) {
		return nil, b.errorAt(a, "is in no section")
	}
	data, err := b.o.Bytes(a.Section, a.Offset, n)
	if err != nil || uint64(len(data)) == n {
		return data, err
	}
	if n > uint64(b.o.Size()) { // of SHT_NOBITS, which may claim any size
		return nil, b.errorAt(a, "%#x bytes wanted of a file of %#x bytes", n, b.o.Size())
	}
	return make([]byte, n), nil
}

func (b *Object) Word(a Addr) (Ref, error) {
	f, ok, err := b.field(a, fieldWord)
	if err != nil {
		return Ref{}, err
	}
	if ok && !f.implicit {
		return b.ref(f)
	}
	data, err := b.Bytes(a, uint64(b.o.Encoding.Word()))
	if err != nil {
		return Ref{}, err
	}
	value := b.o.Encoding.GetWord(data)
	if !ok {
		return Ref{Addr: Addr{Offset: value}}, nil // a number, or a null pointer
	}
	f.addend = int64(value)
	return b.ref(f)
}

func (b *Object) Distance(a Addr) (Ref, error) {
	f, ok, err := b.field(a, fieldDistance)
	if err != nil {
		return Ref{}, err
	}
	if ok && !f.implicit {
		return b.ref(f)
	}
	data, err := b.Bytes(a, 4)
	if err != nil {
		return Ref{}, err
	}
	value := int64(int32(b.o.Encoding.Order.Uint32(data)))
	if !ok { // the assembler knew it: both are in one section
		return Ref{Addr: a.Add(uint64(value))}, nil
	}
	f.addend = value
	return b.ref(f)
}

// found is a field, and whether its addend is in its place (SHT_REL).
type found struct {
	field
	implicit bool
}

// field finds the relocation of a field, which must be of the given kind.
func (b *Object) field(a Addr, want fieldKind) (found, bool, error) {
	if !b.has(a.Section) {
		return found{}, false, b.errorAt(a, "is in no section")
	}
	all, err := b.sectionFields(a.Section)
	if err != nil {
		return found{}, false, err
	}
	i, ok := slices.BinarySearchFunc(all, a.Offset, func(f field, off uint64) int { return cmp.Compare(f.off, off) })
	if !ok {
		return found{}, false, nil
	}
	other := int64(b.m.Traits().Word) // but a distance was wanted, or the other way round
	if want == fieldWord {
		other = int64(b.m.Traits().Relative[0].Type)
	}
	for ; i < len(all) && all[i].off == a.Offset; i++ {
		switch all[i].what &^ implicitAddend {
		case want:
			return found{all[i], all[i].what&implicitAddend != 0}, true, nil
		case fieldOther:
			other = all[i].addend
		}
	}
	return found{}, false, b.errorAt(a, "a field with the relocation %s, which is not used in records", b.m.RelocName(uint32(other)))
}

// implicitAddend marks a field of an SHT_REL section.
const implicitAddend fieldKind = 0x80

func (b *Object) sectionFields(section int) ([]field, error) {
	if all, ok := b.fields[section]; ok {
		return all, nil
	}
	rels, err := b.o.RelocSections()
	if err != nil {
		return nil, err
	}
	var all []field
	for _, rs := range rels {
		if rs.Target != section {
			continue
		}
		all = slices.Grow(all, rs.Len)
		err := b.o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			what, ok := b.kind(r)
			if what&^implicitAddend == fieldOther {
				r.Addend = int64(r.Type)
			}
			if ok {
				all = append(all, field{r.Offset, r.Addend, r.Sym, what})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	byOffset := func(a, b field) int { return cmp.Compare(a.off, b.off) }
	if !slices.IsSortedFunc(all, byOffset) {
		slices.SortStableFunc(all, byOffset)
	}
	b.fields[section] = all
	return all, nil
}

// kind returns what a relocation makes of its field, or false when it makes nothing
// of it alone: R_*_NONE, and the subtraction of the field's own address.
func (b *Object) kind(r elfreloc.Relocation) (what fieldKind, ok bool) {
	t := b.m.Traits()
	if r.Type == t.None {
		return 0, false
	}
	if r.Type == t.Word {
		what = fieldWord
	}
	if slices.Contains(t.AlsoRelative, r.Type) {
		what = fieldDistance
	}
	for _, rel := range t.Relative {
		if rel.Type == r.Type {
			if rel.Sub {
				return 0, false
			}
			what = fieldDistance
		}
	}
	if r.Implicit {
		what |= implicitAddend
	}
	return what, true
}

func (b *Object) ref(f found) (Ref, error) {
	syms, err := b.o.Symbols()
	if err != nil {
		return Ref{}, err
	}
	return refTo(syms.At(int(f.sym)), f.sym, f.addend, true), nil
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

func (b *Object) Arrays(name string) ([]Range, error) {
	var all []Range
	for i := range b.o.Sections {
		s := &b.o.Sections[i]
		if s.Name != name || s.Size == 0 || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if !s.InFile() {
			return nil, b.o.SectionError(i, errNoContents)
		}
		all = append(all, Range{Name: name, Start: Addr{Section: i}, Size: s.Size, Writable: s.Flags&elf.SHF_WRITE != 0})
	}
	if len(all) > 0 {
		// Else many sections of the same bytes would be records out of all
		// proportion to the file.
		if err := b.o.CheckOverlap(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (b *Object) SymbolsAt(a Addr) ([]string, error) {
	if b.names == nil {
		syms, err := b.o.Symbols()
		if err != nil {
			return nil, err
		}
		b.names = indexNames(syms, true)
	}
	return b.names.lookup(b.o, a)
}

func (b *Object) errorAt(a Addr, format string, args ...any) error {
	return &elfreloc.Error{File: b.o.Name, Section: b.Place(a), Err: fmt.Errorf(format, args...)}
}
