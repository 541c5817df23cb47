package image

// The image of a linked file: an address is one that it was linked for, and relocations
// that the loader will apply tell what fields refer to.

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sort"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// linked is an executable, a shared library, or a kernel. Its addresses are
// those that it was linked for, as if the load base were 0. At that base a
// relocation of DT_RELR changes nothing: it adds the base to the address in its
// place. So only DT_RELA and DT_REL are ever read. It is an Image.
type linked struct {
	o     *elfreloc.Object
	m     arch.Machine
	loads []elfreloc.Segment // PT_LOAD, by address
	dyn   dynamic
	code  elfreloc.Code

	window  *fileWindow       // the last that was read
	relocs  *dynamicRelocs    // once a word was asked for
	dynsyms *elfreloc.Symbols // once they were asked for
	names   *names            // once SymbolsAt was
}

var errNoContents = errors.New("has no contents in this file; is it a separate debug file?")

// openLinked opens a linked file, or the memory that one was loaded to: there
// base is what the loader may have added to the addresses of PT_DYNAMIC.
func openLinked(o *elfreloc.Object, m arch.Machine, base uint64) (*linked, error) {
	segments, err := o.Segments()
	if err != nil {
		return nil, err
	}
	l := &linked{o: o, m: m}
	for _, s := range segments {
		if s.Type == elf.PT_LOAD && s.Memsz > 0 {
			if s.Vaddr+(s.Memsz-1) < s.Vaddr {
				return nil, fileError(o, "a segment of %#x bytes at %#x ends beyond the address space", s.Memsz, s.Vaddr)
			}
			l.loads = append(l.loads, s)
		}
	}
	slices.SortStableFunc(l.loads, func(a, b elfreloc.Segment) int { return cmp.Compare(a.Vaddr, b.Vaddr) })
	if l.code, err = o.Code(); err != nil {
		return nil, err
	}
	for _, s := range segments {
		if s.Type == elf.PT_DYNAMIC && s.Filesz > 0 {
			return l, l.readDynamic(s, base)
		}
	}
	return l, nil
}

func (l *linked) Name() string                { return l.o.Name }
func (l *linked) Machine() arch.Machine       { return l.m }
func (l *linked) Encoding() elfreloc.Encoding { return l.o.Encoding }
func (l *linked) Place(a Addr) string         { return fmt.Sprintf("%#x", a.Offset) }

func (l *linked) Executable(a Addr) bool { return l.code.Find(a.Section, a.Offset) >= 0 }

// load finds the segment of an address.
func (l *linked) load(addr uint64) (*elfreloc.Segment, bool) {
	i := sort.Search(len(l.loads), func(i int) bool { return l.loads[i].Vaddr > addr })
	if i == 0 || addr-l.loads[i-1].Vaddr >= l.loads[i-1].Memsz {
		return nil, false
	}
	return &l.loads[i-1], true
}

func (l *linked) FileOffset(a Addr) (uint64, bool) {
	s, ok := l.load(a.Offset)
	if !ok || a.Offset-s.Vaddr >= s.Filesz || a.Section != 0 {
		return 0, false
	}
	return s.Offset + (a.Offset - s.Vaddr), true
}

func (l *linked) Bytes(a Addr, n uint64) ([]byte, error) {
	s, ok := l.load(a.Offset)
	if !ok || a.Section != 0 {
		return nil, l.errorAt(a.Offset, "is not in the image")
	}
	off := a.Offset - s.Vaddr
	switch {
	case n > s.Memsz-off:
		return nil, l.errorAt(a.Offset, "%#x bytes wanted of a segment that ends at %#x", n, s.Vaddr+s.Memsz)
	case n > uint64(l.o.Size()):
		return nil, l.errorAt(a.Offset, "%#x bytes wanted of a file of %#x bytes", n, l.o.Size())
	case off >= s.Filesz && n > uint64(l.o.Held()):
		return nil, l.errorAt(a.Offset, "%#x bytes wanted of a file that holds %#x", n, l.o.Held())
	case off >= s.Filesz:
		return make([]byte, n), nil
	case n > s.Filesz-off:
		data, err := l.readFile(a.Offset, s, s.Filesz-off)
		if err != nil {
			return nil, err
		}
		return append(make([]byte, 0, n), data...)[:n], nil
	}
	return l.readFile(a.Offset, s, n)
}

// readFile reads what the file holds of a segment, which has n bytes at addr.
func (l *linked) readFile(addr uint64, s *elfreloc.Segment, n uint64) ([]byte, error) {
	off := s.Offset + (addr - s.Vaddr)
	size := uint64(l.o.Size())
	if off < s.Offset || off > size || n > size-off {
		return nil, l.errorAt(addr, "is at offset %#x, beyond the file's end at %#x", off, size)
	}
	if n > windowSize/2 {
		return l.o.ReadFile(int64(off), int64(n))
	}
	if w := l.window; w == nil || off < w.off || off+n > w.off+uint64(len(w.data)) {
		data, err := l.o.ReadFile(int64(off), int64(min(windowSize, size-off)))
		if err != nil {
			return nil, err
		}
		l.window = &fileWindow{off, data}
	}
	at := off - l.window.off
	return l.window.data[at : at+n : at+n], nil
}

