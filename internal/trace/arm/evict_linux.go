package arm

// Room for the jump of a site of one byte, on amd64 alone. The four bytes behind the site are the distance of its jump. If the jump would land where something
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
//
// Where all of that is in use, prefixes without effect before e9 lead elsewhere, and so does one instruction more.

import (
	"iter"
	"slices"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/inject"
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
	otherLooks   = 64 // for each other layout of the jumps

	farJumpBytes = 14
	pageBytes    = 4096
)

// jumpPrefixes change nothing of a near jump in 64-bit mode: segments and REX (Intel SDM, volume 2, 2.1.1 and 2.2.1).
var jumpPrefixes = []byte{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f}

// prefixSequences returns what may be before a jump: each of jumpPrefixes, and two of the first four.
var prefixSequences = sync.OnceValue(func() (all [][]byte) {
	for _, first := range jumpPrefixes {
		all = append(all, []byte{first})
	}
	for _, first := range jumpPrefixes[:4] {
		for _, second := range jumpPrefixes[:4] {
			all = append(all, []byte{first, second})
		}
	}
	return all
})

// eviction is what makes room for the jump of a site.
type eviction struct {
	site    uint64
	current []byte // from the site on
	bytes   []int  // from the site on; -1 may be any
	jumps   []evictionJump
	pages   []uint64 // that have hops and are near
	looks   int      // that are left
}

// evictionJump is one of its jumps: that of the site, or one in the place of an instruction.
type evictionJump struct {
	offset   int    // from the site, of its first byte
	distance int    // from the site, of the distance in it
	to       uint64 // where it leads
	hop      uint64 // by this hop
	moved    *arch.Moved
}

// successors returns the instructions behind a site that move for its jump: those that begin in its distance, and as many more. It is nil if
// one has to stay.
func successors(evictor arch.Evictor, code []byte, s *probe.Site, more int) (moves []arch.Moved) {
	isBehindEnd := false // where there may be data, unless it is of the function or fills a gap
	for at := 1; len(moves) < mostMoved && at < len(code); at += moves[len(moves)-1].Length {
		m, ok := evictor.Move(code[at:], s.Address+uint64(at), s.Address+uint64(at))
		if !ok || isBehindEnd && !m.NOP && uint64(at+m.Length) > s.Rest {
			return nil
		}
		moves, isBehindEnd = append(moves, m), isBehindEnd || m.Ends
		if m.Length >= jumpBytes-1 {
			if more == 0 {
				return moves
			}
			more--
		}
	}
	return nil
}

// evict returns the bytes that arm a site by a jump and the moves of the next instructions, nil if it cannot.
func (a *Armer) evict(s *probe.Site, js arch.JumpSite, t *arch.Trampoline, current []byte) []byte {
	evictor, ok := a.injector.Machine.(arch.Evictor)
	if !ok || js.Offset != 0 || js.Resume != 1 {
		return nil
	}
	area, err := a.injector.AreaNear(s.Address)
	if err != nil {
		return nil
	}
	e := eviction{site: s.Address, current: current, jumps: []evictionJump{{distance: 1, to: t.Address}}, pages: a.injector.HopPages(s.Address, mostHopPages)}
	isCall := func(m arch.Moved) bool { return m.Call }
	looks := mostLooks
	for more := range mostMoved {
		moves := successors(evictor, current, s, more)
		if moves == nil || slices.ContainsFunc(moves, isCall) && slices.ContainsFunc(a.Stopped(), a.HasShadowStack) || !a.moveInstructions(&e, area, evictor, len(moves)) {
			return nil
		}
		if a.placeLayouts(&e, looks) {
			return a.placed(&e, s, t)
		}
		looks = otherLooks
	}
	return nil
}

// moveInstructions copies instructions behind the site to an area until so many have moved.
func (a *Armer) moveInstructions(e *eviction, area *inject.Area, evictor arch.Evictor, count int) bool {
	for len(e.jumps) <= count {
		offset := 1
		if last := e.jumps[len(e.jumps)-1]; last.moved != nil {
			offset = last.offset + last.moved.Length
		}
		moved, ok := arch.Moved{}, false
		at, err := a.injector.Put(area, func(at uint64) []byte {
			moved, ok = evictor.Move(e.current[offset:], e.site+uint64(offset), at)
			return moved.Code
		})
		if err != nil || !ok {
			return false
		}
		e.jumps = append(e.jumps, evictionJump{offset: offset, to: at, moved: &moved})
	}
	return true
}

