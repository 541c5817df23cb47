package check

import (
	"debug/elf"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// isGOT reports whether a section is a part of the global offset table.
func isGOT(sec *elfreloc.Section) bool { return strings.HasPrefix(sec.Name, ".got") }

func (s *linkedStubs) inGOT(addr uint64) bool {
	for i := range s.Sections {
		if sec := &s.Sections[i]; isGOT(sec) && addr-sec.Addr < sec.Size {
			return true
		}
	}
	return false
}

// offsetTable is the address that _GLOBAL_OFFSET_TABLE_ has, 0 where there is no table. With
// -z now, GNU ld makes one section of its two, which begins there.
func (s *linkedStubs) offsetTable() uint64 {
	for _, name := range []string{".got.plt", ".got"} {
		for i := range s.Sections {
			if s.Sections[i].Name == name {
				return s.Sections[i].Addr
			}
		}
	}
	return 0
}

// throughSlots looks for code that calls stubs through slots of the global offset
// table: calls themselves, and the entries of procedure linkage tables.
func (s *linkedStubs) throughSlots(sec *elfreloc.Section) func([]byte, uint64) error {
	if sec.Flags&elf.SHF_EXECINSTR == 0 {
		return nil
	}
	found := s.indirect
	if strings.HasPrefix(sec.Name, ".plt") {
		found = s.entry
	}
	table := s.offsetTable()
	return func(code []byte, pc uint64) (err error) {
		s.Machine.Slots(code, pc, table, func(at, slot uint64) {
			if name := s.slots[slot]; name != "" && err == nil {
				err = found(at, name)
			}
		})
		return err
	}
}

// entry notes an entry of a procedure linkage table, wherever it may begin.
func (s *linkedStubs) entry(at uint64, name string) error {
	for _, before := range s.Machine.Traits().Entries {
		if s.at[at-before] == nil {
			s.at[at-before] = &stubFunction{names: []string{name}}
		}
	}
	return nil
}

func (s *linkedStubs) indirect(at uint64, name string) error {
	site := image.Addr{Offset: at}
	if s.live[site] || s.said[site] {
		return nil
	}
	s.said[site] = true
	return s.call(site, &stubFunction{names: []string{name}})
}