// fileWindow is a part of the file that was read: records are small, and next to
// each other.
type fileWindow struct {
	off  uint64
	data []byte
}

const windowSize = 4 << 10 // bytes

// contents reads, as Bytes, what has to be in the file and may be of any size.
func (l *linked) contents(what string, addr, n uint64) ([]byte, error) {
	if !l.inFile(addr, n) {
		return nil, l.errorAt(addr, "%s of %#x bytes is not in the image", what, n)
	}
	return l.Bytes(Addr{Offset: addr}, n)
}

// inFile reports whether n bytes are in a segment, and not in the part of it
// that the loader fills with zeros.
func (l *linked) inFile(addr, n uint64) bool {
	_, ok := l.load(addr)
	return ok && n <= min(l.available(addr), uint64(l.o.Size()))
}

// available returns how many bytes the file holds from an address on.
func (l *linked) available(addr uint64) uint64 {
	if s, ok := l.load(addr); ok && addr-s.Vaddr < s.Filesz {
		return s.Filesz - (addr - s.Vaddr)
	}
	return 0
}

func (l *linked) Word(a Addr) (Ref, error) {
	if l.relocs == nil {
		if err := l.readRelocs(); err != nil {
			return Ref{}, err
		}
	}
	if r, ok := l.relocs.symbolic.last(a.Offset); ok {
		return l.symbolic(r)
	}
	if r, ok := l.relocs.relative.last(a.Offset); ok && !r.Implicit {
		return Ref{Addr: Addr{Offset: uint64(r.Addend)}}, nil
	}
	value, err := plainWord(l, Addr{Offset: a.Offset})
	return Ref{Addr: Addr{Offset: value}}, err
}

// symbolic returns what a relocation against a symbol makes of a field.
func (l *linked) symbolic(r elfreloc.Relocation) (Ref, error) {
	syms, err := l.dynamicSymbols()
	if err != nil {
		return Ref{}, err
	}
	if int64(r.Sym) >= int64(max(syms.Len(), 1)) {
		return Ref{}, l.errorAt(r.Offset, "a relocation against dynamic symbol %d of %d", r.Sym, syms.Len())
	}
	if r.Implicit {
		value, err := plainWord(l, Addr{Offset: r.Offset})
		if err != nil {
			return Ref{}, err
		}
		r.Addend = int64(value)
	}
	var s elfreloc.Symbol
	if r.Sym != 0 {
		s = syms.At(int(r.Sym))
	}
	return refTo(s, r.Sym, r.Addend, false), nil
}

func (l *linked) Distance(a Addr) (Ref, error) { return plainDistance(l, a) }

// Arrays finds sections by their headers. Where there is none of the name, a
// linker script may have put it into another, or the headers are stripped: then
// the symbols that linkers make of its name tell, if they are left.
func (l *linked) Arrays(name string) ([]Range, error) {
	arrays, err := l.sectionArrays(name)
	if err != nil || len(arrays) > 0 {
		return arrays, err
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

func (l *linked) sectionArrays(name string) ([]Range, error) {
	var arrays []Range
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
		arrays = append(arrays, Range{name, Addr{Offset: s.Addr}, s.Size, s.Flags&elf.SHF_WRITE != 0})
	}
	slices.SortStableFunc(arrays, func(a, b Range) int { return cmp.Compare(a.Start.Offset, b.Start.Offset) })
	for i := 1; i < len(arrays); i++ {
		if last := arrays[i-1]; arrays[i].Start.Offset-last.Start.Offset < last.Size {
			return nil, l.errorAt(arrays[i].Start.Offset, "two sections %s overlap", name)
		}
	}
	return arrays, nil
}

// tablesThatName lists the symbol tables that may hold a name: .symtab, then
// the dynamic one. They are not read when their strings do not hold it.
func (l *linked) tablesThatName(name string) ([]*elfreloc.Symbols, error) {
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
func (l *linked) boundedArray(t *elfreloc.Symbols, name string) (Range, bool, error) {
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
	for _, s := range t.Named(name) {
		if s.Section != 0 && s.Section != elfreloc.SectionCommon {
			return s.Value, true
		}
	}
	return 0, false
}

func (l *linked) SymbolsAt(a Addr) ([]string, error) {
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

func (l *linked) errorAt(addr uint64, format string, args ...any) error {
	return &elfreloc.Error{File: l.o.Name, Section: fmt.Sprintf("%#x", addr), Err: fmt.Errorf(format, args...)}
}
