package elfreloc

import (
	"debug/elf"
	"fmt"
	"slices"
)

// Edit collects changes to an object. Nothing is written, and the object does
// not change: Output turns them into the extents of a new file.
//
// Symbols and sections keep their indexes for the life of an Edit, and new ones
// get the indexes behind the last. Output alone renumbers symbols, because a
// symbol table wants its local symbols first (gABI, "Symbol Table", sh_info).
//
// Slices that an Edit is given belong to it, and are not to be modified until what
// Output returns was written.
type Edit struct {
	o       *Object
	symbols *Symbols

	appended        map[int][]byte    // by section
	relocs          []*relocEdit      // by relocation section, nil where nothing changes
	members         map[int][]int     // new members by group section
	emptied         []int             // sections that Empty was given
	contents        map[int][]byte    // by section, in the place of the object's: what SetData was given, patched
	sections        []newSection      // behind the last of the object
	replacedSymbols map[uint32]Symbol // new contents of symbols
	removed         map[uint32]uint32 // removed symbols, and what takes their place
	redirected      map[uint32]uint32 // by RedirectSymbol: symbols that stay, and what is referred to in their place
	comdats         map[int]bool      // groups of the object that SetComdat was given
	dropped         map[uint32]uint32 // by DropDebugRefs: symbols, and the type for what named them
	added           []Symbol          // behind the last of the object
	sectionSymbols  []uint32          // nameless section symbols by section, 0 for none
	groups          map[int]int       // group section by member
	targets         []*RelocSection   // relocation section by target, nil for none
	addedTargets    map[int]int       // by AddRelocationSection: the index of the new section, by target
}

// Patch is a change of some bytes of a section.
type Patch struct {
	Offset uint64 // in the section, bytes
	Old    []byte // verified
	New    []byte // as long as Old
}

type relocEdit struct {
	set     []relocationEntry // sorted by Output
	deleted []int             // sorted by Output
	added   []Relocation
}

// relocationEntry is an entry of a relocation section, with its index.
type relocationEntry struct {
	index int
	Relocation
}

type newSection struct {
	Section
	data []byte // of a relocation section, with symbols as the Edit has them
}

// NewSection is what AddSection needs to know.
type NewSection struct {
	Name       string
	Type       elf.SectionType
	Flags      elf.SectionFlag // without SHF_GROUP
	Align      uint64          // bytes, a power of two; 0 and 1 both mean none
	Entsize    uint64          // bytes; 0 if the section is not a table
	Data       []byte          // may still be filled in, but not resized, until Output
	Relocs     bool            // whether a relocation section goes with it
	Rela       bool            // whether that is SHT_RELA, and not SHT_REL
	RelocCount int             // how many relocations to make room for
	GroupOf    int             // the section whose group it joins, or that group, 0 for none
	Link       int             // the section that its sh_link names (SHF_LINK_ORDER), 0 for none
}

// Edit starts to collect changes. It reads the symbols, the section groups and the
// headers of relocation sections, and refuses an object in which these make no sense.
func (o *Object) Edit() (*Edit, error) {
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	groups, err := o.Groups()
	if err != nil {
		return nil, err
	}
	rels, err := o.RelocSections()
	if err != nil {
		return nil, err
	}
	e := &Edit{
		o: o, symbols: syms, groups: groups, sectionSymbols: syms.sectionSymbols(),
		appended: map[int][]byte{}, relocs: make([]*relocEdit, len(o.Sections)),
		members: map[int][]int{}, replacedSymbols: map[uint32]Symbol{}, removed: map[uint32]uint32{}, dropped: map[uint32]uint32{},
		contents: map[int][]byte{}, redirected: map[uint32]uint32{}, comdats: map[int]bool{},
		targets: make([]*RelocSection, len(o.Sections)), addedTargets: map[int]int{},
	}
	for i := range rels {
		e.targets[rels[i].Target] = &rels[i]
	}
	return e, nil
}

// Object returns the object that the edit is of.
func (e *Edit) Object() *Object { return e.o }

// Changed reports whether anything was collected.
func (e *Edit) Changed() bool {
	return len(e.appended)+len(e.contents)+len(e.emptied)+len(e.sections)+len(e.replacedSymbols)+len(e.removed)+len(e.redirected)+len(e.comdats)+len(e.dropped)+len(e.added) > 0 ||
		slices.ContainsFunc(e.relocs, func(re *relocEdit) bool { return re != nil })
}

