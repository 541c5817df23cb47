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
// names derive from other names than those of the known layouts, in the order of the
// sections. A section counts if all that it holds reads as records, and code of an object
// keeps it alive or the symbols of all of its probe objects begin with one of the prefixes.
// Errors are of type *elfreloc.Error.
func ForeignLayouts(o *elfreloc.Object, m arch.Machine, known []Layout, prefixes []string) ([]Layout, error) {
	sections, err := foreign(o, m, known, prefixes)
	if err != nil {
		return nil, err
	}
	var all []Layout
	for _, s := range sections {
		if !slices.Contains(all, s.layout) {
			all = append(all, s.layout)
		}
	}
	return all, nil
}

// foreignSection is a section of records of another name.
type foreignSection struct {
	index  int
	layout Layout
}

func foreign(o *elfreloc.Object, m arch.Machine, known []Layout, prefixes []string) ([]foreignSection, error) {
	if m == nil {
		return nil, nil
	}
	var im image.Image
	var kept map[int]bool
	var all []foreignSection
	for i := range o.Sections {
		sec := &o.Sections[i]
		if !mayHoldRecords(sec) || isOf(known, sec) {
			continue
		}
		if o.Type == elf.ET_REL {
			if may, err := relocatedAsRecords(o, m, i); err != nil {
				return nil, err
			} else if !may {
				continue
			}
		}
		if im == nil {
			var err error
			if im, err = image.Open(o, m); err != nil {
				return nil, err
			}
		}
		start := image.Addr{Offset: sec.Addr}
		if o.Type == elf.ET_REL {
			start = image.Addr{Section: i}
		}
		layout, named, ok := readForeign(im, start, sec, prefixes)
		if !ok || !named && o.Type != elf.ET_REL {
			continue
		}
		if !named && kept == nil {
			var err error
			if kept, err = KeepAliveTargets(o, m); err != nil {
				return nil, err
			}
		}
		if named || kept[i] {
			all = append(all, foreignSection{i, layout})
		}
	}
	return withoutStructures(o, all), nil
}

// mayHoldRecords reports whether a section has the name and the flags of records.
func mayHoldRecords(sec *elfreloc.Section) bool {
	const shape = elf.SHF_ALLOC | elf.SHF_WRITE | elf.SHF_GROUP
	return sec.Type == elf.SHT_PROGBITS && sec.Flags&elf.SHF_ALLOC != 0 && sec.Flags&^shape == 0 && sec.Size > 0 && isIdentifier(sec.Name)
}

// relocatedAsRecords reports whether an object's section has as many relocations as records
// of its size have fields, and the first of them is one of records. Most sections that hold
// none need not be read any further, nor symbols.
func relocatedAsRecords(o *elfreloc.Object, m arch.Machine, sec int) (bool, error) {
	rels, err := o.RelocSections()
	if err != nil {
		return false, err
	}
	relocations, begin := 0, -1
	for i, rs := range rels {
		if rs.Target == sec {
			relocations += rs.Len
			if begin < 0 {
				begin = i
			}
		}
	}
	word := o.Encoding.Word()
	enough := slices.DeleteFunc(Formats(), func(f Format) bool { return !f.enough(&o.Sections[sec], word, relocations) })
	if begin < 0 || len(enough) == 0 {
		return false, nil
	}
	first, err := o.FirstRelocations(rels[begin], firstRelocations)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(enough, func(f Format) bool { return f.mayBegin(m, word, first) }), nil
}

// enough reports whether so many relocations are enough for the fields of records that a
// section may hold.
func (f Format) enough(sec *elfreloc.Section, word, relocations int) bool {
	record := formats[f].record
	return f.fits(sec, word) && uint64(relocations) >= sec.Size/uint64(sizeOf(record, word))*uint64(len(record))
}

// firstRelocations is how many are looked at: more than there are at one place.
const firstRelocations = 8

// mayBegin reports whether a section of records may have relocations that begin with the
// given ones: whether those at the place of the first one, if a field is there, make it what
// it is in a record. Others may be behind them.
func (f Format) mayBegin(m arch.Machine, word int, first []elfreloc.Relocation) bool {
	if len(first) == 0 || len(first) == firstRelocations && first[firstRelocations-1].Offset == first[0].Offset {
		return true
	}
	t := m.Traits()
	off := first[0].Offset % uint64(sizeOf(formats[f].record, word))
	for _, field := range formats[f].record {
		if off == 0 {
			return slices.ContainsFunc(first, func(r elfreloc.Relocation) bool {
				distance := slices.Contains(t.AlsoRelative, r.Type) || slices.ContainsFunc(t.Relative, func(rel arch.RelativeReloc) bool { return rel.Type == r.Type })
				return r.Offset == first[0].Offset && (r.Type == t.None || field.Distance && distance || !field.Distance && r.Type == t.Word)
			})
		}
		if size := uint64(field.Size(word)); off < size {
			break
		} else {
			off -= size
		}
	}
	return true
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
func readForeign(im image.Image, start image.Addr, sec *elfreloc.Section, prefixes []string) (l Layout, named, ok bool) {
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
		if named, ok = l.readsAs(im, kind, a, prefixes); ok {
			return l, named, true
		}
	}
	return Layout{}, false, false
}

// readsAs reports whether all of an array reads as records.
func (l Layout) readsAs(im image.Image, kind arch.Kind, a image.Range, prefixes []string) (named, ok bool) {
	named = true
	err := l.eachOf(im, kind, a, func(e *Entry, fault *Fault) error {
		if fault != nil || e.Probe.Null() || !e.Probe.Undefined && im.Executable(e.Probe.Addr) {
			return errNoRecords
		}
		named = named && isNamed(im, &e.Probe, prefixes)
		return nil
	})
	return named && err == nil, err == nil
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
func withoutStructures(o *elfreloc.Object, all []foreignSection) []foreignSection {
	pointing := slices.Clone(all)
	return slices.DeleteFunc(all, func(s foreignSection) bool {
		return slices.ContainsFunc(pointing, func(p foreignSection) bool {
			return formats[p.layout.Format].structure != nil && o.Sections[s.index].Name == p.layout.structures()
		})
	})
}

// KeepAliveTargets returns the sections, by index, that code refers to by relocations
// which do nothing (R_*_NONE): those whose records it keeps alive when a linker
// drops unreferenced sections. It reads the relocations of all code each time, so
// a caller that asks more than once keeps the answer. m must not be nil; errors are of
// type *elfreloc.Error.
func KeepAliveTargets(o *elfreloc.Object, m arch.Machine) (map[int]bool, error) {
	kept := make(map[int]bool)
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	none := m.Traits().None
	err = o.EachRelocationOf((*elfreloc.Section).Executable, func(_ int, r elfreloc.Relocation) error {
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
	return kept, nil
}
