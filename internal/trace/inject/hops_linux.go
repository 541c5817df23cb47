package inject

import (
	"bytes"
	"maps"
	"os"
	"slices"
)

// A hop is a jump to a trampoline, or to an instruction that has moved, where the jump of a site has to go.

// hopPages are the pages that have hops.
type hopPages struct {
	all    map[uint64]bool
	sorted []uint64
	low    map[uint64][]uint64 // by lowOf
}

// lowOf returns the bits of a page's address that three bytes of a distance decide.
func lowOf(page uint64) uint64 { return page % (1 << 24) }

func (h *hopPages) add(page uint64) {
	if h.all[page] {
		return
	}
	if h.all == nil {
		h.all, h.low = map[uint64]bool{}, map[uint64][]uint64{}
	}
	h.all[page] = true
	i, _ := slices.BinarySearch(h.sorted, page)
	h.sorted = slices.Insert(h.sorted, i, page)
	h.low[lowOf(page)] = append(slices.Clip(h.low[lowOf(page)]), page) // clones share it
}

func (h *hopPages) clone() hopPages {
	return hopPages{maps.Clone(h.all), slices.Clone(h.sorted), maps.Clone(h.low)}
}

// HopPages returns up to so many pages of hops near an address, those below first.
func (in *Injector) HopPages(address uint64, most int) []uint64 {
	i, _ := slices.BinarySearch(in.hops.sorted, address)
	below := slices.Clone(in.hops.sorted[max(0, i-most/2):i])
	slices.Reverse(below)
	return append(below, in.hops.sorted[i:min(i+most/2, len(in.hops.sorted))]...)
}

// HopPagesLike returns the pages of hops that have the lowest three bytes of an address's page.
func (in *Injector) HopPagesLike(address uint64) []uint64 {
	return in.hops.low[lowOf(address&^(uint64(os.Getpagesize())-1))]
}

// CanMapHops reports whether the page of an address has no hops, and can become one that has.
func (in *Injector) CanMapHops(at uint64) bool {
	space, err := in.space()
	if err != nil {
		return false
	}
	page := at &^ (space.page - 1)
	return !in.hops.all[page] && space.isFree(page, page+space.page, hopHeapRoom)
}

// MayHold reports whether a page between two addresses has hops, or can become one that has.
func (in *Injector) MayHold(start, end uint64) bool {
	space, err := in.space()
	if err != nil {
		return false
	}
	start, end = start&^(space.page-1), roundUp(end, space.page)
	i, _ := slices.BinarySearch(in.hops.sorted, start)
	return i < len(in.hops.sorted) && in.hops.sorted[i] < end || space.hasFree(start, end, hopHeapRoom)
}

// hopCode returns the code of a hop, and the first and the last of its pages.
func (in *Injector) hopCode(at, to, page uint64) (code []byte, first, last uint64) {
	if code = in.Machine.Jump(at, to); code == nil {
		code = in.Machine.FarJump(to)
	}
	return code, at &^ (page - 1), (at + uint64(len(code)) - 1) &^ (page - 1)
}

// FitsHop reports whether there is room for a hop.
func (in *Injector) FitsHop(at, to uint64) bool {
	space, err := in.space()
	if err != nil {
		return false
	}
	code, first, last := in.hopCode(at, to, space.page)
	for page := first; page <= last; page += space.page {
		if !in.hops.all[page] && !space.isFree(page, page+space.page, hopHeapRoom) {
			return false
		}
	}
	return in.hasRoom(at, code, space.page)
}

// Hop puts a jump to a trampoline at an address where a jump of a site has to go. It returns false if something else is there.
func (in *Injector) Hop(at, to uint64) bool {
	space, err := in.space()
	if err != nil || !in.FitsHop(at, to) {
		return false
	}
	code, first, last := in.hopCode(at, to, space.page)
	for page := first; page <= last; page += space.page {
		if in.hops.all[page] {
			continue
		}
		if n, err := in.record(entry{hopEntry, page, space.page}); err != nil || in.mapCode(page, space.page) != nil {
			if err == nil {
				in.setEntry(n, entry{})
			}
			return false
		}
		in.hops.add(page)
	}
	return in.Write(at, code) == nil
}

// hasRoom reports whether a hop at an address overlaps no other, or is there already. A hop begins with a byte that is not 0, and may end with zeros.
func (in *Injector) hasRoom(at uint64, code []byte, page uint64) bool {
	const longest = 14 // bytes of a hop
	around := make([]byte, longest-1+len(code))
	start, end := at-(longest-1), at+uint64(len(code))
	for start < end {
		next := min(end, (start+page)&^(page-1))
		if in.hops.all[start&^(page-1)] && in.Read(start, around[uint64(len(around))-(end-start):][:next-start]) != nil {
			return false
		}
		start = next
	}
	return bytes.Equal(around[longest-1:], code) || bytes.Equal(around, make([]byte, len(around)))
}