// Patch replaces bytes of a section of the object. It panics if a patch changes their length. An error is that they are not in
// the file, or are others than p.Old.
func (e *Edit) Patch(sec int, p Patch) error {
	if len(p.Old) != len(p.New) {
		panic("elfreloc: a patch that changes the length")
	}
	data, ok := e.contents[sec]
	if !ok {
		var err error
		if data, err = e.o.Data(sec); err != nil {
			return err
		}
		e.contents[sec] = data
	}
	if size := uint64(len(data)); p.Offset > size || uint64(len(p.Old)) > size-p.Offset {
		return e.o.OffsetError(sec, p.Offset, fmt.Errorf("a change of %d bytes in a section with %d bytes of contents", len(p.Old), size))
	}
	for i, want := range p.Old {
		if got := data[p.Offset+uint64(i)]; got != want {
			return e.o.OffsetError(sec, p.Offset+uint64(i), fmt.Errorf("got byte %#02x, want %#02x: the file was changed while it was read", got, want))
		}
	}
	copy(data[p.Offset:], p.New)
	return nil
}

// Empty sets the size of a section of the object to 0. Nothing may refer into it. Its bytes stay in the file, in no
// section.
func (e *Edit) Empty(sec int) {
	if e.o.Sections[sec].Size > 0 {
		e.emptied = append(e.emptied, sec)
	}
}

// SetData replaces the contents of a section of the object. Its relocations keep their offsets unless they are set.
func (e *Edit) SetData(sec int, data []byte) { e.contents[sec] = data }

// Append adds bytes to the end of a section of the object, and returns their
// offset, in bytes.
func (e *Edit) Append(sec int, data []byte) uint64 {
	off := e.o.Sections[sec].Size + uint64(len(e.appended[sec]))
	e.appended[sec] = append(e.appended[sec], data...)
	return off
}

func (e *Edit) relocEdit(rs RelocSection) *relocEdit {
	re := e.relocs[rs.Index]
	if re == nil {
		re = &relocEdit{}
		e.relocs[rs.Index] = re
	}
	return re
}

// GrowRelocations makes room for n entries of a relocation section that will be set.
func (e *Edit) GrowRelocations(rs RelocSection, n int) {
	re := e.relocEdit(rs)
	re.set = slices.Grow(re.set, n)
}

// SetRelocation replaces entry i of a relocation section. An entry is set or deleted once.
func (e *Edit) SetRelocation(rs RelocSection, i int, r Relocation) {
	re := e.relocEdit(rs)
	re.set = append(re.set, relocationEntry{i, r})
}

// DeleteRelocation removes entry i of a relocation section.
func (e *Edit) DeleteRelocation(rs RelocSection, i int) {
	re := e.relocEdit(rs)
	re.deleted = append(re.deleted, i)
}

// AddRelocation adds a relocation that applies to section sec, which may be new. That
// a section of the object has no relocation section is an error; a new one must have
// one (NewSection.Relocs). In SHT_REL the addend has to be in the section's bytes.
func (e *Edit) AddRelocation(sec int, r Relocation) error {
	if i := sec - len(e.o.Sections); i >= 0 {
		rel := &e.sections[i+1]
		rel.data = e.o.Encoding.appendReloc(rel.data, r, rel.Type == elf.SHT_RELA)
		return nil
	}
	rs := e.targets[sec]
	if i, ok := e.addedTargets[sec]; ok && rs == nil {
		rel := &e.sections[i-len(e.o.Sections)]
		rel.data = e.o.Encoding.appendReloc(rel.data, r, rel.Type == elf.SHT_RELA)
		return nil
	}
	if rs == nil {
		return e.o.SectionError(sec, fmt.Errorf("has no relocation section"))
	}
	re := e.relocEdit(*rs)
	re.added = append(re.added, r)
	return nil
}

// Symbol returns symbol i as the edit has it.
func (e *Edit) Symbol(i uint32) Symbol {
	if n := uint32(e.symbols.Len()); i >= n {
		return e.added[i-n]
	}
	if s, ok := e.replacedSymbols[i]; ok {
		return s
	}
	return e.symbols.At(int(i))
}

// SetSymbol replaces symbol i, which has to stay as local or global as it was.
func (e *Edit) SetSymbol(i uint32, s Symbol) {
	if n := uint32(e.symbols.Len()); i >= n {
		e.added[i-n] = s
		return
	}
	e.replacedSymbols[i] = s
}

// RemoveSymbol removes a global symbol. Whatever still refers to it refers to
// replacement afterwards; 0 is the undefined symbol.
func (e *Edit) RemoveSymbol(i, replacement uint32) { e.removed[i] = replacement }

// RedirectSymbol makes all that refers to local symbol i, signatures of groups too, refer to replacement. The
// symbol stays in the table.
func (e *Edit) RedirectSymbol(i, replacement uint32) { e.redirected[i] = replacement }

// SetComdat makes a group of the object one of those of which linkers keep one for each name of a signature.
func (e *Edit) SetComdat(group int) { e.comdats[group] = true }

// DropDebugRefs removes references to symbol i from sections that are not loaded: their
// relocations become of type none, against no symbol and with no addend. In SHT_RELA,
// where assemblers leave the field zero, no address is left either.
func (e *Edit) DropDebugRefs(i, none uint32) { e.dropped[i] = none }

