package events

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/probe"
)

// Collector reads the rings of all processes, and hands their events to a sink in the order of time.
type Collector struct {
	Sites  func() []*probe.Site // by number, from 1
	Sink   Sink                 // nil if hits are only counted
	Filter *Filter              // nil for all events
	Most   uint64               // events until the end, 0 for any number
	Full   func()               // called when the sink wants no more
	Clock  *Clock

	mutex    sync.Mutex
	rings    []*Rings
	counters []*Counters
	pending  []pendingEvent // not yet in order
	bytes    int            // of their data
	merged   []pendingEvent // room for their order
	handed   []pendingEvent // to the sink
	hits     []uint64
	dropped  []uint64
	emitted  uint64
	ended    atomic.Bool

	// Abandoned counts events that a thread has begun and not finished, and Damaged rings that the program has written to.
	Abandoned, Damaged uint64
}

// Rings are the rings of one size of events of a process, and of its children.
type Rings struct {
	*ringReader
	process *Process
	users   int
}

// pendingEvent is an event that waits for earlier ones.
type pendingEvent struct {
	time uint64
	from *chunk
	at   int // in its data
}

// chunk are events that were read at once, or that of a breakpoint.
type chunk struct {
	rings *Rings // nil for that of a breakpoint
	data  []byte
	event Event
}

// Counters are counters of hits, for CountersPerTable sites from First on.
type Counters struct {
	Memory Memory
	First  uint32
	Rings  uint32 // counters of a site
	users  int
}

// CountersPerTable is how many sites have their counters in one piece of memory.
const CountersPerTable = 512

// delay is how long an event waits for earlier ones, of threads that were interrupted while they wrote them.
const delay = 20 * time.Millisecond

// Run reads until stop is closed.
func (c *Collector) Run(stop <-chan struct{}) {
	for pause := time.Millisecond; ; {
		begun := ReadClock()
		c.mutex.Lock()
		count, idle := c.pass(false), len(c.rings) == 0 && len(c.pending) == 0
		ready := c.ready(begun - min(begun, uint64(float64(delay)/c.Clock.rate)))
		c.mutex.Unlock()
		c.deliver(ready) // which waits for a reader of the output; the program does not
		switch {
		case count > 10000:
			pause = 0
		case count > 0:
			pause = time.Millisecond
		case idle:
			pause = mostIdle
		default: // a full ring lasts for milliseconds
			pause = min(pause+pause/4+100*time.Microsecond, mostPause)
		}
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
	}
}

// The longest times between two looks at rings, and at whether there are any.
const (
	mostPause = 5 * time.Millisecond
	mostIdle  = 20 * time.Millisecond
)

// The most events that wait to be put in order, and the most bytes of their data. The rings keep what comes then; of breakpoints, it is dropped.
const (
	mostPending = 1 << 18
	mostBytes   = 32 << 20
	mostTrapped = 1 << 16
)

// pass reads what is in the rings. The mutex is locked.
func (c *Collector) pass(last bool) (count int) {
	c.Clock.measure()
	for _, ring := range c.rings {
		if len(c.pending) < mostPending && c.bytes < mostBytes {
			count += c.drain(ring, last)
		}
	}
	return count
}

func (c *Collector) drain(ring *Rings, last bool) int {
	all, now := c.Sites(), ReadClock()
	count, _ := ring.read(last, func(data []byte) {
		from := &chunk{rings: ring, data: data}
		for at := 0; at < len(data); at += int(ring.Size) {
			number := siteNumber(data[at:], ring.order)
			if number == arch.Discarded {
				continue
			}
			if number == 0 || int(number) > len(all) || all[number-1].Layout.Size != ring.Size {
				ring.damaged++
				continue
			}
			c.count(&c.hits, number, 1)
			hit := ring.order.Uint64(data[at+arch.EventTime:])
			if hit > now {
				now = ReadClock()
				hit = min(hit, now) // the program may have written any
			}
			c.add(pendingEvent{hit, from, at})
		}
	})
	return count
}

// add takes an event in.
func (c *Collector) add(e pendingEvent) {
	if c.Sink == nil || c.ended.Load() {
		return
	}
	c.pending = append(c.pending, e)
	c.bytes += e.size()
}

// size is how many bytes of a chunk an event has.
func (e *pendingEvent) size() int {
	if e.from.rings == nil {
		return 0
	}
	return int(e.from.rings.Size)
}

// count counts for a site.
func (c *Collector) count(counts *[]uint64, number uint32, n uint64) {
	for int(number) >= len(*counts) {
		*counts = append(*counts, make([]uint64, 256)...)
	}
	(*counts)[number] += n
}

// Trapped takes in the event of a breakpoint.
func (c *Collector) Trapped(e Event) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.pending) >= mostTrapped {
		c.count(&c.dropped, e.Number, 1)
		return
	}
	c.count(&c.hits, e.Number, 1)
	if c.Filter.matches(&e) {
		c.add(pendingEvent{time: e.Time, from: &chunk{event: e}})
	}
}

