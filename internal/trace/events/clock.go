package events

import "time"

// The time that the package was loaded, by both of the system's clocks.
var loaded = time.Now()

// monotonic returns nanoseconds since the package was loaded.
func monotonic() uint64 { return uint64(time.Since(loaded)) }

// Clock converts the processor's clock to nanoseconds since the tracer began. It measures how fast that clock is, the better the
// longer the tracer runs.
type Clock struct {
	ticks, nanoseconds uint64  // at the beginning
	rate               float64 // nanoseconds a tick
}

// NewClock begins to measure.
func NewClock() *Clock {
	c := &Clock{}
	c.ticks, c.nanoseconds = readBoth()
	time.Sleep(2 * time.Millisecond)
	c.measure()
	return c
}

// readBoth reads both clocks at the same moment, as far as the processor is not taken away.
func readBoth() (ticks, nanoseconds uint64) {
	least := ^uint64(0)
	for range 5 {
		before := ReadClock()
		now := monotonic()
		after := ReadClock()
		if after-before < least {
			least, ticks, nanoseconds = after-before, before+(after-before)/2, now
		}
	}
	return ticks, nanoseconds
}

// measure measures the rate once more.
func (c *Clock) measure() {
	ticks, nanoseconds := readBoth()
	if ticks > c.ticks {
		c.rate = float64(nanoseconds-c.nanoseconds) / float64(ticks-c.ticks)
	}
}

// since returns the nanoseconds from the beginning to a time of the processor's clock.
func (c *Clock) since(ticks uint64) int64 {
	return int64(float64(int64(ticks-c.ticks)) * c.rate)
}

// wall returns the time of day.
func (c *Clock) wall(ticks uint64) time.Time {
	return loaded.Add(time.Duration(c.nanoseconds) + time.Duration(c.since(ticks)))
}
