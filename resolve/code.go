package resolve

import (
	"cmp"
	"debug/elf"
	"math"
	"slices"
	"sort"

	"sdtconvert/elfreloc"
)

// codeMap is where code is, sorted and without overlap. No function holds
// anything else, whatever its symbol claims.
type codeMap []codeRange

// codeRange is a section of code, or without section headers a segment.
type codeRange struct {
	section    int    // of an object; 0 in a linked image
	start, end uint64 // offsets in the section, or addresses
}

// codeOf finds the code of an object or image.
//
// The sections of an image are believed before its segments: linkers put
// constants into the segment of code. In a debug file they are all SHT_NOBITS.
func codeOf(o *elfreloc.Object) (codeMap, error) {
	var code codeMap
	for i := range o.Sections {
		s := &o.Sections[i]
		switch {
		case o.Type == elf.ET_REL && s.Executable():
			code = append(code, codeRange{i, 0, s.Size})
		case o.Type != elf.ET_REL && s.Flags&elf.SHF_EXECINSTR != 0:
			code = append(code, codeRange{0, s.Addr, endOf(s.Addr, s.Size)})
		}
	}
	if len(o.Sections) > 0 || o.Type == elf.ET_REL {
		return code.sorted(), nil
	}
	segments, err := o.Segments()
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			code = append(code, codeRange{0, s.Vaddr, endOf(s.Vaddr, s.Memsz)})
		}
	}
	return code.sorted(), nil
}

// endOf is the end of a range, which is cut off where addresses end.
func endOf(start, size uint64) uint64 {
	if size > math.MaxUint64-start {
		return math.MaxUint64
	}
	return start + size
}

func (m codeMap) sorted() codeMap {
	slices.SortFunc(m, func(a, b codeRange) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	for i := 1; i < len(m); i++ {
		if last := m[i-1]; last.section == m[i].section && m[i].start < last.end {
			m[i].start = last.end
			m[i].end = max(m[i].end, last.end)
		}
	}
	return m
}

// find returns which range holds an address, -1 for none.
func (m codeMap) find(section int, off uint64) int {
	i := sort.Search(len(m), func(i int) bool {
		return m[i].section > section || m[i].section == section && m[i].start > off
	}) - 1
	// Ranges that overlapping ones have left empty begin where the next one does.
	if i >= 0 && m[i].holds(section, off) {
		return i
	}
	return -1
}

func (r *codeRange) holds(section int, off uint64) bool {
	return r.section == section && off >= r.start && off < r.end
}