// ready takes the events that are older than a time, in their order. The mutex is locked.
func (c *Collector) ready(before uint64) []pendingEvent {
	c.sort()
	n, _ := slices.BinarySearchFunc(c.pending, before, func(e pendingEvent, t uint64) int { return cmp.Compare(e.time, t) })
	left := append(c.handed[:0], c.pending[n:]...)
	clear(c.pending[n:])
	c.handed, c.pending = c.pending[:n], left
	for i := range c.handed {
		c.bytes -= c.handed[i].size()
	}
	return c.handed
}

// sort puts the events that wait in order, those of the same time as they came. It merges ascending runs, as a ring has one.
func (c *Collector) sort() {
	from := c.pending
	var ends []int // of runs
	for i := range from {
		if i+1 == len(from) || from[i+1].time < from[i].time {
			ends = append(ends, i+1)
		}
	}
	if len(ends) < 2 {
		return
	}
	to := slices.Grow(c.merged[:0], len(from))[:len(from)]
	for len(ends) > 1 {
		start, merged := 0, ends[:0]
		for i := 0; i < len(ends); i += 2 {
			middle, end := ends[i], ends[min(i+1, len(ends)-1)]
			merge(to[start:end], from[start:middle], from[middle:end])
			merged, start = append(merged, end), end
		}
		from, to, ends = to, from, merged
	}
	clear(to)
	c.pending, c.merged = from, to
}

// merge writes two runs into one, which has their length.
func merge(to, a, b []pendingEvent) {
	for i := range to {
		if len(b) == 0 || len(a) > 0 && a[0].time <= b[0].time {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}

// deliver hands events to the sink.
func (c *Collector) deliver(events []pendingEvent) {
	defer clear(events)
	all := c.Sites()
	var decoded Event
	for i := range events {
		if c.ended.Load() {
			return
		}
		from := events[i].from
		e := &from.event
		if r := from.rings; r != nil {
			e = &decoded
			data := from.data[events[i].at:][:r.Size]
			decode(e, all[siteNumber(data, r.order)-1], data, r.order)
			e.Time, e.Process = events[i].time, r.process
			if !c.Filter.matches(e) {
				continue
			}
		}
		more := c.Sink.Event(e, c.Clock)
		if c.emitted++; !more || c.emitted == c.Most {
			c.ended.Store(true)
			c.Full()
		}
	}
	if f, ok := c.Sink.(Flusher); ok && len(events) > 0 && f.Flush() != nil && !c.ended.Load() {
		c.ended.Store(true)
		c.Full()
	}
}

// AddRings begins to read rings of a process.
func (c *Collector) AddRings(r arch.Ring, memory Memory, order binary.ByteOrder, process *Process) *Rings {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ring := &Rings{newRingReader(r, memory, order), process, 1}
	c.rings = append(c.rings, ring)
	return ring
}

// AddCounters begins to read counters.
func (c *Collector) AddCounters(table *Counters) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	table.users = 1
	c.counters = append(c.counters, table)
}

// Share counts another process that uses rings and counters.
func (c *Collector) Share(rings []*Rings, tables []*Counters) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, r := range rings {
		r.users++
	}
	for _, t := range tables {
		t.users++
	}
}

// Release reads what a process has left, after its last hit.
func (c *Collector) Release(rings []*Rings, tables []*Counters) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, ring := range rings {
		if ring.users--; ring.users > 0 {
			continue
		}
		c.drain(ring, true)
		for i := range c.Sites() {
			n, err := ring.memory.Load(DroppedAt(ring.Ring, uint32(i+1)))
			if err == nil && n > 0 {
				c.count(&c.dropped, uint32(i+1), n)
			}
		}
		c.Abandoned, c.Damaged = c.Abandoned+ring.abandoned, c.Damaged+ring.damaged
		c.rings = slices.DeleteFunc(c.rings, func(r *Rings) bool { return r == ring })
		ring.memory.Close()
	}
	for _, table := range tables {
		if table.users--; table.users > 0 {
			continue
		}
		c.addCounts(table)
		c.counters = slices.DeleteFunc(c.counters, func(t *Counters) bool { return t == table })
		table.Memory.Close()
	}
}

// addCounts adds the counters of a table to the hits.
func (c *Collector) addCounts(table *Counters) {
	for i := range c.Sites() {
		number := uint32(i + 1)
		if number < table.First || number >= table.First+CountersPerTable {
			continue
		}
		for k := range table.Rings {
			at := uint64((number-table.First)*table.Rings+k) * arch.CounterStride
			if n, err := table.Memory.Load(at); err == nil {
				c.count(&c.hits, number, n)
			}
		}
	}
}

// Close hands over the last events.
func (c *Collector) Close() error {
	if c.Sink == nil {
		return nil
	}
	c.mutex.Lock()
	ready := c.ready(^uint64(0))
	c.mutex.Unlock()
	c.deliver(ready)
	if sink, ok := c.Sink.(Incomplete); ok {
		for _, site := range c.Sites() {
			if _, dropped := c.Totals(site.Number); dropped > 0 {
				sink.Dropped(site, dropped)
			}
		}
	}
	return c.Sink.Close()
}

// Totals returns the hits of a site, and how many hits were dropped.
func (c *Collector) Totals(site uint32) (hits, dropped uint64) {
	get := func(counts []uint64) uint64 {
		if int(site) < len(counts) {
			return counts[site]
		}
		return 0
	}
	return get(c.hits), get(c.dropped)
}
