package elfreloc

import (
	"debug/elf"
	"fmt"
	"math"
	"sort"
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
	s.addSections()
	for _, step := range []func() error{s.writeSymbols, s.nameSections, s.writeGroups, s.writeRelocations, s.writePatches, s.layOut} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &s.out, nil
}

// addSections makes the new section header table, but for names and offsets.
func (s *saver) addSections() {
	s.sections = make([]Section, 0, len(s.o.Sections)+len(s.e.sections)+1) // and perhaps .symtab_shndx
	s.sections = append(s.sections, s.o.Sections...)
	for _, n := range s.e.sections {
		isRelocs := n.Type == elf.SHT_REL || n.Type == elf.SHT_RELA
		switch {
		case isRelocs:
			n.data = n.relocs
			s.renumberNew(n.data, n.rela)
		case n.Type == elf.SHT_GROUP:
			n.Info = s.numbers.final[n.Info]
			n.data = s.appendMembers(n.data, s.e.members[len(s.sections)])
		}
		s.appendSection(n.Section, n.data)
	}
}

// renumberNew gives entries of a new section, with symbols as the Edit has them, their new
// symbols.
func (s *saver) renumberNew(entries []byte, rela bool) {
	l, final, size := s.o.Encoding, s.numbers.final, s.o.Encoding.relocSize(rela)
	for at := 0; at < len(entries); at += size {
		b := entries[at : at+size]
		if sym := l.relocSymbol(b); final[sym] != sym {
			r := l.getReloc(b, rela)
			r.Sym = final[sym]
			l.putReloc(b, r, rela)
		}
	}
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

// writePatches overlays the patches of each section, and appends what is
// appended to it.
func (s *saver) writePatches() error {
	for i := range s.o.Sections {
		patches, err := s.e.sortPatches(i)
		if err != nil {
			return err
		}
		appended := s.e.appended[i]
		if len(patches)+len(appended) == 0 {
			continue
		}
		sec := &s.sections[i]
		if len(patches) > 0 && !sec.InFile() {
			return s.o.OffsetError(i, patches[0].Offset, fmt.Errorf("a change to a section without contents"))
		}
		s.content[i] = []Extent{
			{Src: int64(sec.Offset), Len: int64(sec.Size), Rewrite: s.overlay(i, patches)},
			{Data: appended, Len: int64(len(appended))},
		}
		sec.Size += uint64(len(appended))
	}
	return nil
}

// overlay writes patches into blocks of a section, after it has seen that the
// old bytes are what they were when the patch was planned.
func (s *saver) overlay(sec int, patches []Patch) func(int64, []byte) error {
	return func(at int64, block []byte) error {
		start, end := uint64(at), uint64(at)+uint64(len(block))
		first := sort.Search(len(patches), func(i int) bool {
			return patches[i].Offset+uint64(len(patches[i].Old)) > start
		})
		for _, p := range patches[first:] {
			if p.Offset >= end {
				break
			}
			for i, old := range p.Old {
				off := p.Offset + uint64(i)
				if off < start || off >= end {
					continue
				}
				if got := block[off-start]; got != old {
					return s.o.OffsetError(sec, off, fmt.Errorf("got byte %#02x, want %#02x: the file was changed while it was read", got, old))
				}
				block[off-start] = p.New[i]
			}
		}
		return nil
	}
}
