package arm

// Room for the jump of a site of one byte. The four bytes behind the site are the distance of its jump. If the jump would land where something
// is, the instruction behind the site moves, and a jump takes its place: at the same boundary, so that whoever jumps there gets its effect. The
// bytes of this jump can be chosen, and with them where the site's jump lands:
//
//	site:      e9 | e9 b1 b2 b3 b4
//	its jump goes to       site + 5 + b3 b2 b1 e9
//	the other one goes to  site + 6 + b4 b3 b2 b1
//
// If that instruction has four bytes, b4 is the first byte of the next one, and stays. If it has less, the next one moves, too:
//
//	site:      e9 | e9 b1 b2 | e9 b3 b4 b5 b6
//	the jumps go to  site + 5 + e9 b2 b1 e9,  site + 6 + b3 e9 b2 b1  and  site + 9 + b6 b5 b4 b3

import (
	"iter"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/probe"
)

const (
	jumpBytes  = 5
	jumpOpcode = 0xe9
	mostMoved  = 4 // instructions of a site

	// What is tried for one jump: pages that have hops already, and others; and for all jumps of a site: looks at what is there.
	mostHopPages = 64
	newPages     = 16
	mostLooks    = 512

	farJumpBytes = 14
	pageBytes    = 4096
)

// eviction is what makes room for the jump of a site.
type eviction struct {
	site  uint64
	bytes []int // from the site on; -1 may be any
	jumps []evictionJump
	pages []uint64 // that have hops and are near
	looks int
}

// evictionJump is one of its jumps: that of the site, or one in the place of an instruction.
type evictionJump struct {
	offset int    // from the site
	to     uint64 // where it leads
	hop    uint64 // by this hop
	moved  *arch.Moved
}

// successors returns the instructions behind a site that move for its jump, and how many bytes the jumps take. It is nil if one has to stay.
func successors(evictor arch.Evictor, code []byte, s *probe.Site) (moves []arch.Moved, length int) {
	isBehindEnd := false // where there may be data, unless it is of the function or fills a gap
	for at := 1; len(moves) < mostMoved && at < len(code); at += moves[len(moves)-1].Length {
		m, ok := evictor.Move(code[at:], s.Address+uint64(at), s.Address+uint64(at))
		if !ok || isBehindEnd && !m.NOP && uint64(at+m.Length) > s.Rest {
			return nil, 0
		}
		moves, isBehindEnd = append(moves, m), isBehindEnd || m.Ends
		if m.Length >= jumpBytes-1 {
			if at+jumpBytes > len(code) {
				return nil, 0
			}
			return moves, at + jumpBytes
		}
	}
	return nil, 0
}

// evict returns the bytes that arm a site by a jump and the moves of the next instructions, nil if it cannot.
func (a *Armer) evict(s *probe.Site, js arch.JumpSite, t *arch.Trampoline, current []byte) []byte {
	evictor, ok := a.injector.Machine.(arch.Evictor)
	if !ok || js.Offset != 0 || js.Resume != 1 {
		return nil
	}
	moves, length := successors(evictor, current, s)
	isCall := func(m arch.Moved) bool { return m.Call }
	if moves == nil || crossesPage(s.Address, length) || slices.ContainsFunc(moves, isCall) && slices.ContainsFunc(a.Stopped(), a.HasShadowStack) {
		return nil
	}
	area, err := a.injector.AreaNear(s.Address)
	if err != nil {
		return nil
	}
	e := eviction{
		site: s.Address, bytes: slices.Repeat([]int{-1}, length), jumps: []evictionJump{{to: t.Address}},
		pages: a.injector.HopPages(s.Address, mostHopPages),
	}
	e.bytes[0] = jumpOpcode
	offset := 1
	for len(e.jumps) <= len(moves) {
		from, moved := s.Address+uint64(offset), arch.Moved{}
		at, err := a.injector.Put(area, func(at uint64) []byte {
			moved, ok = evictor.Move(current[offset:], from, at)
			return moved.Code
		})
		if err != nil || !ok {
			return nil
		}
		e.jumps = append(e.jumps, evictionJump{offset: offset, to: at, moved: &moved})
		e.bytes[offset] = jumpOpcode
		offset += moved.Length
	}
	if offset < length {
		e.bytes[offset] = int(current[offset])
	}
	if !a.place(&e, 0, false) {
		if e.looks = 0; !a.place(&e, 0, true) {
			return nil
		}
	}
	return a.placed(&e, s, t)
}

