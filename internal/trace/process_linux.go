package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/image"
)

// thread is a thread that is traced.
type thread struct {
	tid     int
	stopped bool
	grouped bool // stopped by job control
	own     int  // its ID in its own namespace, 0 if it was not looked up
}

// ownID returns the ID that a thread has for itself, as trampolines record it.
func (p *tracee) ownID(th *thread) int32 {
	if th.own == 0 {
		if th.own = th.tid; !p.sharesPIDs {
			th.own = idInProcess(th.tid)
		}
	}
	return int32(th.own)
}

// tracee is a process that is traced.
type tracee struct {
	t       *tracer
	pid     int
	memory  *os.File
	machine arch.Machine
	state   *arch.ThreadState
	order   binary.ByteOrder
	word    int
	jumper  arch.Jumper // nil if sites get breakpoints alone
	calls   *arch.SystemCall
	threads map[int]*thread

	modules    map[string]*armedSite // that were looked at; with a site that is armed there, nil for none
	armed      []*armedSite
	traps      map[uint64]*armedSite // breakpoints, by address
	semaphores map[uint64]raisedSemaphore
	entry      *armedSite // where the program begins, if it has not begun

	areas       []*area
	ledger      []entry
	ledgerHoles int             // entries of kind noEntry
	hops        map[uint64]bool // pages
	sharedInUse map[uint64]bool
	rings       map[uint32]*collectedRing
	tables      []*counterTable
	counters    []uint64 // addresses of tables of counters, each for countersPerTable sites
	threadID    int32    // offset of a thread's ID from its thread pointer, -1 if it is not known
	filters     []string // the states of threads with seccomp filters (seccompState)
	lookedAt    int      // how many threads were looked at for filters
	sharesPIDs  bool     // its threads have the same IDs for themselves as for the tracer
	canCopy     bool     // filters allow trampolines to copy texts
	isPrivate   bool     // rings are in memory that the tracer does not share
	cachedSpace *addressSpace
	calling     *remoteCalls
	stopping    bool
	isLent      bool         // sites wait for a child of vfork to end
	batch       *batch       // nil if code is read and written at once
	handler     *trapHandler // of SIGTRAP, nil for none
	hasNoRings  bool         // as its memory is limited
	noHandler   bool         // the program may not have one
	leftArmed   bool         // a tracer was killed while sites were armed
	mapsText    string       // /proc/PID/maps when modules were looked for
}

// raisedSemaphore is a semaphore that the tracer has raised.
type raisedSemaphore struct {
	entry  int // its number in the ledger, -1 for none
	module string
}

// armedSite is code that the tracer has changed.
type armedSite struct {
	*Site
	at       uint64
	old, new []byte
}

// newTracee opens a process that is stopped.
func newTracee(t *tracer, pid int) (*tracee, error) {
	memory, err := os.OpenFile(image.ProcessDirectory(pid)+"/mem", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: its memory cannot be written: %w", pid, err)
	}
	p := &tracee{
		t: t, pid: pid, memory: memory, threads: map[int]*thread{}, modules: map[string]*armedSite{}, traps: map[uint64]*armedSite{},
		semaphores: map[uint64]raisedSemaphore{}, hops: map[uint64]bool{}, sharedInUse: map[uint64]bool{}, rings: map[uint32]*collectedRing{}, threadID: -1,
	}
	p.filters, p.sharesPIDs = filterStates(pid), sharesPIDs(pid)
	return p, nil
}

func (p *tracee) read(address uint64, data []byte) error {
	_, err := p.memory.ReadAt(data, int64(address))
	return err
}

// write writes memory of a stopped process, code too. Kernels may forbid that through the file; ptrace may still do it.
func (p *tracee) write(address uint64, data []byte) error {
	_, err := p.memory.WriteAt(data, int64(address))
	if err == nil {
		return nil
	}
	for _, th := range p.threads {
		if th.stopped {
			_, err = unix.PtracePokeText(th.tid, uintptr(address), data)
			break
		}
	}
	return err
}

// stopPatience is how long the tracer waits for threads to stop.
const stopPatience = 10 * time.Second

