package linkerset

// An object that was converted before holds records already: in the layout that is
// wanted now, or in another.

import (
	"debug/elf"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// CheckEarlier reports whether the object holds records of this layout from an
// earlier conversion. Records of another layout are an error: a program reads
// one kind. It looks at the names of sections: records of another --section are not found. Errors are
// of type *elfreloc.Error.
func (l Layout) CheckEarlier(o *elfreloc.Object) (bool, error) {
	if err := CheckVersion(o); err != nil {
		return false, err
	}
	found := false
	for i := range o.Sections {
		sec := &o.Sections[i]
		if !isIdentifier(sec.Name) {
			continue
		}
		switch flags, ok := l.madeWith(sec); {
		case ok && flags == "":
			found = true
		case ok:
			return false, l.conflict(o, i, flags)
		}
	}
	return found, nil
}

// AnchoredSections returns the sections, by index, that code refers to by relocations
// which do nothing (R_*_NONE): those whose records it keeps alive when a linker
// drops unreferenced sections. It reads the relocations of all code each time, so
// a caller that asks more than once keeps the answer. m must not be nil; errors are of
// type *elfreloc.Error.
func AnchoredSections(o *elfreloc.Object, m arch.Machine) (map[int]bool, error) {
	anchored := make(map[int]bool)
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	none := m.Traits().None
	err = o.EachRelocationOf((*elfreloc.Section).Executable, func(_ int, r elfreloc.Relocation) error {
		if r.Type == none && r.Sym != 0 {
			if s := syms.At(int(r.Sym)); s.Section > 0 && (s.Type == elf.STT_SECTION || s.Name == sectionMark) {
				anchored[s.Section] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return anchored, nil
}

// ProbeSymbol returns the name of the global symbol by which the first record of a relocatable
// object that has one refers to its probe object, or "" if none has.
func (l Layout) ProbeSymbol(o *elfreloc.Object) (string, error) {
	relocs, err := o.RelocSections()
	if err != nil {
		return "", err
	}
	syms, err := o.Symbols()
	if err != nil {
		return "", err
	}
	for _, rs := range relocs {
		if !l.beginsWithProbe(&o.Sections[rs.Target]) {
			continue
		}
		name := ""
		err := o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
			if sym := syms.At(int(r.Sym)); sym.Bind == elf.STB_GLOBAL {
				name = sym.Name
			}
			return errFirst
		})
		if err != nil && !errors.Is(err, errFirst) {
			return "", err
		}
		if name != "" {
			return name, nil
		}
	}
	return "", nil
}

// errFirst ends the reading of relocations after the first.
var errFirst = errors.New("the first relocation")

// beginsWithProbe reports whether a section of the layout holds entries whose first field
// refers to the probe object.
func (l Layout) beginsWithProbe(sec *elfreloc.Section) bool {
	const word = 8 // no name depends on it
	for kind := range arch.Kinds {
		for _, array := range l.Arrays(kind, word) {
			if array.Name == sec.Name && array.Entry[0].To == ToProbe {
				return true
			}
		}
	}
	return false
}

// madeWith returns the command-line flags that make record sections like sec, or ""
// if l makes it. ok is false if sec is no record section.
func (l Layout) madeWith(sec *elfreloc.Section) (flags string, ok bool) {
	if _, ok := l.IsRecordSection(sec); ok {
		return "", true
	}
	for _, base := range []string{l.Name, ""} {
		for f := range formats {
			if Format(f) == Tracepoints {
				continue // written by the compiler, and may be beside calls of stubs
			}
			candidate := Layout{Format(f), base}
			if _, ok := candidate.IsRecordSection(sec); !ok {
				continue
			}
			if candidate.Format == l.Format {
				return "another --section", true
			}
			return "--layout " + candidate.Format.String(), true
		}
	}
	return "", false
}

func (l Layout) conflict(o *elfreloc.Object, sec int, flags string) error {
	return o.SectionError(sec, fmt.Errorf("the object was converted before with %s; convert it as it was compiled, or with the same flags", flags))
}

// The name of a section is the version of its records: a linker puts sections of one name
// together, so no header can say it. Version 1 has no number in its names.

// layoutVersion is the version of the layouts of records.
const layoutVersion = 1

// laterNames matches the names of sections of later versions.
var laterNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:set_)?sdt_(?:instances|isenabled)([2-9]|[1-9][0-9]+)(?:_set|_rel)?$`)
})

// CheckVersion returns an *elfreloc.Error if a file holds records of a later version than this
// package reads.
func CheckVersion(o *elfreloc.Object) error {
	for i := range o.Sections {
		if !strings.Contains(o.Sections[i].Name, "sdt_i") { // as most
			continue
		}
		if match := laterNames().FindStringSubmatch(o.Sections[i].Name); match != nil {
			return o.SectionError(i, fmt.Errorf("records of version %s, and this program reads version %d; use a later sdtconvert", match[1], layoutVersion))
		}
	}
	return nil
}