// placed makes the hops of an eviction, notes where they, the trampoline and the instructions are, and returns the bytes of the site.
func (a *Armer) placed(e *eviction, s *probe.Site, t *arch.Trampoline) (code []byte) {
	for _, j := range e.jumps {
		if !a.injector.Hop(j.hop, j.to) {
			return nil
		}
	}
	for _, j := range e.jumps {
		if j.moved == nil {
			a.addPlace(place{start: j.hop, end: j.hop + 1, trampoline: t, site: s})
			continue
		}
		p := place{start: j.hop, end: j.hop + 1, site: s, moved: j.moved, code: j.to, from: e.site + uint64(j.offset)}
		a.addPlace(p)
		p.start, p.end = j.to, j.to+uint64(len(j.moved.Code))
		a.addPlace(p)
	}
	for _, b := range e.bytes {
		code = append(code, byte(b))
	}
	return code
}

// crossesPage reports whether the bytes of a site are on two pages, which cannot be written at once.
func crossesPage(address uint64, length int) bool {
	return address/pageBytes != (address+uint64(length)-1)/pageBytes
}

// place finds places for the hops of an eviction's jumps from number i on. They share bytes: what one leaves open is for the next.
func (a *Armer) place(e *eviction, i int, isNew bool) bool {
	if i == len(e.jumps) {
		return true
	}
	j := &e.jumps[i]
	distance := e.bytes[j.offset+1:][:jumpBytes-1]
	before := slices.Clone(distance)
	end := e.site + uint64(j.offset) + jumpBytes
	for at := range a.targets(e, i, end, before, isNew) {
		for k := range distance {
			distance[k] = int(byte((at - end) >> (8 * k)))
		}
		j.hop = at
		if e.looks++; e.looks > mostLooks {
			break
		}
		if a.injector.FitsHop(at, j.to) && a.place(e, i+1, isNew) {
			return true
		}
		copy(distance, before)
	}
	copy(distance, before)
	return false
}

// targets yields where jump i of an eviction can go, of which some bytes of the distance from its end are given: to pages that have hops
// already, or also to others.
func (a *Armer) targets(e *eviction, i int, end uint64, given []int, isNew bool) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		pages := e.pages
		switch {
		case i == 0 && isNew:
			pages = nil // they were tried
		case !slices.Contains(given[:3], -1):
			pages = a.injector.HopPagesLike(end + uint64(given[0]|given[1]<<8|given[2]<<16))
		}
		for _, page := range pages {
			if !eachTarget(page, end, given, yield) {
				return
			}
		}
		if !isNew {
			return
		}
		count := 0
		for page := range nearPages(end, given) {
			if first, ok := firstTarget(page, end, given); !ok || !a.injector.CanMapHops(first) {
				continue
			}
			if count++; !eachTarget(page, end, given, yield) || count == newPages {
				return
			}
		}
	}
}

// nearPages yields the pages to which a distance from an address can lead, of which some bytes are given: those below first, since the heap is above.
func nearPages(end uint64, given []int) iter.Seq[uint64] {
	numbers := func(given int) []int {
		if given >= 0 {
			return []int{given}
		}
		all := make([]int, 256)
		for i := range all {
			all[i] = i
		}
		return all
	}
	return func(yield func(uint64) bool) {
		for _, high := range numbers(given[3]) {
			if given[3] < 0 {
				high = high>>1 ^ (high&1 - 1) // -1, 0, -2, 1
			}
			middles := numbers(given[2])
			if int8(high) < 0 {
				slices.Reverse(middles)
			}
			for _, middle := range middles {
				start := (end + uint64(int64(int8(high))<<24|int64(middle)<<16)) &^ (pageBytes - 1)
				for page := start; page <= start+1<<16; page += pageBytes {
					if !yield(page) {
						return
					}
				}
			}
		}
	}
}

// isGiven reports whether a byte that may be given is a number.
func isGiven(given, n int) bool { return given < 0 || given == n&0xff }

// firstTarget returns the first address of a page whose distance has the bytes that are given.
func firstTarget(page, end uint64, given []int) (first uint64, ok bool) {
	eachTarget(page, end, given, func(at uint64) bool {
		first, ok = at, true
		return false
	})
	return first, ok
}

// eachTarget yields the addresses of a page whose distance has the bytes that are given. It returns false if yield does.
func eachTarget(page, end uint64, given []int, yield func(uint64) bool) bool {
	at, step := page, uint64(16)
	switch {
	case given[0] >= 0 && given[1] >= 0:
		step = 1 << 16
		at += (end + uint64(given[0]|given[1]<<8) - page) & 0xffff
	case given[0] >= 0:
		step = 1 << 8
		at += (end + uint64(given[0]) - page) & 0xff
	}
	for ; at+farJumpBytes <= page+pageBytes; at += step {
		distance := int64(at - end)
		if distance == int64(int32(distance)) && isGiven(given[1], int(distance>>8)) && isGiven(given[2], int(distance>>16)) && isGiven(given[3], int(distance>>24)) && !yield(at) {
			return false
		}
	}
	return true
}
