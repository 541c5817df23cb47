package linkerset

// Records may stand in sections of names that are not asked for. Linkers drop the length of
// entries, so what such a section holds is read to find out.

import (
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// ForeignLayouts finds the layouts of records that an object or an image holds in sections whose
// names derive from none of the names of layouts, in the order of the
// sections. A section counts if all that it holds reads as records, and code of an object
// keeps it alive or the symbols of all of its probe objects begin with one of the prefixes.
// Errors are of type *elfreloc.Error.
func ForeignLayouts(o *elfreloc.Object, m arch.Machine, layouts []Layout, prefixes []string) ([]Layout, error) {
	sections, err := foreign(o, m, layouts, prefixes)
	if err != nil {
		return nil, err
	}
	var found []Layout
	for _, s := range sections {
		if !slices.Contains(found, s.layout) {
			found = append(found, s.layout)
		}
	}
	return found, nil
}

// foreignSection is a section of records of another name.
type foreignSection struct {
	index  int
	layout Layout
}

func foreign(o *elfreloc.Object, m arch.Machine, layouts []Layout, prefixes []string) ([]foreignSection, error) {
	if m == nil {
		return nil, nil
	}
	var im image.Image
	var anchored map[int]bool // sections that code keeps alive
	var found []foreignSection
	for i := range o.Sections {
		sec := &o.Sections[i]
		start := image.Addr{Offset: sec.Addr}
		if o.Type == elf.ET_REL {
			start = image.Addr{Section: i}
		}
		if !mayHoldRecords(sec) || isOf(layouts, sec) {
			continue
		}
		if may, err := mayBeRelocated(o, i); err != nil {
			return nil, err
		} else if !may {
			continue
		}
		if im == nil {
			var err error
			if im, err = image.Open(o, m); err != nil {
				return nil, err
			}
		}
		layout, hasPrefix, ok := readForeign(im, start, sec, prefixes)
		if ok && !hasPrefix && o.Type == elf.ET_REL {
			if anchored == nil {
				var err error
				if anchored, err = AnchoredSections(o, m); err != nil {
					return nil, err
				}
			}
			hasPrefix = anchored[i]
		}
		if ok && hasPrefix {
			found = append(found, foreignSection{i, layout})
		}
	}
	return withoutStructures(o, found), nil
}

// mayHoldRecords reports whether a section has the name and the flags of records.
func mayHoldRecords(sec *elfreloc.Section) bool {
	const shape = elf.SHF_ALLOC | elf.SHF_WRITE | elf.SHF_GROUP
	return sec.Type == elf.SHT_PROGBITS && sec.Flags&elf.SHF_ALLOC != 0 && sec.Flags&^shape == 0 && sec.Size > 0 && isIdentifier(sec.Name)
}

// mayBeRelocated reports whether a section has as many relocations as records of its size have
// fields, in some format. Those of images need none.
func mayBeRelocated(o *elfreloc.Object, sec int) (bool, error) {
	if o.Type != elf.ET_REL {
		return true, nil
	}
	rels, err := o.RelocSections()
	if err != nil {
		return false, err
	}
	relocations := 0
	for _, rs := range rels {
		if rs.Target == sec {
			relocations += rs.Len
		}
	}
	word := o.Encoding.Word()
	return slices.ContainsFunc(Formats(), func(f Format) bool {
		record := formats[f].record
		return f.fits(&o.Sections[sec], word) && uint64(relocations) >= o.Sections[sec].Size/uint64(sizeOf(record, word))*uint64(len(record))
	}), nil
}

// fits reports whether a section has a name, flags and a size of records in a format.
func (f Format) fits(sec *elfreloc.Section, word int) bool {
	name, ok := strings.CutPrefix(sec.Name, formats[f].prefix)
	l := Layout{Format: f}
	return ok && name != "" && l.writable() == (sec.Flags&elf.SHF_WRITE != 0) && sec.Size%uint64(l.Size(word)) == 0
}

// isOf reports whether a section is one of some layouts, for their records or what these
// point to.
func isOf(layouts []Layout, sec *elfreloc.Section) bool {
	return slices.ContainsFunc(layouts, func(l Layout) bool {
		_, ok := l.IsRecordSection(sec)
		return ok || sec.Name == l.structures()
	})
}

// readForeign reads a section in each layout. named tells that the symbols of all probe
// objects begin with one of the prefixes.
func readForeign(im image.Image, start image.Addr, sec *elfreloc.Section, prefixes []string) (l Layout, hasPrefix, ok bool) {
	for _, f := range Formats() {
		if !f.fits(sec, im.Encoding().Word()) {
			continue
		}
		name, kind := kindOf(strings.TrimPrefix(sec.Name, formats[f].prefix))
		l = Layout{f, name}
		a := image.Range{Name: sec.Name, Start: start, Size: uint64(l.Size(im.Encoding().Word()))}
		if _, ok = l.readsAs(im, kind, a, prefixes); !ok { // the first record, before the rest
			continue
		}
		a.Size = sec.Size
		if hasPrefix, ok = l.readsAs(im, kind, a, prefixes); ok {
			return l, hasPrefix, true
		}
	}
	return Layout{}, false, false
}

// readsAs reports whether all of an array reads as records.
func (l Layout) readsAs(im image.Image, kind arch.Kind, a image.Range, prefixes []string) (hasPrefix, ok bool) {
	hasPrefix = true
	err := l.eachOf(im, kind, a, func(e *Entry, fault *Fault) error {
		if fault != nil || e.Probe.Null() || !e.Probe.Undefined && im.Executable(e.Probe.Addr) {
			return errNoRecords
		}
		hasPrefix = hasPrefix && isNamed(im, &e.Probe, prefixes)
		return nil
	})
	return hasPrefix, err == nil
}

// errNoRecords ends the reading of a section that holds something else.
var errNoRecords = errors.New("holds no records")

// isNamed reports whether a symbol of a probe object begins with one of the prefixes.
func isNamed(im image.Image, probe *image.Ref, prefixes []string) bool {
	names := []string{probe.Symbol}
	if probe.Symbol == "" {
		names, _ = im.SymbolsAt(probe.Addr) // of a broken table none
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}

// withoutStructures leaves the sections out that records of others point to, which read as
// pairs.
func withoutStructures(o *elfreloc.Object, sections []foreignSection) []foreignSection {
	pointing := slices.Clone(sections)
	return slices.DeleteFunc(sections, func(s foreignSection) bool {
		return slices.ContainsFunc(pointing, func(p foreignSection) bool {
			return formats[p.layout.Format].structure != nil && o.Sections[s.index].Name == p.layout.structures()
		})
	})
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
