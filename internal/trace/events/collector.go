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
	Every  time.Duration        // after which the sink shows what it has counted, 0 if that is at the end
	Clear  bool                 // the sink begins anew then
	Head   func(time.Time)      // called before each of these, nil for nothing
	Full   func()               // called when the sink wants no more
	Clock  *Clock

	mutex    sync.Mutex
	rings    []*Rings
	counters []*Counters
	pending  []Event // not yet in order
	hits     []uint64
	dropped  []uint64
	counted  counted
	values   []uint64 // room for the values of events
	scratch  Event
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

// delay is how long an event waits for earlier ones, of threads that were interrupted while they wrote them.
const delay = 20 * time.Millisecond

// Run reads until stop is closed.
func (c *Collector) Run(stop <-chan struct{}) {
	show := time.Now().Add(c.Every)
	for pause := time.Millisecond; ; {
		begun := ReadClock()
		c.mutex.Lock()
		count, idle := c.pass(false), len(c.rings) == 0 && len(c.pending) == 0
		ready := c.ready(begun - min(begun, uint64(float64(delay)/c.Clock.rate)))
		c.mutex.Unlock()
		c.deliver(ready) // which waits for a reader of the output; the program does not
		if c.Every > 0 && time.Now().After(show) {
			c.show()
			show = time.Now().Add(c.Every)
		}
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

// The most events that wait to be put in order. The rings keep what comes then; of breakpoints, it is dropped.
const (
	mostPending = 1 << 18
	mostTrapped = 1 << 16
)

// pass reads what is in the rings. The mutex is locked.
func (c *Collector) pass(last bool) (count int) {
	c.Clock.measure()
	for _, ring := range c.rings {
		if len(c.pending) < mostPending {
			count += c.drain(ring, last)
		}
	}
	return count
}

func (c *Collector) drain(ring *Rings, last bool) int {
	all, now := c.Sites(), ReadClock()
	count, _ := ring.read(last, func(number uint32, data []byte) {
		if number == 0 || int(number) > len(all) || all[number-1].Layout.Size != ring.Size {
			ring.damaged++
			return
		}
		site := all[number-1]
		c.scratch.Values = c.room(len(site.Arguments))
		decode(&c.scratch, site, data, ring.order)
		if c.scratch.Time > now {
			now = ReadClock()
			c.scratch.Time = min(c.scratch.Time, now) // the program may have written any
		}
		c.scratch.Process = ring.process
		c.scratch.nameTypes(ring.order)
		c.add(&c.scratch)
	})
	return count
}

// room returns an empty slice for so many values.
func (c *Collector) room(n int) []uint64 {
	if cap(c.values)-len(c.values) < n {
		c.values = make([]uint64, 0, 64<<10)
	}
	at := len(c.values)
	c.values = c.values[:at+n]
	return c.values[at : at : at+n]
}

// add takes an event in.
func (c *Collector) add(e *Event) {
	c.count(&c.hits, e.Number, 1)
	if c.Sink == nil || c.ended.Load() {
		return
	}
	if c.Filter.matches(e) {
		c.pending = append(c.pending, *e)
	} else {
		c.values = c.values[:len(c.values)-len(e.Values)]
	}
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
		c.drop(e.Number, 1)
		return
	}
	e.nameTypes(binary.NativeEndian)
	values := e.Values
	e.Values = append(c.room(len(values)), values...)
	c.add(&e)
}

// ready takes the events that are older than a time, in their order. The mutex is locked.
func (c *Collector) ready(before uint64) []Event {
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
func (c *Collector) deliver(events []Event) {
	for i := range events {
		if c.ended.Load() {
			return
		}
		more := c.Sink.Event(&events[i], c.Clock)
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
		c.addDropped(ring)
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

// Close hands over the last events.
func (c *Collector) Close() error {
	if c.Sink == nil {
		return nil
	}
	c.mutex.Lock()
	ready := c.ready(^uint64(0))
	c.mutex.Unlock()
	c.deliver(ready)
	c.handOver()
	c.head()
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
