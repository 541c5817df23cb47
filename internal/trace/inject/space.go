package inject

import (
	"slices"
	"sort"

	"sdtconvert/image"
)

// addressSpace tells where a process has room for code.
type addressSpace struct {
	maps []image.Mapping // by address
	page uint64
	top  uint64 // of a program's memory
	// brk is where the heap begins that brk(2) grows, 0 if that is not known. heapEnd is where it ends now.
	brk, heapEnd uint64
	stack        image.Mapping
}

func newAddressSpace(maps []image.Mapping, page, brk, top uint64) *addressSpace {
	s := &addressSpace{maps: maps, page: page, top: top, brk: brk, heapEnd: brk}
	for _, m := range maps {
		switch m.Path {
		case "[heap]":
			s.heapEnd = max(s.heapEnd, m.End)
		case "[stack]":
			s.stack = m
		}
	}
	return s
}

const (
	lowest    = 1 << 20 // below are null pointers with an offset
	stackRoom = 256 << 20

	// The heap may grow that far up to an area, and to a hop, whose place the bytes of a site give.
	areaHeapRoom = 1 << 30
	hopHeapRoom  = 128 << 20
)

// isFree reports whether nothing is mapped in a range of addresses, nor likely to be: it is not where the stack grows, and the heap has room.
func (s *addressSpace) isFree(start, end, heapRoom uint64) bool {
	if start < lowest || end > s.top-lowest || end <= start {
		return false
	}
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].End > start })
	if i < len(s.maps) && s.maps[i].Start < end {
		return false
	}
	if start < s.stack.End && end > s.stack.Start-min(s.stack.Start, stackRoom) {
		return false
	}
	return end <= s.brk || s.brk == 0 || start >= s.heapEnd+heapRoom
}

// hasFree reports whether a page between two addresses is free.
func (s *addressSpace) hasFree(start, end, heapRoom uint64) bool {
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].End > start })
	for ; start < end; i++ {
		next := end
		if i < len(s.maps) {
			next = min(end, s.maps[i].Start)
		}
		if start < next && (s.isFree(start, start+s.page, heapRoom) || s.isFree(next-s.page, next, heapRoom)) {
			return true
		}
		if i >= len(s.maps) {
			break
		}
		start = max(start, s.maps[i].End)
	}
	return false
}

// near returns a free range of a size, a power of two, that is at most so far from an address: below it, else above. It begins at a multiple of
// the size. It is 0 if there is none.
func (s *addressSpace) near(address, size, distance uint64) uint64 {
	below := func(end uint64) uint64 { return (end - size) &^ (size - 1) }
	var found []uint64
	for i, m := range s.maps {
		if m.Start > size {
			found = append(found, below(m.Start))
		}
		if i == len(s.maps)-1 || s.maps[i+1].Start > m.End {
			found = append(found, roundUp(m.End, size))
		}
	}
	if heap := s.heapEnd + areaHeapRoom; heap > areaHeapRoom {
		found = append(found, roundUp(heap, size))
	}
	usable := func(start uint64) bool {
		return start+size-min(address, start+size) <= distance && address-min(address, start) <= distance && s.isFree(start, start+size, areaHeapRoom)
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

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) &^ (unit - 1) }
