package elfreloc

import (
	"cmp"
	"debug/elf"
	"fmt"
	"math"
	"slices"
)

// saver turns one Edit into one Output.
type saver struct {
	e        *Edit
	o        *Object
	numbers  numbering
	unloaded []uint32   // numbers.final for what is not loaded, once it is needed
	sections []Section  // the new section header table
	content  [][]Extent // by section, nil for those that do not change
	strings  map[int]*stringTable
	out      Output
}

// Output lays the new file out. It reads the tables that change, and leaves the
// rest to the writer of the extents. It is called once, and the Edit is of no use
// afterwards. Errors are of type *Error: an object with program headers, or without
// sections; changes that overlap; relocations that do not use the symbol table; symbols that
// have to move although some section of unknown type names them by index; sizes that the
// format cannot hold.
func (e *Edit) Output() (*Output, error) {
	if e.o.phnum != 0 {
		return nil, e.o.errorf("a relocatable object with program headers")
	}
	if len(e.o.Sections) == 0 {
		return nil, e.o.errorf("a relocatable object without sections")
	}
	s := &saver{
		e: e, o: e.o, numbers: e.number(), strings: map[int]*stringTable{},
		content: make([][]Extent, len(e.o.Sections), len(e.o.Sections)+len(e.sections)+1),
	}
	if err := e.checkUsers(s.numbers.moved); err != nil {
		return nil, err
	}
	for _, step := range []func() error{s.addSections, s.writeSymbols, s.nameSections, s.writeGroups, s.writeRelocations, s.writeContents, s.layOut} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &s.out, nil
}

// addSections makes the new section header table, but for names and offsets.
func (s *saver) addSections() error {
	s.sections = make([]Section, 0, len(s.o.Sections)+len(s.e.sections)+1) // and perhaps .symtab_shndx
	s.sections = append(s.sections, s.o.Sections...)
	for _, n := range s.e.sections {
		switch {
		case n.Type == elf.SHT_REL || n.Type == elf.SHT_RELA:
			if err := s.renumber(RelocSection{Rela: n.Type == elf.SHT_RELA}, n.data, s.numbers.final); err != nil {
				return err
			}
		case n.Type == elf.SHT_GROUP:
			n.Info = s.numbers.final[n.Info]
			n.data = s.appendMembers(n.data, s.e.members[len(s.sections)])
		}
		s.appendSection(n.Section, n.data)
	}
	return nil
}

// nameSections gives the new sections names, and writes the string tables.
func (s *saver) nameSections() error {
	if added := s.sections[len(s.o.Sections):]; len(added) > 0 {
		t, err := s.stringTable(s.o.shstrndx)
		if err != nil {
			return err
		}
		for i := range added {
			added[i].nameOff = t.addSection(added[i].Name)
		}
	}
	for sec, t := range s.strings {
		if uint64(len(t.data)) > math.MaxUint32 {
			return s.o.SectionError(sec, fmt.Errorf("string table exceeds 4 GiB"))
		}
		s.setData(sec, t.data)
	}
	return nil
}

// writeGroups appends new members, and moves the signatures.
func (s *saver) writeGroups() error {
	for i := range s.o.Sections {
		sec := &s.sections[i]
		if sec.Type == elf.SHT_GROUP && int(sec.Link) == s.o.symtab && int(sec.Info) < s.e.symbols.Len() {
			sec.Info = s.numbers.final[sec.Info]
		}
		if members := s.e.members[i]; len(members) > 0 || s.e.comdats[i] {
			data, err := s.o.Data(i)
			if err != nil {
				return err
			}
			if order := s.o.Encoding.Order; s.e.comdats[i] {
				order.PutUint32(data, order.Uint32(data)|grpComdat)
			}
			s.setData(i, s.appendMembers(data, members))
		}
		if sec.Type == shtAddrsig && int(sec.Link) == s.o.symtab && s.numbers.moved {
			data, err := s.e.addrsig(i, s.numbers)
			if err != nil {
				return err
			}
			s.setData(i, data)
		}
	}
	return nil
}

func (s *saver) appendMembers(data []byte, members []int) []byte {
	for _, m := range members {
		data = append(data, 0, 0, 0, 0)
		s.o.Encoding.Order.PutUint32(data[len(data)-4:], uint32(m))
	}
	return data
}

// writeContents writes what sections have in the place of the object's contents, and appends what is appended to them.
func (s *saver) writeContents() error {
	for i := range s.o.Sections {
		data, ok := s.e.contents[i]
		if !ok && len(s.e.appended[i]) == 0 {
			continue
		}
		if !ok {
			var err error
			if data, err = s.o.Data(i); err != nil {
				return err
			}
		}
		s.setData(i, append(data, s.e.appended[i]...))
	}
	return nil
}

