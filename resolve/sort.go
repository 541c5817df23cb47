package resolve

import (
	"slices"

	"sdtconvert/elfreloc"
)

// sortByStart sorts entries by code range and start, stably.
//
// It is a radix sort (Knuth, The Art of Computer Programming, 5.2.5), which takes
// a fourth of the time of a comparing one for a million functions: their starts
// are numbers of few bits, and linkers leave them in the order of a hash table.
func sortByStart(entries []entry, code elfreloc.Code) {
	const digit, few = 11, 1 << 10 // bits of a pass; where comparing is as fast
	before := make([]uint64, len(code))
	total := uint64(0)
	for i := range code {
		before[i] = total - code[i].Start
		total += code[i].End - code[i].Start
	}
	// The place of an entry among all code. Images of which it has many bits are
	// hostile: comparing is good enough for those.
	key := func(e *entry) uint64 { return before[e.code()] + e.start }
	byStart := func(a, b entry) int {
		switch ac, bc := a.code(), b.code(); {
		case ac < bc || ac == bc && a.start < b.start:
			return -1
		case ac > bc || a.start > b.start:
			return 1
		}
		return 0
	}
	if slices.IsSortedFunc(entries, byStart) {
		return
	}
	if len(entries) < few || total >= 1<<40 {
		slices.SortStableFunc(entries, byStart)
		return
	}
	from, to := entries, make([]entry, len(entries))
	for shift := 0; total>>shift > 0; shift += digit {
		var next [1 << digit]uint32
		for i := range from {
			next[key(&from[i])>>shift&(1<<digit-1)]++
		}
		sum := uint32(0)
		for i, n := range next {
			next[i], sum = sum, sum+n
		}
		for i := range from {
			n := &next[key(&from[i])>>shift&(1<<digit-1)]
			to[*n] = from[i]
			*n++
		}
		from, to = to, from
	}
	if &from[0] != &entries[0] {
		copy(entries, from)
	}
}