// AddSymbol adds a symbol and returns its index, which holds for this Edit alone.
func (e *Edit) AddSymbol(s Symbol) uint32 {
	e.added = append(e.added, s)
	return uint32(e.symbols.Len() + len(e.added) - 1)
}

// SectionSymbol returns the nameless STT_SECTION symbol of a section, and
// makes it where the compiler left it out.
func (e *Edit) SectionSymbol(sec int) uint32 {
	if missing := sec + 1 - len(e.sectionSymbols); missing > 0 {
		e.sectionSymbols = append(e.sectionSymbols, make([]uint32, missing)...)
	}
	if e.sectionSymbols[sec] == 0 {
		e.sectionSymbols[sec] = e.AddSymbol(Symbol{Bind: elf.STB_LOCAL, Type: elf.STT_SECTION, Section: sec})
	}
	return e.sectionSymbols[sec]
}

// grpComdat is the flag of a COMDAT group (gABI, "Section Groups").
const grpComdat = 1

// AddGroup adds a COMDAT group and returns its section's index. Linkers keep one group
// for each name of a signature, which is a symbol (gABI, "Section Groups"). A section
// joins it that has the index as NewSection.GroupOf.
func (e *Edit) AddGroup(signature uint32) int { return e.addGroup(signature, grpComdat) }

// AddPlainGroup adds a group whose sections linkers keep or drop together, whatever its signature's name. It returns its section's index.
func (e *Edit) AddPlainGroup(signature uint32) int { return e.addGroup(signature, 0) }

func (e *Edit) addGroup(signature, groupFlags uint32) int {
	flags := make([]byte, 4)
	e.o.Encoding.Order.PutUint32(flags, groupFlags)
	index := e.AddSection(NewSection{Name: ".group", Type: elf.SHT_GROUP, Align: 4, Entsize: 4, Data: flags})
	s := &e.sections[index-len(e.o.Sections)]
	s.Link, s.Info = uint32(e.o.symtab), signature
	e.groups[index] = index
	return index
}

// IsGrouped reports whether a section is in a group.
func (e *Edit) IsGrouped(sec int) bool { return e.groups[sec] != 0 }

// AddSection adds a section, with a relocation section behind it if asked for, and
// returns its index. Both are members of the group of n.GroupOf (gABI, "Section Groups").
func (e *Edit) AddSection(n NewSection) int {
	index := len(e.o.Sections) + len(e.sections)
	s := newSection{data: n.Data, Section: Section{
		Name: n.Name, Type: n.Type, Flags: n.Flags, Align: n.Align, Entsize: n.Entsize, Size: uint64(len(n.Data)),
		Link: uint32(n.Link),
	}}
	group, grouped := e.groups[n.GroupOf]
	if grouped {
		s.Flags |= elf.SHF_GROUP
		e.members[group] = append(e.members[group], index)
		e.groups[index] = group
	}
	e.sections = append(e.sections, s)
	if !n.Relocs {
		return index
	}
	e.addRelocations(index, n.Name, n.Rela, n.RelocCount)
	return index
}

// AddRelocationSection adds a relocation section for a section of the object that has none.
func (e *Edit) AddRelocationSection(sec int, rela bool) {
	e.addedTargets[sec] = e.addRelocations(sec, e.o.Sections[sec].Name, rela, 1)
}

// addRelocations adds a relocation section for the section of an index and a name, in its group, with room for some
// relocations, and returns the new section's index.
func (e *Edit) addRelocations(target int, name string, rela bool, count int) int {
	index := len(e.o.Sections) + len(e.sections)
	rel := newSection{Section: Section{
		Name: ".rel" + name, Type: elf.SHT_REL, Flags: elf.SHF_INFO_LINK, Align: uint64(e.o.Encoding.Word()),
		Entsize: uint64(e.o.Encoding.relocSize(rela)), Link: uint32(e.o.symtab), Info: uint32(target),
	}}
	rel.data = make([]byte, 0, count*int(rel.Entsize))
	if rela {
		rel.Name, rel.Type = ".rela"+name, elf.SHT_RELA
	}
	if group, grouped := e.groups[target]; grouped {
		rel.Flags |= elf.SHF_GROUP
		e.members[group] = append(e.members[group], index)
	}
	e.sections = append(e.sections, rel)
	return index
}

// AddComdat adds a section in a COMDAT group of its own, of which a link keeps
// one of each name. It returns the index of the section. The group's name is that
// of the section. GNU as lets the section's own, nameless symbol stand for it,
// but mold's -r takes all groups of nameless symbols for one.
func (e *Edit) AddComdat(n NewSection) int {
	section := len(e.o.Sections) + len(e.sections) + 1 // the group precedes it (gABI, "Section Groups")
	n.GroupOf = e.AddGroup(e.AddSymbol(Symbol{Name: n.Name, Bind: elf.STB_LOCAL, Section: section}))
	return e.AddSection(n)
}
