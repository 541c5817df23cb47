package events

import (
	"sdtconvert/arch"
	"sdtconvert/internal/trace/probe"
)

// CounterLayout says where in memory the counters of sites are: for each site some of 8 bytes for each ring, and behind them all, on a page
// of its own, the word that says that the tracer lives.
type CounterLayout struct {
	Sites  uint32 // in one piece of memory
	Rings  uint32
	Words  uint32 // counters of a site and a ring
	Stride uint32 // from the counters of one ring to those of the next, bytes
}

// counterBytes is how much memory one piece has, if that is enough for a site.
const counterBytes = 4 << 20

// NewCounterLayout lays out counters for a number of processors.
func NewCounterLayout(words, processors int) CounterLayout {
	l := CounterLayout{Words: uint32(words), Rings: NewRing(probe.MinimumEvent, processors).Count}
	l.Stride = (l.Words*wordBytes + arch.CounterStride - 1) &^ (arch.CounterStride - 1)
	l.Sites = min(max(counterBytes/(l.Rings*l.Stride), 1), mostCounted)
	return l
}

// mostCounted bounds the sites of a piece of memory.
const mostCounted = 512

// Length is the size of a piece of memory.
func (l *CounterLayout) Length() uint64 { return l.AliveAt() + pageSize }

// AliveAt returns the offset of the word that says that the tracer lives.
func (l *CounterLayout) AliveAt() uint64 {
	return (uint64(l.Sites)*uint64(l.Rings)*uint64(l.Stride) + pageSize - 1) &^ (pageSize - 1)
}

// At returns the offset of a site's counters in its piece of memory.
func (l *CounterLayout) At(site uint32) uint64 {
	return uint64(site%l.Sites) * uint64(l.Rings) * uint64(l.Stride)
}
