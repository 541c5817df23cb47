package trace

import (
	"golang.org/x/sys/unix"

	"sdtconvert/internal/trace/ptrace"
)

// followEvery is how many hits of one thread pass between two looks at where it runs.
const followEvery = 128

// follower keeps the tracer on the processor of a thread that meets one breakpoint after the other: the processor then switches between
// them, where two processors would wake each other, which takes several times as long.
type follower struct {
	thread int
	hits   int
	isHot  bool         // a thread has met a breakpoint since the last tick
	own    *unix.CPUSet // where the tracer runs otherwise, nil while it does
}

// hit follows the thread that has met a breakpoint. It is called in the tracer's thread of the system.
func (f *follower) hit(thread int) {
	f.isHot = true
	if thread != f.thread {
		f.end()
		f.thread, f.hits = thread, 0
	}
	if f.hits++; f.hits%followEvery != 0 {
		return
	}
	n, ok := ptrace.Processor(thread)
	if !ok {
		return
	}
	if f.own == nil {
		var own unix.CPUSet
		if unix.SchedGetaffinity(0, &own) != nil {
			return
		}
		f.own = &own
	}
	var set unix.CPUSet
	if set.Set(n); !f.own.IsSet(n) || unix.SchedSetaffinity(0, &set) != nil {
		f.end()
	}
}

// tick ends it when no thread has met a breakpoint since the last one.
func (f *follower) tick() {
	if !f.isHot {
		f.end()
	}
	f.isHot = false
}

// end lets the tracer run anywhere again.
func (f *follower) end() {
	if f.own != nil {
		unix.SchedSetaffinity(0, f.own)
	}
	f.own, f.thread = nil, 0
}
