package image

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/elfreloc"
)

// Arrays finds sections by their headers. Where there is none of the name, a
// linker script may have put it into another, or the headers are stripped: then
// the symbols that linkers make of its name tell, if they are left.
func (l *Linked) Arrays(name string) ([]Range, error) {
	all, err := l.sectionArrays(name)
	if err != nil || len(all) > 0 {
		return all, err
	}
	tables, err := l.tablesThatName("__start_" + name)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if r, ok, err := l.boundedArray(t, name); ok || err != nil {
			return []Range{r}, err
		}
	}
	return nil, nil
}

func (l *Linked) sectionArrays(name string) ([]Range, error) {
	var all []Range
	for i := range l.o.Sections {
		s := &l.o.Sections[i]
		if s.Name != name || s.Size == 0 || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if !s.InFile() {
			return nil, l.o.SectionError(i, errNoContents)
		}
		if !l.inFile(s.Addr, s.Size) {
			return nil, l.o.SectionError(i, fmt.Errorf("%#x bytes at %#x are not in the image", s.Size, s.Addr))
		}
		all = append(all, Range{name, Addr{Offset: s.Addr}, s.Size, s.Flags&elf.SHF_WRITE != 0})
	}
	slices.SortStableFunc(all, func(a, b Range) int { return cmp.Compare(a.Start.Offset, b.Start.Offset) })
	for i := 1; i < len(all); i++ {
		if last := all[i-1]; all[i].Start.Offset-last.Start.Offset < last.Size {
			return nil, l.errorAt(all[i].Start.Offset, "two sections %s overlap", name)
		}
	}
	return all, nil
}

// tablesThatName lists the symbol tables that may hold a name: .symtab, then
// the dynamic one. They are not read when their strings do not hold it.
func (l *Linked) tablesThatName(name string) ([]*elfreloc.Symbols, error) {
	var tables []*elfreloc.Symbols
	in, err := l.o.NamesContain([][]byte{[]byte(name)})
	if err != nil {
		return nil, err
	}
	if in {
		t, err := l.o.Symbols()
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	t, err := l.dynamicSymbols()
	if err != nil {
		return nil, err
	}
	return append(tables, t), nil
}

// boundedArray finds what is between __start_<name> and __stop_<name>.
func (l *Linked) boundedArray(t *elfreloc.Symbols, name string) (Range, bool, error) {
	start, hasStart := definition(t, "__start_"+name)
	stop, hasStop := definition(t, "__stop_"+name)
	if !hasStart || !hasStop || start == stop {
		return Range{}, false, nil
	}
	if stop < start || !l.inFile(start, stop-start) {
		return Range{}, false, l.errorAt(start, "__start_%s to __stop_%s, at %#x, is not in the image", name, name, stop)
	}
	s, _ := l.load(start)
	return Range{name, Addr{Offset: start}, stop - start, s.Flags&elf.PF_W != 0}, true, nil
}

// definition finds the value of a symbol that is defined.
func definition(t *elfreloc.Symbols, name string) (uint64, bool) {
	for _, s := range t.WithPrefix(name) {
		if s.Section != 0 && s.Section != elfreloc.SectionCommon && s.Name == name {
			return s.Value, true
		}
	}
	return 0, false
}

func (l *Linked) SymbolsAt(a Addr) ([]string, error) {
	if l.names == nil {
		t, err := l.o.Symbols()
		if err == nil && t.Len() == 0 {
			t, err = l.dynamicSymbols()
		}
		if err != nil {
			return nil, err
		}
		l.names = indexNames(t, false)
	}
	return l.names.lookup(l.o, a)
}
