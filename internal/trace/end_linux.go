package trace

// How tracing ends.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/ptrace"
)

// detachAll puts all code back, and lets the processes run on without the tracer.
func (t *tracer) detachAll() {
	done := map[*tracee]bool{}
	for isNew := true; isNew; { // a process that is stopped may have forked another
		isNew = false
		for _, p := range slices.Collect(maps.Values(t.processes)) {
			if !done[p] {
				done[p], isNew = true, true
				t.detachProcess(p)
			}
		}
	}
}

// detachProcess puts the code of a process back, and lets it run on.
func (t *tracer) detachProcess(p *tracee) {
	begun := time.Now()
	if !p.Stop() {
		return
	}
	if err := p.Disarm(); err != nil {
		t.Warn(fmt.Errorf("process %d: %w", p.ID, err))
	}
	for _, tid := range p.Stopped() {
		ptrace.Detach(tid, 0)
	}
	if p.Machine != nil {
		t.paused(begun)
	}
}

// waitForChild waits until the program that was started has ended. Threads that could not be stopped before, as one that waits for
// its child of vfork, are let go when they stop.
func (t *tracer) waitForChild() {
	for t.child != 0 && !t.ended {
		c, ok := ptrace.Wait(-1, true)
		if !ok {
			return
		}
		if !c.Status.Stopped() {
			t.gone(nil, c)
			continue
		}
		sig := unix.Signal(0)
		if c.Event() == 0 && c.Status.StopSignal() != ptrace.SystemCallStop {
			sig = c.Status.StopSignal()
		}
		ptrace.Detach(c.TID, sig)
	}
}

// summarise makes the statistics.
func (t *tracer) summarise() {
	c := t.session.Collector
	for _, s := range t.session.Sites() {
		if s.Kind == arch.Probe {
			hits, dropped := c.Totals(s.Number)
			t.result.Sites = append(t.result.Sites, SiteStatistics{Site: s, Hits: hits, Dropped: dropped})
		}
	}
	t.result.Abandoned, t.result.Damaged = c.Abandoned, c.Damaged
}
