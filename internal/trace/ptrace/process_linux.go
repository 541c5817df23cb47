package ptrace

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
)

// Thread is a thread that is traced.
type Thread struct {
	ID      int
	Stopped bool
	Grouped bool // stopped by job control
	own     int  // its ID in its own namespace, 0 if it was not looked up
	options int  // of ptrace, besides those of all threads
}

// Process is a process that is traced.
type Process struct {
	ID      int
	Threads map[int]*Thread
	// Handle takes what is reported of threads while the process is being stopped or makes a call.
	Handle func(Change)
	Warn   func(error)
	// Trapped reports whether a stopped thread has met a breakpoint, or a fault of the tracer's code, that it could not yet report. It is nil if
	// there are none.
	Trapped    func(tid int) bool
	Stopping   bool
	sharesPIDs bool // its threads have the same IDs for themselves as for the tracer

	memory *os.File
}

// New returns a process without threads: those that the tracer holds are added. Its memory is opened when Open is called.
func New(pid int) *Process {
	p := &Process{ID: pid, Threads: map[int]*Thread{}}
	p.sharesPIDs = SharePIDs(os.Getpid(), pid)
	return p
}

// Open opens the memory of a process, which a thread of the tracer's holds, so that no other process has its ID.
func (p *Process) Open() (err error) {
	if p.memory, err = os.OpenFile(image.ProcessDirectory(p.ID)+"/mem", os.O_RDWR, 0); err != nil {
		return fmt.Errorf("process %d: its memory cannot be written: %w", p.ID, err)
	}
	return nil
}

// Close closes the memory.
func (p *Process) Close() {
	if p.memory != nil {
		p.memory.Close()
	}
	p.memory = nil
}

// PID returns the ID of the process.
func (p *Process) PID() int { return p.ID }

// Add adds a thread that the tracer holds.
func (p *Process) Add(tid int, stopped bool) *Thread {
	th := &Thread{ID: tid, Stopped: stopped}
	p.Threads[tid] = th
	return th
}

// OwnID returns the ID that a thread has for itself, as trampolines record it.
func (p *Process) OwnID(tid int) int32 {
	th := p.Threads[tid]
	if p.sharesPIDs || th == nil {
		return int32(tid)
	}
	if th.own == 0 {
		th.own = idInProcess(tid)
	}
	return int32(th.own)
}

// Stopped returns the IDs of the threads that are stopped: the first thread of the process comes first.
func (p *Process) Stopped() (ids []int) {
	for _, th := range p.Threads {
		if th.Stopped {
			ids = append(ids, th.ID)
		}
	}
	slices.SortFunc(ids, func(a, b int) int {
		if a == p.ID || b == p.ID {
			return map[bool]int{true: -1, false: 1}[a == p.ID]
		}
		return a - b
	})
	return ids
}

// ReadAt implements io.ReaderAt: the memory of the process.
func (p *Process) ReadAt(data []byte, address int64) (int, error) {
	if p.memory == nil {
		return 0, ErrGone
	}
	return p.memory.ReadAt(data, address)
}

// Read reads memory. It is an error if there is less. ptrace reads what its file does not show.
func (p *Process) Read(address uint64, data []byte) error {
	_, err := p.ReadAt(data, int64(address))
	if p.memory == nil {
		if stopped := p.Stopped(); len(stopped) > 0 {
			_, err = unix.PtracePeekText(stopped[0], uintptr(address), data)
		}
	}
	return err
}

// Write writes memory of a stopped process, code too. Kernels may forbid that through the file; ptrace may still do it.
func (p *Process) Write(address uint64, data []byte) error {
	err := ErrGone
	if p.memory != nil {
		if _, err = p.memory.WriteAt(data, int64(address)); err == nil {
			return nil
		}
	}
	for _, th := range p.Threads {
		if th.Stopped {
			_, err = unix.PtracePokeText(th.ID, uintptr(address), data)
			break
		}
	}
	return err
}

