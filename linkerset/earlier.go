package linkerset

// An object that was converted before holds records already: in the layout that is
// wanted now, or in another.

import (
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Earlier reports whether the object holds records of this layout from an
// earlier conversion. Records of another layout are an error: a program reads
// one kind. It looks at section headers, and only for a section of another
// name that has the shape of records at what refers to it, for which m must not be
// nil. Errors are of type *elfreloc.Error.
func (l Layout) Earlier(o *elfreloc.Object, m arch.Machine) (bool, error) {
	found := false
	var suspects []int
	for i := range o.Sections {
		sec := &o.Sections[i]
		if !isIdentifier(sec.Name) {
			continue
		}
		other, ok := l.madeWith(sec)
		switch {
		case ok && other == "":
			found = true
		case ok:
			return false, l.conflict(o, i, other)
		case l.looksLikeRecords(o, sec):
			suspects = append(suspects, i)
		}
	}
	if len(suspects) == 0 || m == nil {
		return found, nil
	}
	kept, err := KeptAlive(o, m)
	if err != nil {
		return false, err
	}
	for _, i := range suspects {
		if kept[i] {
			return false, l.conflict(o, i, "another --section")
		}
	}
	return found, nil
}

// madeWith tells the command-line flags that make record sections like one, ""
// for those of l itself.
func (l Layout) madeWith(sec *elfreloc.Section) (flags string, ok bool) {
	if _, ok := l.IsRecordSection(sec); ok {
		return "", true
	}
	for _, base := range []string{l.Name, ""} {
		for f := range formats {
			other := Layout{Format(f), base}
			if _, ok := other.IsRecordSection(sec); !ok {
				continue
			}
			if other.Format == l.Format {
				return "another --section", true
			}
			return "--layout " + other.Format.String(), true
		}
	}
	return "", false
}

func (l Layout) conflict(o *elfreloc.Object, sec int, other string) error {
	return o.SectionError(sec, fmt.Errorf("the object was converted before with %s; convert it as it was compiled, or with the same flags", other))
}

// looksLikeRecords reports whether a section with a proper name has the shape of
// a section of records.
func (l Layout) looksLikeRecords(o *elfreloc.Object, sec *elfreloc.Section) bool {
	const shape = elf.SHF_ALLOC | elf.SHF_WRITE | elf.SHF_GROUP
	word := uint64(o.Encoding.Word())
	return sec.Type == elf.SHT_PROGBITS && sec.Flags&elf.SHF_ALLOC != 0 && sec.Flags&^shape == 0 &&
		(sec.Entsize == 2*word || sec.Entsize == word)
}

// KeptAlive returns the sections, by index, that code refers to by relocations
// which do nothing (R_*_NONE): those whose records it keeps alive when a linker
// drops what nobody refers to. It reads the relocations of all code each time, so
// a caller that asks more than once keeps the answer. m must not be nil; errors are of
// type *elfreloc.Error.
func KeptAlive(o *elfreloc.Object, m arch.Machine) (map[int]bool, error) {
	kept := make(map[int]bool)
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	rels, err := o.RelocSections()
	if err != nil {
		return nil, err
	}
	none := m.Traits().None
	for _, rs := range rels {
		if !o.Sections[rs.Target].Executable() {
			continue
		}
		err := o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			if r.Type == none && r.Sym != 0 {
				if s := syms.At(int(r.Sym)); s.Section > 0 && (s.Type == elf.STT_SECTION || s.Name == sectionMark) {
					kept[s.Section] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return kept, nil
}
