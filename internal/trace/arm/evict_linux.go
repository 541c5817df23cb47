package arm

// Room for the jump of a site of one byte. The four bytes behind the site are the distance of its jump. If the jump would land where something
// is, the instruction behind the site moves, and a jump takes its place: at the same boundary, so that whoever jumps there gets its effect. The
// bytes of this jump can be chosen, and with them where the site's jump lands:
//
//	site:      e9 | e9 b1 b2 b3 b4
//	its jump goes to       site + 5 + b3 b2 b1 e9
//	the other one goes to  site + 6 + b4 b3 b2 b1
//
// If that instruction has four bytes, b4 is the first byte of the next one, and stays.

import (
	"iter"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/probe"
)

const (
	evictedBytes = 6 // of the site and of what is behind it
	jumpBytes    = 5
	jumpOpcode   = 0xe9
)

// evict returns the bytes that arm a site by a jump and the move of the next instruction, nil if it cannot.
func (a *Armer) evict(s *probe.Site, js arch.JumpSite, t *arch.Trampoline, current []byte) []byte {
	evictor, ok := a.injector.Machine.(arch.Evictor)
	if !ok || js.Offset != 0 || js.Resume != 1 || len(current) < evictedBytes || crossesPage(s.Address) {
		return nil
	}
	from := s.Address + 1
	moved, ok := evictor.Move(current[1:], from, from)
	if !ok || moved.Length < jumpBytes-1 || moved.Call && slices.ContainsFunc(a.Stopped(), a.HasShadowStack) {
		return nil
	}
	last := -1 // b4, if it stays
	if moved.Length < jumpBytes {
		last = int(current[evictedBytes-1])
	}
	area, err := a.injector.AreaNear(s.Address)
	if err != nil {
		return nil
	}
	at, err := a.injector.Put(area, func(at uint64) []byte {
		moved, ok = evictor.Move(current[1:], from, at)
		return moved.Code
	})
	if err != nil || !ok {
		return nil
	}
	for first, seconds := range a.targets(s.Address, last) {
		if !a.injector.Hop(first, t.Address) {
			continue
		}
		a.addPlace(place{start: first, end: first + 1, trampoline: t, site: s})
		for _, second := range seconds {
			if !a.injector.Hop(second, at) {
				continue
			}
			a.addPlace(place{start: second, end: second + 1, site: s, moved: &moved, code: at, from: from})
			a.addPlace(place{start: at, end: at + uint64(len(moved.Code)), site: s, moved: &moved, code: at, from: from})
			return append(evictor.Jump(s.Address, first)[:1], evictor.Jump(from, second)...)
		}
	}
	return nil
}

// crossesPage reports whether the bytes of a site are on two pages, which cannot be written at once.
func crossesPage(address uint64) bool { return address>>12 != (address+evictedBytes-1)>>12 }

// targets yields where the jump of a site can go, each with where the jump of the instruction behind it can go then: first to pages that have hops
// already.
func (a *Armer) targets(site uint64, last int) iter.Seq2[uint64, []uint64] {
	const reach, page = 1<<31 - 1<<13, 4096
	return func(yield func(first uint64, seconds []uint64) bool) {
		pages := a.injector.HopPages(site, reach)
		known := len(pages)
		for near := site; len(pages) < known+newPages; near = pages[len(pages)-1] {
			free := a.injector.FreePage(near, reach/4)
			if free == 0 || free >= near {
				break
			}
			pages = append(pages, free)
		}
		for _, wantsHop := range []bool{true, false} {
			for _, start := range pages {
				begin := start + (site+jumpBytes+jumpOpcode-start)&0xff
				highs := a.highs(site, begin, last, wantsHop)
				for first := begin; len(highs) > 0 && first < start+page-farJumpBytes; first += 0x100 {
					var seconds []uint64
					for _, high := range highs {
						seconds = append(seconds, second(site, first, high))
					}
					if !yield(first, seconds) {
						return
					}
				}
			}
		}
	}
}

// second returns where the jump behind a site goes, if the one of the site goes to first, by the byte that is free then.
func second(site, first uint64, high int) uint64 {
	low := (first - site - jumpBytes) >> 8 & 0xffffff
	return site + evictedBytes + uint64(int64(int32(uint32(low)|uint32(high)<<24)))
}

// highs returns the bytes with which the jump behind a site goes to a page that has hops, or to one that can have them.
func (a *Armer) highs(site, first uint64, last int, wantsHop bool) (highs []int) {
	for high := range 256 {
		if last >= 0 && high != last {
			continue
		}
		isHop, canBe := a.injector.CanHop(second(site, first, high))
		if isHop || !wantsHop && canBe {
			if highs = append(highs, high); !isHop && len(highs) >= newPages {
				break
			}
		}
	}
	return highs
}

const (
	newPages     = 16 // at most for the jumps of one site
	farJumpBytes = 14
)