// Mappings returns what is mapped, and where the heap begins that brk(2) grows: 0 if that is not known.
func (p *Process) Mappings() (maps []image.Mapping, brk uint64, err error) {
	if maps, err = image.Mappings(p.ID); err != nil {
		return nil, 0, err
	}
	const startBrk = 47
	if stat := stat(p.ID); len(stat) > startBrk {
		brk, _ = strconv.ParseUint(stat[startBrk], 10, 64)
	}
	return maps, brk, nil
}

// Patience is how long the tracer waits for threads to stop.
const Patience = 10 * time.Second

// Stop stops all threads. A thread that waits in the kernel and cannot be stopped runs none of the program's code until it can.
// It returns false if the process has gone, or does not stop.
func (p *Process) Stop() bool {
	p.Stopping = true
	defer func() { p.Stopping = false }()
	for _, th := range p.Threads {
		if !th.Stopped {
			Interrupt(th.ID)
		}
	}
	begun := time.Now()
	for {
		running := 0
		for _, th := range p.Threads {
			if th.Stopped {
				continue
			}
			c, ok := Wait(th.ID, false)
			switch {
			case !ok && (IsZombie(th.ID) || time.Since(begun) > 20*time.Millisecond && isBlocked(th.ID)):
				continue
			case !ok:
				running++
				continue
			}
			if running++; c.Status.Stopped() && c.Event() == unix.PTRACE_EVENT_STOP {
				th.Stopped, th.Grouped = true, c.Status.StopSignal() != unix.SIGTRAP
				running--
				continue
			}
			p.Handle(c)
			Interrupt(th.ID) // another stop has taken its place
		}
		if len(p.Threads) == 0 || p.memory == nil {
			return false
		}
		if running == 0 && !p.takeTraps() {
			return true
		}
		switch waited := time.Since(begun); {
		case waited > Patience:
			p.Warn(fmt.Errorf("process %d: its threads do not stop: it stays as it is", p.ID))
			p.Resume()
			return false
		case waited > time.Millisecond:
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// takeTraps has threads run on that have met a breakpoint, or a fault of the tracer's code, and stopped before they could report it: without
// the tracer, that would kill the program. It returns false if there are none.
func (p *Process) takeTraps() (found bool) {
	if p.Trapped == nil {
		return false
	}
	for _, th := range p.Threads {
		if th.Stopped && p.Trapped(th.ID) && Resume(th.ID, 0) == nil {
			th.Stopped, found = false, true
		}
	}
	return found
}

// Resume lets all threads run on.
func (p *Process) Resume() {
	for _, th := range p.Threads {
		if th.Stopped {
			th.Resume()
		}
	}
}

// Resume lets a stopped thread run on, or wait for SIGCONT.
func (th *Thread) Resume() {
	th.Stopped = false
	if th.Grouped {
		listen(th.ID)
		return
	}
	Resume(th.ID, 0)
}

// HasBorrower reports whether an untraced child of vfork runs in the memory of the process. If the kernel does not tell, a thread that cannot be
// stopped is taken to wait for one.
func (p *Process) HasBorrower() bool {
	for _, th := range p.Threads {
		if th.Stopped || IsZombie(th.ID) {
			continue
		}
		children, err := childrenOf(p.ID, th.ID)
		if err != nil {
			return true
		}
		for _, child := range children {
			if shares, known := SharesMemory(p.ID, child); p.Threads[child] == nil && (shares || !known) {
				return true
			}
		}
	}
	return false
}

// childrenOf returns the children of a thread.
func childrenOf(pid, tid int) (children []int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid))
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			children = append(children, child)
		}
	}
	return children, err
}

