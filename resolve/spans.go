package resolve

import (
	"slices"
	"sort"
)

// entry is a function in the making. It is small, because an image may have
// millions, and sorting them is most of the work.
type entry struct {
	start, size uint64
	symbol      uint32 // 0 for none
	key         uint32 // its code range, and in the low bits its rank
}

const rankBits = 4

func (e *entry) code() int { return int(e.key >> rankBits) }

// spans says which of its entries holds an address: the innermost, that is, of
// those that hold it, the one that starts last.
//
// That is worked out when it is made. The entries are cut at each other's ends
// into ranges that do not overlap, at most twice as many, so that a look-up is
// one binary search, however deep a hostile file nests its functions.
type spans struct {
	code    codeMap
	first   []int    // of each code range: its first index in the slices below
	starts  []uint64 // of ranges, each of which ends where the next one starts
	owners  []uint32 // the entry that holds the range, or nobody
	entries []entry
}

const nobody = ^uint32(0)

// makeSpans takes entries sorted by code range, start and rank.
func makeSpans(code codeMap, entries []entry) spans {
	s := spans{code: code, first: make([]int, len(code)+1), entries: entries}
	s.starts, s.owners = make([]uint64, 0, len(entries)*3/2), make([]uint32, 0, len(entries)*3/2)
	at := 0
	for r := range code {
		s.first[r] = len(s.starts)
		w := sweep{spans: &s, end: code[r].end, from: len(s.starts)}
		for at < len(entries) && entries[at].code() == r {
			at = w.open(at)
		}
		w.close(w.end)
	}
	s.first[len(code)] = len(s.starts)
	return s
}

func (s *spans) len() int { return len(s.entries) }

// find returns the entry that holds an address, or nil.
func (s *spans) find(section int, off uint64) *entry {
	r := s.code.find(section, off)
	if r < 0 || len(s.entries) == 0 {
		return nil
	}
	starts := s.starts[s.first[r]:s.first[r+1]]
	i := sort.Search(len(starts), func(i int) bool { return starts[i] > off }) - 1
	if i < 0 {
		return nil
	}
	owner := s.owners[s.first[r]+i]
	if owner == nobody {
		return nil
	}
	return &s.entries[owner]
}

// sweep goes through the entries of a code range in the order of their starts.
type sweep struct {
	*spans
	end     uint64   // of the code range
	from    int      // its first index in starts
	holding []uint32 // the entries that hold the present address, and ended ones below them; the innermost last
	ends    []uint64 // theirs
}

// open handles all entries of one start, the first of which is at i, and returns
// the index behind them.
func (w *sweep) open(i int) int {
	start, next := w.entries[i].start, i+1
	for next < len(w.entries) && w.entries[next].start == start && w.entries[next].code() == w.entries[i].code() {
		next++
	}
	w.close(start)
	if w.entries[i].size == 0 {
		// Nothing sized begins here. A label inside a sized function is no function.
		if len(w.holding) == 0 {
			end := w.end
			if next < len(w.entries) && w.entries[next].code() == w.entries[i].code() {
				end = w.entries[next].start
			}
			w.push(i, end)
			w.emit(start, uint32(i))
		}
		return next
	}
	for k := next - 1; k >= i; k-- { // the best one last, to be the innermost
		if w.entries[k].size > 0 {
			w.push(k, min(endOf(start, w.entries[k].size), w.end))
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
		owner := nobody
		if n > 0 {
			owner = w.holding[n-1]
		}
		w.emit(end, owner)
	}
}

// emit begins a range. It takes the place of one that begins there too.
func (w *sweep) emit(start uint64, owner uint32) {
	if n := len(w.starts) - 1; n >= w.from && w.starts[n] == start {
		w.owners[n] = owner
		return
	}
	w.starts, w.owners = append(w.starts, start), append(w.owners, owner)
}

// after returns the start of the first entry behind an address of a code range,
// or the range's end. The entries must be all of different starts.
func (s *spans) after(code int, addr uint64) uint64 {
	i := sort.Search(len(s.entries), func(i int) bool {
		e := &s.entries[i]
		return e.code() > code || e.code() == code && e.start > addr
	})
	if i < len(s.entries) && s.entries[i].code() == code {
		return s.entries[i].start
	}
	return s.code[code].end
}

// at returns the entry that starts at an address, or nil.
func (s *spans) at(code int, addr uint64) *entry {
	i, found := slices.BinarySearchFunc(s.entries, addr, func(e entry, addr uint64) int {
		switch {
		case e.code() < code || e.code() == code && e.start < addr:
			return -1
		case e.code() > code || e.start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &s.entries[i]
}
