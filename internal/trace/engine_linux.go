package trace

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/supervise"
	"sdtconvert/internal/trace/arm"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/inject"
	"sdtconvert/internal/trace/probe"
	"sdtconvert/internal/trace/ptrace"
)

// tracer is the loop over what happens to processes. It runs in one thread of the system, as ptrace asks for.
type tracer struct {
	Options
	session   *arm.Session
	processes map[int]*tracee
	owners    map[int]*tracee       // by thread
	early     map[int]ptrace.Change // first stops of threads which no event has announced yet
	aged      map[int]bool          // those of early that were there at the last tick
	traps     uint64                // hits of breakpoints
	follower  follower
	child     int  // the program that was started, 0 for none
	ended     bool // it has ended
	result    Statistics
	finished  chan struct{} // closed once no more events are wanted
}

// tracee is a process that is traced.
type tracee struct {
	*ptrace.Process
	*arm.Armer
	isLent bool   // sites wait for a child of vfork to end
	maps   string // /proc/PID/maps when modules were looked for
}

// PID returns the ID of the process.
func (p *tracee) PID() int { return p.ID }

// Run traces until the processes end, or what the options ask for has been seen.
func Run(o Options) (*Statistics, error) {
	runtime.LockOSThread()
	t := &tracer{
		Options: o, processes: map[int]*tracee{}, owners: map[int]*tracee{}, early: map[int]ptrace.Change{}, finished: make(chan struct{}),
	}
	life, err := inject.NewLife()
	if err != nil {
		return nil, err
	}
	t.session = &arm.Session{
		Listing: o.Listing, Declarations: o.Declarations, Mangled: o.Mangled, Census: o.Census, Filter: o.Filter, Traps: o.Traps, NoTraps: o.NoTraps, Life: life, Warn: o.Warn,
	}
	collector := &events.Collector{
		Sites: t.session.Sites, Sink: o.Sink, Filter: o.Filter, Most: o.Most, Every: o.Every, Clear: o.Clear, Head: o.Head, Clock: events.NewClock(),
		Full: sync.OnceFunc(func() { close(t.finished) }),
	}
	t.session.Collector = collector
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, unix.SIGCHLD)
	defer signal.Stop(changes)
	if err := supervise.CheckProc(); err != nil {
		return nil, err
	}
	if err := t.start(); err != nil {
		t.detachAll()
		return nil, err
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		collector.Run(stop)
		close(stopped)
	}()
	t.loop(changes)
	t.detachAll()
	close(stop)
	<-stopped
	for _, p := range t.processes {
		t.release(p)
	}
	err = collector.Close()
	t.waitForChild()
	t.summarise()
	return &t.result, err
}

// newTracee returns a process of which the tracer holds a thread.
func (t *tracer) newTracee(pid int) *tracee {
	p := &tracee{Process: ptrace.New(pid)}
	p.Handle, p.Warn = t.handle, t.Warn
	p.Trapped = func(tid int) bool {
		return p.HasBreakpoints() && ptrace.HasPending(tid, unix.SIGTRAP) || p.IsInTrampoline(tid) && ptrace.HasPending(tid, unix.SIGSEGV, unix.SIGBUS, unix.SIGILL)
	}
	p.Armer = arm.New(t.session, p.Process)
	return p
}

// start attaches to the processes, and starts the program.
func (t *tracer) start() error {
	for _, pid := range t.PIDs {
		if err := t.attachProcess(pid); err != nil {
			return err
		}
	}
	if t.Follow {
		for _, pid := range t.PIDs {
			t.attachChildren(pid)
		}
	}
	if len(t.Program) > 0 {
		return t.startProgram()
	}
	if len(t.session.Sites()) == 0 {
		return errors.New("no probe of the process matches: sdtconvert list --pid PID shows which it has")
	}
	if never := t.Filter.Never(t.session.Sites()); never != nil { // unless a library comes
		t.Warn(never)
	}
	if !t.Follow && !slices.ContainsFunc(slices.Collect(maps.Values(t.processes)), func(p *tracee) bool { return p.IsArmed() }) {
		return errors.New("no site could be armed, so there is nothing to see")
	}
	return nil
}

