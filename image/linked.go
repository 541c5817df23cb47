package image

// The image of a linked file: an address is one that it was linked for, and relocations
// that the loader will apply tell what fields refer to.

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Linked is an executable, a shared library, or a kernel. Its addresses are
// those that it was linked for, as if the load base were 0. At that base a
// relocation of DT_RELR changes nothing: it adds the base to the address in its
// place. So only DT_RELA and DT_REL are ever read. It is an Image.
type Linked struct {
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
func openLinked(o *elfreloc.Object, m arch.Machine, base uint64) (*Linked, error) {
	segments, err := o.Segments()
	if err != nil {
		return nil, err
	}
	l := &Linked{o: o, m: m}
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

func (l *Linked) Name() string                { return l.o.Name }
func (l *Linked) Machine() arch.Machine       { return l.m }
func (l *Linked) Encoding() elfreloc.Encoding { return l.o.Encoding }
func (l *Linked) Place(a Addr) string         { return fmt.Sprintf("%#x", a.Offset) }

// Object returns the file that the image is of.
func (l *Linked) Object() *elfreloc.Object { return l.o }

func (l *Linked) Executable(a Addr) bool { return l.code.Find(a.Section, a.Offset) >= 0 }

// load finds the segment of an address.
func (l *Linked) load(addr uint64) (*elfreloc.Segment, bool) {
	i, _ := slices.BinarySearchFunc(l.loads, addr, func(s elfreloc.Segment, addr uint64) int {
		if s.Vaddr <= addr {
			return -1
		}
		return 1
	})
	if i == 0 || addr-l.loads[i-1].Vaddr >= l.loads[i-1].Memsz {
		return nil, false
	}
	return &l.loads[i-1], true
}

func (l *Linked) FileOffset(a Addr) (uint64, bool) {
	s, ok := l.load(a.Offset)
	if !ok || a.Offset-s.Vaddr >= s.Filesz || a.Section != 0 {
		return 0, false
	}
	return s.Offset + (a.Offset - s.Vaddr), true
}

func (l *Linked) Bytes(a Addr, n uint64) ([]byte, error) {
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
func (l *Linked) readFile(addr uint64, s *elfreloc.Segment, n uint64) ([]byte, error) {
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
func (l *Linked) contents(what string, addr, n uint64) ([]byte, error) {
	if !l.inFile(addr, n) {
		return nil, l.errorAt(addr, "%s of %#x bytes is not in the image", what, n)
	}
	return l.Bytes(Addr{Offset: addr}, n)
}

// inFile reports whether n bytes are in a segment, and not in the part of it
// that the loader fills with zeros.
func (l *Linked) inFile(addr, n uint64) bool {
	_, ok := l.load(addr)
	return ok && n <= min(l.available(addr), uint64(l.o.Size()))
}

// available returns how many bytes the file holds from an address on.
func (l *Linked) available(addr uint64) uint64 {
	if s, ok := l.load(addr); ok && addr-s.Vaddr < s.Filesz {
		return s.Filesz - (addr - s.Vaddr)
	}
	return 0
}

func (l *Linked) Word(a Addr) (Ref, error) {
	if l.relocs == nil {
		if err := l.readRelocs(); err != nil {
			return Ref{}, err
		}
	}
	if r, ok := l.relocs.symbolic.find(a.Offset); ok {
		return l.symbolic(r)
	}
	if r, ok := l.relocs.relative.find(a.Offset); ok && !r.implicit {
		return Ref{Addr: Addr{Offset: uint64(r.addend)}}, nil
	}
	value, err := l.plainWord(a.Offset)
	return Ref{Addr: Addr{Offset: value}}, err
}

func (l *Linked) plainWord(addr uint64) (uint64, error) {
	data, err := l.Bytes(Addr{Offset: addr}, uint64(l.o.Encoding.Word()))
	if err != nil {
		return 0, err
	}
	return l.o.Encoding.GetWord(data), nil
}

// symbolic returns what a relocation against a symbol makes of a field.
func (l *Linked) symbolic(r dynamicReloc) (Ref, error) {
	syms, err := l.dynamicSymbols()
	if err != nil {
		return Ref{}, err
	}
	if int64(r.sym) >= int64(max(syms.Len(), 1)) {
		return Ref{}, l.errorAt(r.off, "a relocation against dynamic symbol %d of %d", r.sym, syms.Len())
	}
	if r.implicit {
		value, err := l.plainWord(r.off)
		if err != nil {
			return Ref{}, err
		}
		r.addend = int64(value)
	}
	var s elfreloc.Symbol
	if r.sym != 0 {
		s = syms.At(int(r.sym))
	}
	return refTo(s, r.sym, r.addend, false), nil
}

func (l *Linked) Distance(a Addr) (Ref, error) {
	data, err := l.Bytes(a, 4)
	if err != nil {
		return Ref{}, err
	}
	return Ref{Addr: a.Add(uint64(int64(int32(l.o.Encoding.Order.Uint32(data)))))}, nil
}

func (l *Linked) errorAt(addr uint64, format string, args ...any) error {
	return &elfreloc.Error{File: l.o.Name, Section: fmt.Sprintf("%#x", addr), Err: fmt.Errorf(format, args...)}
}
