package trace

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
)

// tracer is the loop over what happens to processes. It runs in one thread of the system, as ptrace asks for.
type tracer struct {
	Options
	collector *collector
	processes map[int]*tracee
	owners    map[int]*tracee         // by thread
	early     map[int]change          // first stops of threads of which no event has told yet
	waiting   map[int]bool            // those of early that were there at the last tick
	list      atomic.Pointer[[]*Site] // by number, from 1
	files     map[fileVersion][]*Site
	jumps     bool
	traps     uint64 // hits of breakpoints
	child     int    // the program that was started, 0 for none
	ended     bool   // it has ended
	result    Statistics
	finished  chan struct{} // closed once no more events are wanted
}

// Run traces until the processes end, or what the options ask for has been seen.
func Run(o Options) (*Statistics, error) {
	runtime.LockOSThread()
	t := &tracer{
		Options: o, processes: map[int]*tracee{}, owners: map[int]*tracee{}, early: map[int]change{}, files: map[fileVersion][]*Site{},
		jumps: !o.Traps, finished: make(chan struct{}),
	}
	t.list.Store(&[]*Site{})
	t.collector = &collector{
		sites: t.sites, sink: o.Sink, filter: o.Filter, most: o.Most, clock: newClock(),
		full: sync.OnceFunc(func() { close(t.finished) }),
	}
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, unix.SIGCHLD)
	defer signal.Stop(changes)
	if err := checkProc(); err != nil {
		return nil, err
	}
	if err := t.start(); err != nil {
		t.detachAll()
		return nil, err
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		t.collector.run(stop)
		close(stopped)
	}()
	t.loop(changes)
	t.detachAll()
	close(stop)
	<-stopped
	for _, p := range t.processes {
		t.release(p)
	}
	err := t.collector.close()
	t.waitForChild()
	t.summarise()
	return &t.result, err
}

func (t *tracer) sites() []*Site { return *t.list.Load() }

// addSites numbers the sites of a process. It returns those for which there is room, and how many others there are.
func (t *tracer) addSites(found []*Site) (numbered []*Site, left int) {
	all := slices.Clip(t.sites())
	for _, s := range found {
		if s.file.Number == 0 && len(all) == maxSites {
			left++
			continue
		}
		if s.file.Number == 0 {
			all = append(all, s.file)
			s.file.Number = uint32(len(all))
		}
		s.Number = s.file.Number
		numbered = append(numbered, s)
	}
	t.list.Store(&all)
	return numbered, left
}

func (t *tracer) warn(err error) { t.Warn(err) }

// start attaches to the processes, and starts the program.
func (t *tracer) start() error {
	for _, pid := range t.PIDs {
		if err := t.attachProcess(pid); err != nil {
			return err
		}
	}
	if len(t.Program) > 0 {
		return t.startProgram()
	}
	if len(t.sites()) == 0 {
		return errors.New("no probe of the process matches: sdtconvert list --pid PID shows which it has")
	}
	return nil
}

// attach arms what a process has loaded.
func (t *tracer) attach(p *tracee) {
	found, err := p.look()
	if err != nil {
		t.warn(err)
	}
	t.attachSites(p, found)
}

// attachSites arms sites.
func (t *tracer) attachSites(p *tracee, found []*Site) {
	begun := time.Now()
	if !p.stop() {
		return
	}
	if p.isLent = len(found) > 0 && p.hasBorrower(); p.isLent { // which would meet breakpoints
		p.resume()
		p.lookLater(found)
		return
	}
	if err := p.arm(found); err != nil {
		t.warn(fmt.Errorf("process %d: %w", p.pid, err))
	}
	if p.isPrivate { // what the rings hold goes away with the process
		for _, th := range p.threads {
			if th.stopped {
				reportExits(th.tid)
			}
		}
	}
	p.resume()
	if len(found) > 0 {
		t.paused(begun)
	}
}

// paused notes how long the threads of a process stood still.
func (t *tracer) paused(begun time.Time) {
	d := time.Since(begun)
	t.result.Pauses++
	t.result.Paused += d
	t.result.Longest = max(t.result.Longest, d)
}

// lookEvery is how often the tracer looks for libraries that were loaded since.
const lookEvery = 50 * time.Millisecond

// loop handles what happens, until the end.
func (t *tracer) loop(changes <-chan os.Signal) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var end <-chan time.Time
	if t.For > 0 {
		end = time.After(t.For)
	}
	again := make(chan struct{})
	close(again)
	for len(t.processes) > 0 || t.child != 0 && !t.ended {
		var more <-chan struct{}
		if t.handleAll() {
			more = again
		}
		if len(t.processes) == 0 && (t.child == 0 || t.ended) {
			break
		}
		select {
		case <-more:
		case <-changes:
		case <-ticker.C:
			t.releaseEarly()
			for _, p := range slices.Collect(maps.Values(t.processes)) {
				p.lookAgain()
			}
		case <-end:
			return
		case <-t.finished:
			return
		case r := <-t.Signalled:
			if r.Signal != 0 && t.child != 0 && !t.ended {
				unix.Kill(t.child, unix.Signal(r.Signal))
			}
			if r.End {
				return
			}
		}
	}
}

// spin is how long the tracer asks for the next hit of a breakpoint, before it waits to be told: that takes ten times as long.
const spin = 100 * time.Microsecond

