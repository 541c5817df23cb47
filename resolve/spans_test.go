package resolve

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"sdtconvert/elfreloc"
)

// What spans find is what a search through all entries finds.
func TestSpansAgreeWithASlowSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	code := elfreloc.Code{{Start: 10, End: 70}, {Start: 70, End: 100}, {Section: 3, End: 40}}
	for range 2000 {
		var entries []entry
		for range r.IntN(12) {
			c := r.IntN(len(code))
			start := code[c].Start + r.Uint64N(code[c].End-code[c].Start)
			entries = append(entries, entry{start: start, size: 1 + r.Uint64N(40), symbol: uint32(len(entries)), code: c, rank: uint8(r.Uint32N(4))})
		}
		slices.SortFunc(entries, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank), cmp.Compare(a.symbol, b.symbol))
		})
		s := makeSpans(code, entries)
		for c := range code {
			for off := code[c].Start; off < code[c].End; off++ {
				var want *entry
				for i := range entries {
					e := &entries[i]
					if e.code == c && off >= e.start && off-e.start < e.size && (want == nil || e.start > want.start) {
						want = e
					}
				}
				if got := s.find(code[c].Section, off); got != want {
					t.Fatalf("%v: %d+%d is in %+v, want %+v", entries, code[c].Section, off, got, want)
				}
			}
		}
	}
}

// A million functions within each other, which all end at once, or all start at
// once, cost no look-up more than others do: else this test would not end.
func TestDeepNesting(t *testing.T) {
	const n = 1 << 20
	code := elfreloc.Code{{End: 4 * n}}
	for name, nested := range map[string]func(i int) entry{
		"one end":   func(i int) entry { return entry{start: uint64(i), size: uint64(2*n - i)} },
		"one start": func(i int) entry { return entry{size: uint64(i) + 1} },
		"pyramid":   func(i int) entry { return entry{start: uint64(i), size: uint64(2*n - 2*i)} },
	} {
		var entries []entry
		for i := range n {
			entries = append(entries, nested(i))
		}
		s := makeSpans(code, entries)
		for off := range uint64(4 * n) {
			if e := s.find(0, off); e != nil && off-e.start >= e.size {
				t.Fatalf("%s: %d is in %+v", name, off, e)
			}
		}
	}
}
