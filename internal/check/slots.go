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

// findTable finds the address from which code counts the slots of the global offset table: the start of
// .got.plt, or the start of .got if there is no .got.plt or if mold has linked. It takes the
// start from which code reaches more slots that the loader fills.
func (s *linkedStubs) findTable() error {
	if !s.Machine.Traits().SlotsFromTable {
		return nil
	}
	most := -1
	for _, name := range []string{".got.plt", ".got"} {
		sec := s.sectionNamed(name)
		if sec == nil {
			continue
		}
		table, filled := sec.Addr, 0
		count := func(_, slot uint64) {
			if s.symbolSlots[slot] {
				filled++
			}
		}
		err := s.sections(func(sec *elfreloc.Section) func([]byte, uint64) error {
			if sec.Flags&elf.SHF_EXECINSTR == 0 {
				return nil
			}
			return func(code []byte, pc uint64) error {
				s.Machine.Slots(code, pc, table, count)
				return nil
			}
		})
		if err != nil {
			return err
		}
		if filled > most {
			most, s.slotBase = filled, table
		}
	}
	return nil
}

// throughSlots looks for code that calls stubs through slots of the global offset
// table: calls themselves, and the entries of procedure linkage tables.
func (s *linkedStubs) throughSlots(sec *elfreloc.Section) func([]byte, uint64) error {
	if sec.Flags&elf.SHF_EXECINSTR == 0 {
		return nil
	}
	found := s.indirect
	if strings.HasPrefix(sec.Name, ".plt") || s.Machine.Traits().EntriesInText {
		found = s.entry
	}
	return func(code []byte, pc uint64) (err error) {
		s.Machine.Slots(code, pc, s.slotBase, func(at, slot uint64) {
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
		if s.functions[at-before] == nil {
			s.functions[at-before] = &stubFunction{names: []string{name}}
		}
	}
	return nil
}

func (s *linkedStubs) indirect(at uint64, name string) error {
	site := image.Addr{Offset: at}
	if s.liveSites[site] || s.reported[site] {
		return nil
	}
	s.reported[site] = true
	return s.call(site, &stubFunction{names: []string{name}})
}