// stop stops all threads. A thread that waits in the kernel and cannot be stopped runs none of the program's code until it can.
// It returns false if the process has gone, or does not stop.
func (p *tracee) stop() bool {
	p.stopping = true
	defer func() { p.stopping = false }()
	for _, th := range p.threads {
		if !th.stopped {
			interrupt(th.tid)
		}
	}
	begun := time.Now()
	for {
		waiting := 0
		for _, th := range p.threads {
			if th.stopped {
				continue
			}
			c, ok := wait(th.tid, false)
			switch {
			case !ok && (isZombie(th.tid) || time.Since(begun) > 20*time.Millisecond && isBlocked(th.tid)):
				continue
			case !ok:
				waiting++
				continue
			}
			if waiting++; c.status.Stopped() && c.event() == unix.PTRACE_EVENT_STOP {
				th.stopped, th.grouped = true, c.status.StopSignal() != unix.SIGTRAP
				waiting--
				continue
			}
			p.t.handle(c)
			interrupt(th.tid) // another stop has taken its place
		}
		if len(p.threads) == 0 || p.t.processes[p.pid] != p {
			return false
		}
		if waiting == 0 && !p.takeTraps() {
			p.cachedSpace = nil
			return true
		}
		switch waited := time.Since(begun); {
		case waited > stopPatience:
			p.t.warn(fmt.Errorf("process %d: its threads do not stop: it stays as it is", p.pid))
			p.resume()
			return false
		case waited > time.Millisecond:
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// hasBorrower reports whether an untraced child of vfork runs in the memory of the process. If the kernel does not tell, a thread that cannot be
// stopped is taken to wait for one.
func (p *tracee) hasBorrower() bool {
	for _, th := range p.threads {
		if th.stopped || isZombie(th.tid) {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.pid, th.tid))
		if err != nil {
			return true
		}
		for _, word := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(word)
			if shares, known := sharesMemory(p.pid, child); p.threads[child] == nil && (shares || !known) {
				return true
			}
		}
	}
	return false
}

// takeTraps has threads run on that have met a breakpoint and stopped before they could report it: without the breakpoint and its
// tracer, that would kill the program. It returns false if there are none.
func (p *tracee) takeTraps() (found bool) {
	if len(p.traps) == 0 && p.handler == nil {
		return false
	}
	for _, th := range p.threads {
		if th.stopped && hasPendingTrap(th.tid) && resume(th.tid, 0) == nil {
			th.stopped, found = false, true
		}
	}
	return found
}

// resume lets all threads run on.
func (p *tracee) resume() {
	for _, th := range p.threads {
		if th.stopped {
			p.t.resumeThread(th)
		}
	}
}

var errGone = errors.New("the process has ended")

// findThreadID looks for where the C library keeps the ID of each thread: sixteen threads have to agree. A place that is not one of
// a known library has to fit two threads.
func (p *tracee) findThreadID() {
	const size = 0x800
	if p.threadID >= 0 || len(p.state.IDs) == 0 {
		return
	}
	var blocks [][]byte
	var ids []uint32
	for _, th := range p.threads {
		pointer, err := p.threadPointer(th.tid)
		if !th.stopped || err != nil {
			continue
		}
		block := make([]byte, size)
		if p.read(pointer-p.state.Before, block) != nil {
			return
		}
		if blocks, ids = append(blocks, block), append(ids, uint32(p.ownID(th))); len(ids) == 16 {
			break
		}
	}
	candidates := slices.Clone(p.state.IDs)
	if len(blocks) > 1 {
		for at := 0; at < size; at += 4 {
			candidates = append(candidates, at)
		}
	}
	for _, at := range candidates {
		agrees := len(blocks) > 0
		for i, block := range blocks {
			agrees = agrees && p.order.Uint32(block[at:]) == ids[i]
		}
		if agrees {
			p.threadID = int32(at)
			break
		}
	}
	for _, a := range p.areas {
		p.write(a.start+threadIDAt, binary.NativeEndian.AppendUint32(nil, uint32(p.threadID)))
	}
}

// threadPointer returns the thread pointer of a stopped thread.
func (p *tracee) threadPointer(tid int) (uint64, error) {
	set := ntPRSTATUS
	if p.state.PointerSet != 0 {
		set = p.state.PointerSet
	}
	data := make([]byte, 1024)
	n, err := regset(unix.PTRACE_GETREGSET, tid, set, data)
	if err == nil && p.state.Pointer+p.word > n {
		err = errors.New("the kernel does not show the thread pointer")
	}
	return p.state.Get(data, p.state.Pointer, p.word, p.order), err
}

// setMachine learns the machine of the process, from its program.
func (p *tracee) setMachine(process *image.Process) error {
	p.machine = process.Machine()
	traits := p.machine.Traits()
	p.state, p.order, p.word = &traits.Threads, process.Encoding().Order, traits.WordSize()
	if p.state.Size == 0 {
		return fmt.Errorf("process %d: tracing of %s programs is not supported", p.pid, traits.Name)
	}
	if jumper, ok := p.machine.(arch.Jumper); ok && traits.Name == runtime.GOARCH {
		p.jumper, p.calls = jumper, jumper.SystemCall()
	}
	return nil
}
