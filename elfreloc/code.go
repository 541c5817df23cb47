package elfreloc

import (
	"cmp"
	"debug/elf"
	"math"
	"slices"
	"sort"
)

// Code is where the code of a file is, sorted by section and address and without
// overlap. Nothing else holds a function, whatever a symbol, an unwind table or
// debug information claims.
type Code []CodeRange

// CodeRange is a section of code, or a segment of an image whose sections are not
// known.
type CodeRange struct {
	Section int    // of a relocatable object; 0 in an image
	Start   uint64 // the offset in Section, or the address
	End     uint64 // the first that is not part of it
}

// holds reports whether the range holds an offset of a section, or an address.
func (r *CodeRange) holds(section int, off uint64) bool {
	return r.Section == section && off >= r.Start && off < r.End
}

// Find returns the index of the range that holds an offset of a section, or an
// address; -1 when it is not in code.
func (c Code) Find(section int, off uint64) int {
	i := sort.Search(len(c), func(i int) bool {
		return c[i].Section > section || c[i].Section == section && c[i].Start > off
	}) - 1
	if i >= 0 && c[i].holds(section, off) {
		return i
	}
	return -1
}

// Code finds where code is.
//
// In an object that is each Executable section. In an image it is each section
// with SHF_ALLOC and SHF_EXECINSTR (gABI, chapter 4, "Sections"), contents or not:
// those of a separate debug file are all SHT_NOBITS. Where no section is code,
// because the headers are stripped, it is each PT_LOAD with PF_X (chapter 5,
// "Program Header"). Sections come first because linkers put constants into the
// segment of code.
//
// Of ranges that overlap, the later one begins where the earlier one ends; what
// ends beyond the address space is cut off there. Program headers that cannot be
// read are an error, in an image without sections of code.
func (o *Object) Code() (Code, error) {
	const loaded = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	var code Code
	for i := range o.Sections {
		s := &o.Sections[i]
		switch {
		case o.Type == elf.ET_REL && s.Executable():
			code = append(code, CodeRange{i, 0, s.Size})
		case o.Type != elf.ET_REL && s.Flags&loaded == loaded:
			code = append(code, CodeRange{0, s.Addr, endOf(s.Addr, s.Size)})
		}
	}
	code = code.disjoint()
	if len(code) > 0 || o.Type == elf.ET_REL {
		return code, nil
	}
	segments, err := o.Segments()
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			code = append(code, CodeRange{0, s.Vaddr, endOf(s.Vaddr, s.Memsz)})
		}
	}
	return code.disjoint(), nil
}

func endOf(start, size uint64) uint64 {
	if size > math.MaxUint64-start {
		return math.MaxUint64
	}
	return start + size
}

// disjoint sorts ranges, and takes from each what an earlier one holds.
func (c Code) disjoint() Code {
	slices.SortFunc(c, func(a, b CodeRange) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	disjoint := c[:0]
	for _, r := range c {
		if n := len(disjoint); n > 0 && disjoint[n-1].Section == r.Section {
			r.Start = max(r.Start, disjoint[n-1].End)
		}
		if r.Start < r.End {
			disjoint = append(disjoint, r)
		}
	}
	return disjoint
}

// Addr is an address. In a relocatable object it is an offset in a section;
// everywhere else Section is 0 and Offset is the address.
type Addr struct {
	Section int
	Offset  uint64
}

// Add returns the address n bytes further on, which wraps around at 2^64.
func (a Addr) Add(n uint64) Addr { return Addr{a.Section, a.Offset + n} }

// Compare orders addresses by section and offset.
func (a Addr) Compare(b Addr) int {
	return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Offset, b.Offset))
}