// attachSites arms sites.
func (t *tracer) attachSites(p *tracee, found []*probe.Site) {
	begun := time.Now()
	if !p.Wants(found) || !p.Stop() {
		return
	}
	if p.isLent = len(found) > 0 && p.HasBorrower(); p.isLent { // which would meet breakpoints
		p.Resume()
		p.LookLater(found)
		p.maps = ""
		return
	}
	if err := p.Arm(found); err != nil {
		t.Warn(fmt.Errorf("process %d: %w", p.ID, err))
	}
	if p.NeedsMemory() {
		p.ReportExits()
	}
	p.Resume()
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

// The tracer looks for code that was mapped by other means than the dynamic linker's, and for other tracers, after lookEvery, or later if
// that takes more than a lookShare'th of the time.
const (
	lookEvery = 100 * time.Millisecond
	lookShare = 100
)

// loop handles what happens, until the end.
func (t *tracer) loop(changes <-chan os.Signal) {
	look := time.NewTimer(lookEvery)
	defer look.Stop()
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
		t.trapFaulting()
		if len(t.processes) == 0 && (t.child == 0 || t.ended) {
			break
		}
		select {
		case <-more:
		case <-changes:
		case <-look.C:
			begun := time.Now()
			t.follower.tick()
			t.releaseEarly()
			for _, p := range slices.Collect(maps.Values(t.processes)) {
				t.lookAgain(p)
			}
			look.Reset(max(lookEvery, lookShare*time.Since(begun)))
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

// lookAgain looks for modules that were loaded since, and whether armed code is still the tracer's.
func (t *tracer) lookAgain(p *tracee) {
	if !p.HasBegun() || t.processes[p.ID] != p {
		return
	}
	text := ptrace.ReadText(fmt.Sprintf("/proc/%d/maps", p.ID))
	changed := text != p.maps && text != ""
	if p.maps = text; p.Check() {
		changed = true
	}
	if !changed {
		return
	}
	if found, err := p.Look(); err == nil && len(found) > 0 {
		t.attachSites(p, found)
	}
}

// trapFaulting gives sites breakpoints whose trampolines have met memory that is not there.
func (t *tracer) trapFaulting() {
	for _, p := range t.processes {
		if p.IsFaulting() && p.Stop() {
			p.TrapFaulting()
			p.Resume()
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
		c, ok := ptrace.Wait(-1, false)
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

// releaseEarly lets processes go that have stopped for the tracer two ticks ago, and whose parents have ended before they announced them.
func (t *tracer) releaseEarly() {
	for tid := range t.early {
		if t.aged[tid] && !t.willBeAnnounced(tid) {
			ptrace.Detach(tid, 0)
			delete(t.early, tid)
		}
	}
	t.aged = map[int]bool{}
	for tid := range t.early {
		t.aged[tid] = true
	}
}

// willBeAnnounced reports whether the parent of a process, or the process of a thread, is traced: it may wait for a processor.
func (t *tracer) willBeAnnounced(tid int) bool {
	parent, _ := strconv.Atoi(ptrace.Status(tid, "PPid"))
	return t.processes[parent] != nil || t.processes[ptrace.ProcessOf(tid)] != nil
}

// handle handles what wait has reported.
func (t *tracer) handle(c ptrace.Change) {
	p := t.owners[c.TID]
	if !c.Status.Stopped() {
		t.gone(p, c)
		return
	}
	if p == nil {
		if c.TID != t.child || t.processes[c.TID] != nil {
			t.early[c.TID] = c
		}
		return
	}
	th := p.Threads[c.TID]
	switch c.Event() {
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		t.forked(p, ptrace.EventMessage(c.TID), c.Event())
		ptrace.Resume(c.TID, 0)
	case unix.PTRACE_EVENT_EXEC:
		t.executed(p, c.TID)
	case unix.PTRACE_EVENT_EXIT:
		if len(p.Threads) == 1 {
			t.release(p)
		}
		ptrace.Resume(c.TID, 0)
	case unix.PTRACE_EVENT_STOP:
		th.Stopped, th.Grouped = true, c.Status.StopSignal() != unix.SIGTRAP
		if !p.Stopping {
			th.Resume()
		}
	case 0:
		t.signalled(p, th, c.Status.StopSignal())
	default:
		ptrace.Resume(c.TID, 0)
	}
}

// signalled handles a thread that has stopped for a signal.
func (t *tracer) signalled(p *tracee, th *ptrace.Thread, sig unix.Signal) {
	th.Stopped = true // so that ptrace can write, too
	stop := arm.OtherStop
	if sig == unix.SIGTRAP {
		stop = p.Trap(th.ID)
	}
	if stop == arm.OtherStop && p.Signal(th.ID, sig) {
		th.Stopped = false
		ptrace.Resume(th.ID, sig)
		return
	}
	switch stop {
	case arm.EntryStop:
		p.EndBeginning()
	case arm.ProbeStop:
		t.traps++
		t.follower.hit(th.ID)
	}
	if isNews := stop == arm.EntryStop || stop == arm.LoaderStop; isNews && !p.Stopping {
		t.attachAt(p, th)
		return
	} else if isNews {
		p.maps = "" // the next look finds it
	}
	th.Stopped = false
	ptrace.Resume(th.ID, 0)
}

// attachAt arms what a process has loaded, while a thread of it stands at a breakpoint.
func (t *tracer) attachAt(p *tracee, th *ptrace.Thread) {
	found, err := p.Look()
	if err != nil {
		t.Warn(err)
	}
	th.Stopped = false
	if p.Wants(found) {
		ptrace.Interrupt(th.ID)
	}
	ptrace.Resume(th.ID, 0)
	t.attachSites(p, found)
}

// gone handles the end of a thread.
func (t *tracer) gone(p *tracee, c ptrace.Change) {
	delete(t.owners, c.TID)
	delete(t.early, c.TID)
	if c.TID == t.child && c.TID != 0 {
		t.ended = true
		t.result.ExitCode = c.Status.ExitStatus()
		if c.Status.Signaled() {
			t.result.ExitCode, t.result.Signal = 0, int(c.Status.Signal())
		}
	}
	if p == nil {
		return
	}
	delete(p.Threads, c.TID)
	if len(p.Threads) == 0 && t.processes[p.ID] == p {
		t.forget(p)
	}
}

// forget drops a process that is not traced any more, whose threads are others' from now on.
func (t *tracer) forget(p *tracee) {
	for tid := range p.Threads {
		delete(t.owners, tid)
	}
	delete(t.processes, p.ID)
	t.release(p)
}

// release reads what a process has left in its rings.
func (t *tracer) release(p *tracee) {
	p.Release()
	p.Close()
}