// layOut places the contents. Sections keep their order, and the offsets they
// had until one of them changes its size; those behind it move, so that no old
// table is left in the file. New sections and the section header table, which
// has grown then, are last.
func (s *saver) layOut() error {
	order, err := s.o.fileOrder()
	if err != nil {
		return err
	}
	header := slices.Clone(s.o.header) // its fields are written last
	s.emit(Extent{Data: header, Len: int64(len(header))})
	moved := false
	for _, i := range order {
		old, sec := &s.o.Sections[i], &s.sections[i]
		moved = moved || !old.InFile() && sec.InFile()
		switch {
		case moved:
			s.pad(s.o.alignment(old))
			sec.Offset = uint64(s.out.Size)
		case old.InFile():
			s.emitInput(uint64(s.out.Size), old.Offset-uint64(s.out.Size))
		}
		moved = moved || inFileSize(sec) != inFileSize(old)
		s.emitSection(i)
	}
	for i := len(s.o.Sections); i < len(s.sections); i++ {
		s.pad(s.sections[i].Align)
		s.sections[i].Offset = uint64(s.out.Size)
		s.emitSection(i)
	}
	for _, sec := range s.e.emptied {
		s.sections[sec].Size = 0
	}
	s.pad(uint64(s.o.Encoding.Word()))
	s.emitSectionTable(header)
	if limit := int64(1) << 32; s.o.Encoding.Class == elf.ELFCLASS32 && s.out.Size >= limit {
		return s.o.errorf("the result exceeds 4 GiB, the limit of a 32-bit object")
	}
	return nil
}

// fileOrder lists the sections in the order of their contents in the file, and
// refuses contents that overlap: no compiler makes them, there is no way to
// change one of two such sections, and reading all of them could take time and
// memory out of all proportion to the file.
func (o *Object) fileOrder() ([]int, error) {
	if o.order != nil {
		return o.order, nil
	}
	order := make([]int, 0, len(o.Sections))
	for i := 1; i < len(o.Sections); i++ {
		if o.Sections[i].Type != elf.SHT_NULL {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &o.Sections[a], &o.Sections[b]
		if c := cmp.Compare(x.Offset, y.Offset); c != 0 {
			return c
		}
		return cmp.Compare(inFileSize(x), inFileSize(y))
	})
	end, last := uint64(o.Encoding.headerSize()), "the ELF header"
	for _, i := range order {
		s := &o.Sections[i]
		if !s.InFile() {
			continue
		}
		if s.Offset < end {
			return nil, o.SectionError(i, fmt.Errorf("overlaps %s in the file, at offset %#x", last, s.Offset))
		}
		end, last = s.Offset+s.Size, o.sectionLabel(i)
	}
	o.order = order
	return order, nil
}

func inFileSize(s *Section) uint64 {
	if s.InFile() {
		return s.Size
	}
	return 0
}

// alignment returns the alignment for a section that moves: what it asks for, but no more than its old offset had. A
// section without contents may claim any offset.
func (o *Object) alignment(s *Section) uint64 {
	if s.Align&(s.Align-1) != 0 || s.Align == 0 || s.Offset == 0 || s.Offset > uint64(o.size) {
		return 1
	}
	return min(s.Align, s.Offset&-s.Offset)
}

func (s *saver) emitSection(i int) {
	if content := s.content[i]; content != nil {
		for _, x := range content {
			s.emit(x)
		}
	} else if sec := &s.sections[i]; sec.InFile() {
		s.emitInput(s.o.Sections[i].Offset, sec.Size)
	}
}

// emitSectionTable writes the section headers, and where they are into the ELF
// header. A count that does not fit there is in section 0 (gABI, "ELF Header").
func (s *saver) emitSectionTable(start []byte) {
	num, strndx := len(s.sections), s.o.shstrndx
	null := &s.sections[0]
	if num >= int(elf.SHN_LORESERVE) {
		null.Size, num = uint64(num), 0
	}
	if strndx >= int(elf.SHN_LORESERVE) {
		null.Link, strndx = uint32(strndx), int(elf.SHN_XINDEX)
	}
	var h header
	s.o.Encoding.header(start, &h, false)
	h.ShOff, h.ShNum, h.ShStrNdx = uint64(s.out.Size), uint16(num), uint16(strndx)
	s.o.Encoding.header(start, &h, true)
	size := s.o.Encoding.sectionHeaderSize()
	table := make([]byte, len(s.sections)*size)
	for i := range s.sections {
		s.o.Encoding.section(table[i*size:], &s.sections[i], true)
	}
	s.emit(Extent{Data: table, Len: int64(len(table))})
}

func (s *saver) pad(align uint64) {
	if align > 1 {
		if n := -uint64(s.out.Size) & (align - 1); n > 0 {
			s.emit(Extent{Data: make([]byte, n), Len: int64(n)})
		}
	}
}

func (s *saver) emitInput(off, n uint64) {
	s.emit(Extent{Src: int64(off), Len: int64(n)})
}

// isCopy reports whether an extent is a part of the input that stays as it is.
func (x *Extent) isCopy() bool { return x.Data == nil && x.From == nil }

// emit appends an extent, and joins it to the last one where it can.
func (s *saver) emit(x Extent) {
	if x.Len == 0 {
		return
	}
	s.out.Size += x.Len
	if n := len(s.out.Extents); n > 0 {
		last := &s.out.Extents[n-1]
		if x.isCopy() && last.isCopy() && last.Src+last.Len == x.Src {
			last.Len += x.Len
			return
		}
	}
	s.out.Extents = append(s.out.Extents, x)
}

func (s *saver) setData(sec int, data []byte) {
	s.content[sec] = []Extent{{Data: data, Len: int64(len(data))}}
	s.sections[sec].Size = uint64(len(data))
}

func (s *saver) stringTable(sec int) (*stringTable, error) {
	t := s.strings[sec]
	if t == nil {
		data, err := s.o.stringTable(sec)
		if err != nil {
			return nil, err
		}
		t = newStringTable(data)
		s.strings[sec] = t
	}
	return t, nil
}

func (s *saver) appendSection(sec Section, data []byte) {
	sec.Size = uint64(len(data))
	s.sections, s.content = append(s.sections, sec), append(s.content, []Extent{{Data: data, Len: int64(len(data))}})
}
