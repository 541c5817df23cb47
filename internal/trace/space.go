package trace

import (
	"slices"
	"sort"

	"sdtconvert/image"
)

// addressSpace tells where a process has room for code.
type addressSpace struct {
	maps []image.Mapping // by address
	page uint64
	// brk is where the heap begins that brk(2) grows, 0 if that is not known.
	brk uint64
}

const (
	lowest    = 1 << 20 // below are null pointers with an offset
	highest   = 1<<47 - 1<<20
	heapRoom  = 128 << 20 // that the heap may grow
	stackRoom = 256 << 20
)

// isFree reports whether nothing is mapped in a range of addresses, nor likely to be: it is not where the heap and the stack
// grow.
func (s *addressSpace) isFree(start, end uint64) bool {
	if start < lowest || end > highest || end <= start {
		return false
	}
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].End > start })
	if i < len(s.maps) && s.maps[i].Start < end {
		return false
	}
	for _, m := range s.maps {
		if m.Path == "[stack]" && start < m.End && end > m.Start-min(m.Start, stackRoom) {
			return false
		}
	}
	return end <= s.brk || start >= s.heapEnd()+heapRoom || s.brk == 0
}

// heapEnd returns where the heap ends now.
func (s *addressSpace) heapEnd() uint64 {
	end := s.brk
	for _, m := range s.maps {
		if m.Path == "[heap]" {
			end = max(end, m.End)
		}
	}
	return end
}

// near returns a free range of a size that is at most so far from an address: below it, else above. It is 0 if there is none.
func (s *addressSpace) near(address, size, distance uint64) uint64 {
	below := func(end uint64) uint64 { return (end - size) &^ (s.page - 1) }
	var found []uint64
	for i, m := range s.maps {
		if m.Start > size {
			found = append(found, below(m.Start))
		}
		if i == len(s.maps)-1 || s.maps[i+1].Start > m.End {
			found = append(found, m.End)
		}
	}
	if heap := s.heapEnd() + heapRoom; heap > heapRoom {
		found = append(found, (heap+s.page-1)&^(s.page-1))
	}
	usable := func(start uint64) bool {
		return start+size-min(address, start+size) <= distance && address-min(address, start) <= distance && s.isFree(start, start+size)
	}
	found = slices.DeleteFunc(found, func(start uint64) bool { return !usable(start) })
	if len(found) == 0 {
		return 0
	}
	return slices.MinFunc(found, func(a, b uint64) int { return compareDistance(address, a, b) })
}

// compareDistance orders addresses below another before those above, the nearest first.
func compareDistance(address, a, b uint64) int {
	rank := func(x uint64) uint64 {
		if x <= address {
			return address - x
		}
		return 1<<62 + x - address
	}
	if rank(a) < rank(b) {
		return -1
	}
	return 1
}
