package events

// What trampolines count, and how it comes to the sink.

import (
	"encoding/binary"
	"slices"

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

// Counters are counters of hits, for as many sites as the layout says from First on.
type Counters struct {
	CounterLayout
	Memory  Memory
	First   uint32
	ForSink bool // they count what the sink wants, and not hits that a filter rejects

	users int
	read  map[uint32][]uint64 // what was counted, by site
}

// counted is what trampolines have counted since the sink was given it.
type counted struct {
	bins    map[uint32][]uint64 // by site
	dropped map[uint32]uint64   // hits, by site
}

// addCounts adds the counters of a table to the hits, and to what the sink gets. The mutex is locked.
func (c *Collector) addCounts(table *Counters) {
	for i := range c.Sites() {
		number := uint32(i + 1)
		if number < table.First || number-table.First >= table.Sites {
			continue
		}
		for word, n := range table.news(number) {
			if n == 0 {
				continue
			}
			if c.count(&c.hits, number, n); table.ForSink {
				c.counted.add(number, word, n)
			}
		}
	}
}

// news returns what was counted of a site since the last call, by all rings together.
func (t *Counters) news(site uint32) []uint64 {
	counts, data := make([]uint64, t.Words), make([]byte, t.Words*wordBytes)
	for ring := range t.Rings {
		if _, err := t.Memory.ReadAt(data, int64(t.At(site)+uint64(ring)*uint64(t.Stride))); err != nil {
			continue
		}
		for i := range counts {
			counts[i] += binary.NativeEndian.Uint64(data[wordBytes*i:])
		}
	}
	if t.read == nil {
		t.read = map[uint32][]uint64{}
	}
	before := t.read[site]
	t.read[site] = slices.Clone(counts)
	for i := range before { // a program may have written less
		counts[i] -= min(counts[i], before[i])
	}
	return counts
}

// add counts in a range of a site.
func (c *counted) add(number uint32, word int, n uint64) {
	if c.bins == nil {
		c.bins = map[uint32][]uint64{}
	}
	if missing := word + 1 - len(c.bins[number]); missing > 0 {
		c.bins[number] = append(c.bins[number], make([]uint64, missing)...)
	}
	c.bins[number][word] += n
}

// addDropped adds the hits for which rings had no room. The mutex is locked.
func (c *Collector) addDropped(ring *Rings) {
	sites := c.Sites()
	ring.drops = append(ring.drops, make([]uint64, max(0, len(sites)-len(ring.drops)))...)
	for i := range sites {
		number := uint32(i + 1)
		n, err := ring.memory.Load(DroppedAt(ring.Ring, number))
		if err != nil || n <= ring.drops[i] {
			continue
		}
		c.drop(number, n-ring.drops[i])
		ring.drops[i] = n
	}
}

// drop counts dropped hits of a site. The mutex is locked.
func (c *Collector) drop(number uint32, n uint64) {
	if c.counted.dropped == nil {
		c.counted.dropped = map[uint32]uint64{}
	}
	c.count(&c.dropped, number, n)
	c.counted.dropped[number] += n
}

// handOver gives the sink what trampolines have counted.
func (c *Collector) handOver() {
	c.mutex.Lock()
	for _, table := range c.counters {
		c.addCounts(table)
	}
	for _, ring := range c.rings {
		c.addDropped(ring)
	}
	news := c.counted
	c.counted = counted{}
	c.mutex.Unlock()
	counting, isCounting := c.Sink.(Counting)
	incomplete, isIncomplete := c.Sink.(Incomplete)
	for _, site := range c.Sites() {
		if isCounting && site.Kind == arch.Probe {
			counting.Counted(site, news.bins[site.Number])
		}
		if n := news.dropped[site.Number]; isIncomplete && n > 0 {
			incomplete.Dropped(site, n)
		}
	}
}

// show has the sink show what it has counted.
func (c *Collector) show() {
	view, ok := c.Sink.(View)
	if !ok || c.ended.Load() {
		return
	}
	c.handOver()
	c.head()
	if view.Show() != nil {
		c.ended.Store(true)
		c.Full()
	}
	if c.Clear {
		view.Clear()
	}
}

// head says when what follows is shown, if it is shown several times.
func (c *Collector) head() {
	if c.Every > 0 && c.Head != nil {
		c.Head(c.Clock.wall(ReadClock()))
	}
}
