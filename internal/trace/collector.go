package trace

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sdtconvert/arch"
)

// collector reads the rings of all processes, and hands their events to a sink in the order of time.
type collector struct {
	sites  func() []*Site
	sink   Sink
	filter *Filter
	most   uint64
	full   func() // called when the sink wants no more
	clock  *clock

	mutex    sync.Mutex
	rings    []*collectedRing
	counters []*counterTable
	pending  []Event // not yet in order
	hits     []uint64
	dropped  []uint64
	values   []uint64 // room for the values of events
	scratch  Event
	emitted  uint64
	ended    atomic.Bool

	abandoned, damaged uint64
}

// collectedRing is the rings of one size of events of a process, and of its children.
type collectedRing struct {
	*ringReader
	process int
	users   int
}

// counterTable is counters of hits, for the sites from one on.
type counterTable struct {
	memory     sharedMemory
	first      uint32
	processors uint32
	users      int
}

// delay is how long an event waits for earlier ones, of threads that were interrupted while they wrote them.
const delay = 20 * time.Millisecond

// run reads until stop is closed.
func (c *collector) run(stop <-chan struct{}) {
	for {
		begun := readClock()
		c.mutex.Lock()
		count := c.pass(false)
		ready := c.ready(begun - uint64(float64(delay)/c.clock.rate))
		c.mutex.Unlock()
		c.deliver(ready) // which waits for a reader of the output; the program does not
		pause := time.Millisecond
		if count > 10000 {
			pause = 0
		}
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
	}
}

// pass reads what is in the rings. The mutex is locked.
func (c *collector) pass(last bool) (count int) {
	c.clock.measure()
	for _, ring := range c.rings {
		count += c.drain(ring, last)
	}
	return count
}

func (c *collector) drain(ring *collectedRing, last bool) int {
	all := c.sites()
	count, _ := ring.read(last, func(number uint32, data []byte) {
		if number == 0 || int(number) > len(all) || all[number-1].layout.size != ring.Size {
			ring.damaged++
			return
		}
		site := all[number-1]
		c.scratch.Values = c.room(len(site.Arguments))
		site.decode(&c.scratch, data, ring.order)
		c.scratch.Process = ring.process
		c.add(&c.scratch)
	})
	return count
}

// room returns an empty slice for so many values.
func (c *collector) room(n int) []uint64 {
	if cap(c.values)-len(c.values) < n {
		c.values = make([]uint64, 0, 64<<10)
	}
	at := len(c.values)
	c.values = c.values[:at+n]
	return c.values[at : at : at+n]
}

// add takes an event in.
func (c *collector) add(e *Event) {
	c.count(&c.hits, e.Number, 1)
	if c.sink == nil || c.ended.Load() {
		return
	}
	if c.filter.matches(e) {
		c.pending = append(c.pending, *e)
	} else {
		c.values = c.values[:len(c.values)-len(e.Values)]
	}
}

// count counts for a site.
func (c *collector) count(counts *[]uint64, number uint32, n uint64) {
	for int(number) >= len(*counts) {
		*counts = append(*counts, make([]uint64, 256)...)
	}
	(*counts)[number] += n
}

// trapped takes in the event of a breakpoint.
func (c *collector) trapped(e Event) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	values := e.Values
	e.Values = append(c.room(len(values)), values...)
	c.add(&e)
}

// ready takes the events that are older than a time, in their order. The mutex is locked.
func (c *collector) ready(before uint64) []Event {
	byTime := func(a, b Event) int { return cmp.Compare(a.Time, b.Time) }
	if !slices.IsSortedFunc(c.pending, byTime) { // as those of one processor are
		slices.SortStableFunc(c.pending, byTime)
	}
	n, _ := slices.BinarySearchFunc(c.pending, before, func(e Event, t uint64) int { return cmp.Compare(e.Time, t) })
	ready := slices.Clone(c.pending[:n])
	left := copy(c.pending, c.pending[n:])
	clear(c.pending[left:])
	c.pending = c.pending[:left]
	if left == 0 {
		c.values = nil
	}
	return ready
}

// deliver hands events to the sink.
func (c *collector) deliver(events []Event) {
	for i := range events {
		if c.ended.Load() {
			return
		}
		more := c.sink.Event(&events[i], c.clock)
		if c.emitted++; !more || c.emitted == c.most {
			c.ended.Store(true)
			c.full()
		}
	}
	if f, ok := c.sink.(interface{ Flush() error }); ok && len(events) > 0 && f.Flush() != nil && !c.ended.Load() {
		c.ended.Store(true)
		c.full()
	}
}

// addRing begins to read rings.
func (c *collector) addRing(reader *ringReader, process int) *collectedRing {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ring := &collectedRing{reader, process, 1}
	c.rings = append(c.rings, ring)
	return ring
}

// addCounters begins to read counters.
func (c *collector) addCounters(table *counterTable) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	table.users = 1
	c.counters = append(c.counters, table)
}

// share counts another process that uses rings and counters.
func (c *collector) share(rings []*collectedRing, tables []*counterTable) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, r := range rings {
		r.users++
	}
	for _, t := range tables {
		t.users++
	}
}

// release reads what a process has left, after its last hit.
func (c *collector) release(rings []*collectedRing, tables []*counterTable) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, ring := range rings {
		if ring.users--; ring.users > 0 {
			continue
		}
		c.drain(ring, true)
		for i := range c.sites() {
			n, err := ring.memory.load(droppedAt(ring.Ring, uint32(i+1)))
			if err == nil && n > 0 {
				c.count(&c.dropped, uint32(i+1), n)
			}
		}
		c.abandoned, c.damaged = c.abandoned+ring.abandoned, c.damaged+ring.damaged
		c.rings = slices.DeleteFunc(c.rings, func(r *collectedRing) bool { return r == ring })
		closeMemory(ring.memory)
	}
	for _, table := range tables {
		if table.users--; table.users > 0 {
			continue
		}
		c.addCounts(table)
		c.counters = slices.DeleteFunc(c.counters, func(t *counterTable) bool { return t == table })
		closeMemory(table.memory)
	}
}

// addCounts adds the counters of a table to the hits.
func (c *collector) addCounts(table *counterTable) {
	for i := range c.sites() {
		number := uint32(i + 1)
		if number < table.first || number >= table.first+countersPerTable {
			continue
		}
		for k := range table.processors {
			at := uint64((number-table.first)*table.processors+k) * arch.CounterStride
			if n, err := table.memory.load(at); err == nil {
				c.count(&c.hits, number, n)
			}
		}
	}
}

// close hands over the last events.
func (c *collector) close() error {
	if c.sink == nil {
		return nil
	}
	c.mutex.Lock()
	ready := c.ready(^uint64(0))
	c.mutex.Unlock()
	c.deliver(ready)
	return c.sink.Close()
}

// closeMemory gives shared memory back.
func closeMemory(m sharedMemory) {
	if m, ok := m.(interface{ close() }); ok {
		m.close()
	}
}

// countersPerTable is how many sites have their counters in one piece of memory.
const countersPerTable = 512

// maxSites bounds the sites of a run.
const maxSites = 1 << 14