// turn bounds how long the tracer handles hits of breakpoints, before it looks at the time and at what the user asks for.
const turn = 5 * time.Millisecond

// handleAll handles what has happened. It returns true if there may be more.
func (t *tracer) handleAll() bool {
	begun := time.Now()
	last := begun
	for time.Since(begun) < turn {
		c, ok := wait(-1, false)
		switch {
		case ok:
			trapped := t.traps
			t.handle(c)
			if t.traps != trapped {
				last = time.Now()
			}
		case t.traps == 0 || time.Since(last) > spin:
			return false
		default:
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
	return true
}

// releaseEarly lets processes go that were stopped for the tracer two ticks ago, and whose parents have ended before they told of
// them.
func (t *tracer) releaseEarly() {
	for tid := range t.early {
		if t.waiting[tid] {
			detach(tid, 0)
			delete(t.early, tid)
		}
	}
	t.waiting = map[int]bool{}
	for tid := range t.early {
		t.waiting[tid] = true
	}
}

// handle handles what wait has reported.
func (t *tracer) handle(c change) {
	p := t.owners[c.tid]
	if !c.status.Stopped() {
		t.gone(p, c)
		return
	}
	if p == nil {
		if c.tid != t.child || t.processes[c.tid] != nil {
			t.early[c.tid] = c
		}
		return
	}
	th := p.threads[c.tid]
	switch c.event() {
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		t.forked(p, eventMessage(c.tid), c.event())
		resume(c.tid, 0)
	case unix.PTRACE_EVENT_EXEC:
		t.executed(p, c.tid)
	case unix.PTRACE_EVENT_EXIT:
		if len(p.threads) == 1 {
			t.release(p)
		}
		resume(c.tid, 0)
	case unix.PTRACE_EVENT_STOP:
		th.stopped, th.grouped = true, c.status.StopSignal() != unix.SIGTRAP
		if !p.stopping {
			t.resumeThread(th)
		}
	case 0:
		sig := c.status.StopSignal()
		if sig == unix.SIGTRAP && p.trap(th) {
			return
		}
		resume(c.tid, sig)
	default:
		resume(c.tid, 0)
	}
}

// resumeThread lets a stopped thread run on, or wait for SIGCONT.
func (t *tracer) resumeThread(th *thread) {
	th.stopped = false
	if th.grouped {
		listen(th.tid)
		return
	}
	resume(th.tid, 0)
}

// gone handles the end of a thread.
func (t *tracer) gone(p *tracee, c change) {
	delete(t.owners, c.tid)
	delete(t.early, c.tid)
	if c.tid == t.child && c.tid != 0 {
		t.ended = true
		t.result.ExitCode = c.status.ExitStatus()
		if c.status.Signaled() {
			t.result.ExitCode, t.result.Signal = 0, int(c.status.Signal())
		}
	}
	if p == nil {
		return
	}
	delete(p.threads, c.tid)
	if len(p.threads) == 0 && t.processes[p.pid] == p {
		delete(t.processes, p.pid)
		t.release(p)
	}
}

// release reads what a process has left in its rings.
func (t *tracer) release(p *tracee) {
	t.collector.release(slices.Collect(maps.Values(p.rings)), p.tables)
	p.rings, p.tables = map[uint32]*collectedRing{}, nil
	p.memory.Close()
}

// trapped records the hit of a breakpoint.
func (t *tracer) trapped(p *tracee, th *thread, s *armedSite, data []byte) {
	t.traps++
	e := Event{Site: s.Site, Time: readClock(), Thread: p.ownID(th), Process: p.pid}
	p.values(&e, data)
	t.collector.trapped(e)
}

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
	if len(t.processes) > 0 {
		time.Sleep(2 * time.Millisecond) // for threads in trampolines
	}
}

// detachProcess puts the code of a process back, and lets it run on.
func (t *tracer) detachProcess(p *tracee) {
	begun := time.Now()
	if !p.stop() {
		return
	}
	p.disarm()
	if p.entry != nil {
		p.write(p.entry.at, p.entry.old)
	}
	for _, th := range p.threads {
		if th.stopped {
			detach(th.tid, 0)
		}
	}
	if p.machine != nil {
		t.paused(begun)
	}
}

// waitForChild waits until the program that was started has ended. Threads that could not be stopped before, as one that waits for
// its child of vfork, are let go when they stop.
func (t *tracer) waitForChild() {
	for t.child != 0 && !t.ended {
		c, ok := wait(-1, true)
		if !ok {
			return
		}
		if !c.status.Stopped() {
			t.gone(nil, c)
			continue
		}
		sig := unix.Signal(0)
		if c.event() == 0 && c.status.StopSignal() != systemCallStop {
			sig = c.status.StopSignal()
		}
		detach(c.tid, sig)
	}
}

// summarise makes the statistics.
func (t *tracer) summarise() {
	c := t.collector
	get := func(counts []uint64, n uint32) uint64 {
		if int(n) < len(counts) {
			return counts[n]
		}
		return 0
	}
	for _, s := range t.sites() {
		if s.kind != arch.Probe {
			continue
		}
		dropped := get(c.dropped, s.Number)
		t.result.Sites = append(t.result.Sites, SiteStatistics{
			Site: s, Hits: get(c.hits, s.Number), Dropped: dropped, Breakpoint: s.traps,
		})
	}
	t.result.Abandoned, t.result.Damaged = c.abandoned, c.damaged
}
