package elfreloc

import (
	"debug/elf"
	"fmt"
	"math"
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

// Save lays the new file out. It reads the tables that change, and leaves the
// rest to the writer of the extents. It is called once, and the Edit is of no use
// afterwards. Errors are of type *Error: an object with program headers, or without
// sections; changes that overlap; relocations that do not use the symbol table; symbols that
// have to move although some section of unknown type names them by index; sizes that the
// format cannot hold.
func (e *Edit) Save() (*Output, error) {
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
	for _, step := range []func() error{s.addSections, s.writeSymbols, s.nameSections, s.writeGroups, s.writeRelocations, s.writePatches, s.layOut} {
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
			n.data = n.relocs
			if err := s.renumber(RelocSection{Rela: n.rela}, n.data, s.numbers.final); err != nil {
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
		if members := s.e.members[i]; len(members) > 0 {
			data, err := s.o.Data(i)
			if err != nil {
				return err
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

// writePatches writes the patches of each section, whose old bytes have to be what they were when
// the patch was planned, and appends what is appended to it.
func (s *saver) writePatches() error {
	for i := range s.o.Sections {
		patches, err := s.e.sortPatches(i)
		if err != nil {
			return err
		}
		if len(patches)+len(s.e.appended[i]) == 0 {
			continue
		}
		if len(patches) > 0 && !s.sections[i].InFile() {
			return s.o.OffsetError(i, patches[0].Offset, fmt.Errorf("a change to a section without contents"))
		}
		data, err := s.o.Data(i)
		if err != nil {
			return err
		}
		for _, p := range patches {
			for j, want := range p.Old {
				if got := data[p.Offset:][j]; got != want {
					return s.o.OffsetError(i, p.Offset+uint64(j), fmt.Errorf("got byte %#02x, want %#02x: the file was changed while it was read", got, want))
				}
			}
			copy(data[p.Offset:], p.New)
		}
		s.setData(i, append(data, s.e.appended[i]...))
	}
	return nil
}
