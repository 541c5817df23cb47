package resolve

import (
	"cmp"
	"slices"
	"sort"

	"sdtconvert/elfreloc"
)

// entry is a function in the making: of a symbol, or of a frame.
type entry struct {
	code        int // index of its code range
	start, size uint64
	symbol      uint32    // 0 for a frame
	rank        uint8     // of the symbol
	frame       frameKind // of the frame
}

// compareStarts sorts by code range and start.
func compareStarts(a, b entry) int {
	return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.start, b.start))
}

// typeless reports whether the entry is of a symbol without a type.
func (e *entry) typeless() bool { return e.rank&rankTypeless != 0 }

// spans says which of its entries holds an address: the innermost, that is, of
// those that hold it, the one that starts last.
//
// That is worked out when it is made. The entries are cut at each other's ends
// into ranges that do not overlap, at most twice as many, so that a look-up is
// one search, however deep a hostile file nests its functions.
type spans struct {
	code    elfreloc.Code
	ranges  [][]held // of each code range; each ends where its entry does or the next one starts
	entries []entry
}

// held is a range that an entry holds.
type held struct {
	start uint64
	entry uint32
}

// makeSpans takes entries sorted by code range, start and rank.
func makeSpans(code elfreloc.Code, entries []entry) spans {
	s := spans{code: code, ranges: make([][]held, len(code)), entries: entries}
	for r, at := 0, 0; at < len(entries); r++ {
		end := at
		for end < len(entries) && entries[end].code == r {
			end++
		}
		w := sweep{entries: entries, end: code[r].End, held: make([]held, 0, end-at)}
		for at < end {
			at = w.open(at, end)
		}
		w.close(w.end)
		s.ranges[r] = w.held
	}
	return s
}

func (s *spans) len() int { return len(s.entries) }

// find returns the entry that holds an address, or nil.
func (s *spans) find(section int, off uint64) *entry {
	c := s.code.Find(section, off)
	if c < 0 {
		return nil
	}
	ranges := s.ranges[c]
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].start > off })
	if i == 0 {
		return nil
	}
	if e := &s.entries[ranges[i-1].entry]; e.size == 0 || off-e.start < e.size {
		return e
	}
	return nil
}

// sweep goes through the entries of a code range in the order of their starts.
type sweep struct {
	held    []held
	entries []entry
	end     uint64   // of the code range
	holding []uint32 // the entries that hold the present address, and ended ones below them; the innermost last
	ends    []uint64 // theirs
}

// open handles all entries of one start, the first of which is at i, and returns
// the index behind them. The entries of the code range go up to last.
func (w *sweep) open(i, last int) int {
	start, next := w.entries[i].start, i+1
	for next < last && w.entries[next].start == start {
		next++
	}
	w.close(start)
	if w.entries[i].size == 0 {
		// Nothing sized begins here. A label inside a sized function is not a function.
		if len(w.holding) == 0 {
			end := w.end
			if next < last {
				end = w.entries[next].start
			}
			w.push(i, end)
			w.emit(start, uint32(i))
		}
		return next
	}
	for k := next - 1; k >= i; k-- { // the best one last, to be the innermost
		if w.entries[k].size > 0 {
			w.push(k, start+min(w.entries[k].size, w.end-start))
		}
	}
	w.emit(start, uint32(i))
	return next
}

func (w *sweep) push(i int, end uint64) {
	w.holding, w.ends = append(w.holding, uint32(i)), append(w.ends, end)
}

// close ends the entries that do not reach beyond an address.
func (w *sweep) close(at uint64) {
	for n := len(w.ends); n > 0 && w.ends[n-1] <= at; n = len(w.ends) {
		end := w.ends[n-1]
		for n > 0 && w.ends[n-1] <= end {
			n--
		}
		w.holding, w.ends = w.holding[:n], w.ends[:n]
		if n > 0 {
			w.emit(end, w.holding[n-1])
		}
	}
}

// emit begins a range. It takes the place of one that begins there too.
func (w *sweep) emit(start uint64, entry uint32) {
	if n := len(w.held) - 1; n >= 0 && w.held[n].start == start {
		w.held[n].entry = entry
		return
	}
	w.held = append(w.held, held{start, entry})
}

// after returns the start of the first entry behind an address of a code range,
// or the range's end.
func (s *spans) after(code int, addr uint64) uint64 {
	i := sort.Search(len(s.entries), func(i int) bool {
		e := &s.entries[i]
		return e.code > code || e.code == code && e.start > addr
	})
	if i < len(s.entries) && s.entries[i].code == code {
		return s.entries[i].start
	}
	return s.code[code].End
}

// at returns the first entry that starts at an address, or nil.
func (s *spans) at(code int, addr uint64) *entry {
	i, found := slices.BinarySearchFunc(s.entries, addr, func(e entry, addr uint64) int {
		switch {
		case e.code < code || e.code == code && e.start < addr:
			return -1
		case e.code > code || e.start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &s.entries[i]
}