// placeLayouts finds places for the hops of an eviction: first with plain jumps, then with prefixes before one of those that take the place of instructions.
// looks are what the first layout may take.
func (a *Armer) placeLayouts(e *eviction, looks int) bool {
	try := func(prefixed int, prefixes []byte) bool {
		if !e.layOut(prefixed, prefixes) || slices.ContainsFunc(e.jumps, func(j evictionJump) bool { return !a.mayPlace(e, &j) }) {
			return false
		}
		for _, isNew := range []bool{false, true} {
			if e.looks = looks; a.place(e, 0, isNew) {
				return true
			}
		}
		return false
	}
	if try(0, nil) {
		return true
	}
	looks = otherLooks
	for i := len(e.jumps) - 1; i > 0; i-- {
		for _, prefixes := range prefixSequences() {
			if try(i, prefixes) {
				return true
			}
		}
	}
	return false
}

// mayPlace reports whether there is room where a jump has to go, by the highest byte of its distance.
func (a *Armer) mayPlace(e *eviction, j *evictionJump) bool {
	given := e.given(j)
	if given[3] < 0 {
		return true
	}
	start, size := e.end(j)+uint64(int64(int8(given[3]))<<24), uint64(1)<<24
	if given[2] >= 0 {
		start, size = start+uint64(given[2])<<16, 1<<16
	}
	return a.injector.MayHold(start, start+size)
}

// given returns the bytes of the distance of a jump, -1 for those that may be any.
func (e *eviction) given(j *evictionJump) []int { return e.bytes[j.distance:][:jumpBytes-1] }

// end returns the address behind a jump.
func (e *eviction) end(j *evictionJump) uint64 { return e.site + uint64(j.distance+jumpBytes-1) }

// layOut lays the jumps of an eviction out. One of them may have prefixes. It returns false if there is no room.
func (e *eviction) layOut(prefixed int, prefixes []byte) bool {
	for i := range e.jumps {
		j := &e.jumps[i]
		j.distance = j.offset + 1
		if i == prefixed {
			j.distance += len(prefixes)
		}
	}
	last := &e.jumps[len(e.jumps)-1]
	length := last.distance + jumpBytes - 1
	if prefixed > 0 && e.jumps[prefixed].moved.Length <= len(prefixes) || length > len(e.current) || crossesPage(e.site, length) {
		return false
	}
	e.bytes = slices.Repeat([]int{-1}, length)
	for k := last.offset + last.moved.Length; k < length; k++ { // of what does not move
		e.bytes[k] = int(e.current[k])
	}
	for _, j := range e.jumps {
		e.bytes[j.distance-1] = jumpOpcode
	}
	for k, prefix := range prefixes {
		e.bytes[e.jumps[prefixed].offset+k] = int(prefix)
	}
	return true
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

// evictedLength returns how many bytes of a site and the instructions behind it a killed tracer has changed, to have room for the site's jump.
func (a *Armer) evictedLength(evictor arch.Evictor, s *probe.Site, current []byte) (length int) {
	for at := 1; at+2+jumpBytes <= len(current); {
		opcode := at
		for opcode-at < 2 && slices.Contains(jumpPrefixes, current[opcode]) {
			opcode++
		}
		to, jumps := a.Machine.Branch(arch.Text{Code: current, Start: s.Address}, s.Address+uint64(opcode))
		if !jumps || !a.injector.Holds(to) {
			break
		}
		length = opcode + jumpBytes
		m, ok := evictor.Move(s.Original[at:], s.Address+uint64(at), s.Address+uint64(at))
		if !ok {
			break
		}
		at += m.Length
	}
	return length
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
	distance, end := e.given(j), e.end(j)
	before := slices.Clone(distance)
	for at := range a.targets(e, i, end, before, isNew) {
		for k := range distance {
			distance[k] = int(byte((at - end) >> (8 * k)))
		}
		j.hop = at
		if e.looks--; e.looks < 0 {
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
			if !a.injector.CanMapHops(page) || !hasTarget(page, end, given) {
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

// hasTarget reports whether a page has an address whose distance has the bytes that are given.
func hasTarget(page, end uint64, given []int) bool {
	return !eachTarget(page, end, given, func(uint64) bool { return false })
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