// Children returns the children of a process that the tracer does not hold, but for itself and the process that has started it.
func Children(pid int) (pids []int) {
	own := map[int]bool{}
	for at := os.Getpid(); at > 1 && !own[at]; at, _ = strconv.Atoi(Status(at, "PPid")) {
		own[at] = true
	}
	for _, tid := range ThreadIDs(pid) {
		children, _ := childrenOf(pid, tid)
		for _, child := range children {
			if !own[child] && !isOurs(child) {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// isOurs reports whether the tracer holds a process already, of whose beginning it will be told.
func isOurs(pid int) bool {
	tracer, _ := strconv.Atoi(Status(pid, "TracerPid"))
	return tracer != 0 && ProcessOf(tracer) == os.Getpid()
}

// Sharers returns the other processes that run in the memory of a process, as far as the kernel tells. Children of vfork, which a thread waits
// for, are not among them: they end soon, or become other programs.
func Sharers(pid int) (pids []int) {
	borrowers := map[int]bool{}
	for _, tid := range ThreadIDs(pid) {
		if isBlocked(tid) {
			children, _ := childrenOf(pid, tid)
			for _, child := range children {
				borrowers[child] = true
			}
		}
	}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		other, err := strconv.Atoi(entry.Name())
		if err != nil || other == pid || borrowers[other] {
			continue
		}
		if shares, _ := SharesMemory(pid, other); shares && !isOurs(other) {
			pids = append(pids, other)
		}
	}
	return pids
}

// ErrGone says that a process has ended.
var ErrGone = errors.New("the process has ended")

// errSlow says that a thread does not come to a stop. The process may see to that itself, such as by userfaultfd(2).
var errSlow = errors.New("a thread of it does not stop")

// await waits for a change of a thread, at most for a time. Meanwhile it takes in what others do: the first thread of a process that
// was killed ends only when they have.
func (p *Process) await(tid int, most time.Duration) (Change, error) {
	const spins = 1000
	begun := time.Now()
	for tries := 0; ; tries++ {
		c, err := poll(tid)
		if err == nil && c.TID == 0 && time.Since(begun) > most {
			return c, errSlow
		}
		if err != nil || c.TID != 0 {
			return c, err
		}
		if tries < spins {
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		time.Sleep(50 * time.Microsecond)
		for _, other := range slices.Collect(maps.Keys(p.Threads)) {
			if c, ok := Wait(other, false); ok && other != tid {
				p.Handle(c)
			} else if ok {
				return c, nil
			}
		}
	}
}

// callTime is how long a system call of the tracer's may take.
const callTime = 2 * time.Second

// SystemCall has a thread whose registers are set enter a system call and leave it. It returns the signal that has come
// before, or 0. If the thread does neither, it is stopped, and that is an error.
func (p *Process) SystemCall(tid int) (unix.Signal, error) {
	begun, entered := time.Now(), false
	for {
		if err := unix.PtraceSyscall(tid, 0); err != nil {
			return 0, err
		}
		c, err := p.await(tid, callTime)
		if errors.Is(err, errSlow) || time.Since(begun) > callTime {
			Interrupt(tid)
			p.await(tid, callTime)
			return 0, errSlow
		}
		switch {
		case err != nil || !c.Status.Stopped():
			p.Handle(c)
			return 0, ErrGone
		case c.Event() != 0:
		case c.Status.StopSignal() != SystemCallStop:
			return c.Status.StopSignal(), nil
		case entered:
			return 0, nil
		default:
			entered = true
		}
	}
}

// StopAgain lets a thread run on with a signal, up to where it stops for the tracer.
func (p *Process) StopAgain(tid int, sig unix.Signal) error {
	for begun := time.Now(); time.Since(begun) < callTime; {
		if err := errors.Join(Interrupt(tid), Resume(tid, sig)); err != nil {
			return err
		}
		c, err := p.await(tid, callTime)
		if errors.Is(err, errSlow) {
			return err
		}
		if err != nil || !c.Status.Stopped() {
			p.Handle(c)
			return ErrGone
		}
		if c.Event() == unix.PTRACE_EVENT_STOP {
			if th := p.Threads[tid]; th != nil {
				th.Grouped = c.Status.StopSignal() != unix.SIGTRAP
			}
			return nil
		}
		sig = 0
		if c.Event() == 0 {
			sig = c.Status.StopSignal()
		}
	}
	return errSlow
}

// IsGrouped reports whether job control has stopped a thread.
func (p *Process) IsGrouped(tid int) bool { return p.Threads[tid] != nil && p.Threads[tid].Grouped }
