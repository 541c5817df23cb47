package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
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
	hops        map[uint64]bool // pages
	sharedInUse map[uint64]bool
	rings       map[uint32]*collectedRing
	tables      []*counterTable
	counters    []uint64 // addresses of tables of counters, each for countersPerTable sites
	threadID    int32    // offset of a thread's ID from its thread pointer, -1 if it is not known
	filters     string   // seccompState of a thread with a seccomp filter, "" if there is none
	mainFilters string   // seccompState of the first thread
	sharesPIDs  bool     // its threads have the same IDs for themselves as for the tracer
	canCopy     bool     // filters allow trampolines to copy texts
	isPrivate   bool     // rings are in memory that the tracer does not share
	cachedSpace *addressSpace
	calling     *remoteCalls
	stopping    bool
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
	p.filters, p.mainFilters, p.sharesPIDs = filterState(pid), seccompState(pid), sharesPIDs(pid)
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

// remoteCalls is a thread that makes system calls for the tracer. Between two calls its registers are those of the program, so
// that it goes on rightly if the tracer is killed.
type remoteCalls struct {
	tid         int
	instruction uint64 // address
	block       uint64 // address of the registers that the thread restores itself, 0 if it does not
	clear       uint64 // address of code in the kernel's library, 0 for none
	saved       []byte
}

// beginCalls prepares a stopped thread for calls.
func (p *tracee) beginCalls() (err error) {
	c := &remoteCalls{}
	for _, th := range p.threads {
		if th.stopped && (c.tid == 0 || th.tid == p.pid) {
			c.tid = th.tid
		}
	}
	if c.tid == 0 {
		return errors.New("no thread of it can be stopped")
	}
	p.calling = c
	if err := p.leaveStubs(); err != nil {
		return err
	}
	if err := p.placeStub(); err != nil {
		return err
	}
	return p.saveRegisters()
}

// The code of calls while there is no area: in the last bytes of the kernel's library, which are empty.
const (
	firstStub  = 512 // bytes before the end
	firstBlock = 256
)

// placeStub chooses the code by which the thread makes calls. In an area, and in the kernel's library, that is code by which the
// thread restores its registers itself if the tracer does not. Else any instruction that calls the kernel does.
func (p *tracee) placeStub() (err error) {
	c := p.calling
	vdso, empty := p.vdsoEnd(), make([]byte, firstStub)
	if p.jumper.CallStub(0, 0) == nil {
		c.instruction, err = p.findInstruction()
		return err
	}
	if len(p.areas) > 0 {
		c.instruction, c.block = p.areas[0].start+stubAt, p.areas[0].start+blockAt
		return nil
	}
	code, current := p.jumper.CallStub(vdso-firstStub, vdso-firstBlock), make([]byte, firstStub)
	isFree := vdso > 0 && p.read(vdso-firstStub, current) == nil && (bytes.Equal(current, empty) || bytes.HasPrefix(current, code))
	if !isFree || len(code) > firstStub-firstBlock || p.write(vdso-firstStub, code) != nil {
		c.instruction, err = p.findInstruction()
		return err
	}
	c.instruction, c.block, c.clear = vdso-firstStub, vdso-firstBlock, vdso-firstStub
	return nil
}

// vdsoEnd returns where the kernel's library ends, 0 if there is none.
func (p *tracee) vdsoEnd() uint64 {
	space, err := p.space()
	if err != nil {
		return 0
	}
	for _, m := range space.maps {
		if m.Path == "[vdso]" {
			return m.End
		}
	}
	return 0
}

// isInStub reports whether an address is in the code of a call.
func (p *tracee) isInStub(pc, vdso uint64) bool {
	return vdso > 0 && pc >= vdso-firstStub && pc < vdso || slices.ContainsFunc(p.areas, func(a *area) bool {
		return pc >= a.start+stubAt && pc < a.start+stubAt+stubSize
	})
}

// leaveStubs lets threads go on that are in the stub of a system call, as a tracer has left them that was killed.
func (p *tracee) leaveStubs() error {
	tid, vdso := p.calling.tid, p.vdsoEnd()
	defer func() { p.calling.tid = tid }()
	for _, th := range p.threads {
		for th.stopped {
			data, err := registers(th.tid, p.state.Size)
			if err != nil {
				return err
			}
			if !p.isInStub(p.state.Get(data, p.state.PC, p.word, p.order), vdso) {
				break
			}
			p.calling.tid = th.tid
			if err := p.stopAgain(0); err != nil {
				return err
			}
		}
	}
	return nil
}

// saveRegisters reads the registers of the thread. If it was in a system call that begins again, they are as if it had
// not yet called: the kernel has left that for when the thread runs on.
func (p *tracee) saveRegisters() error {
	c := p.calling
	data, err := registers(c.tid, p.state.Size)
	if err != nil {
		return err
	}
	c.saved = data
	if p.calls.NoRestart < 0 {
		return nil
	}
	get := func(offset int) uint64 { return p.state.Get(data, offset, p.word, p.order) }
	put := func(offset int, value uint64) { p.state.Put(data, offset, p.word, p.order, value) }
	number, result := int64(get(p.calls.NoRestart)), -int64(get(p.calls.Result))
	if number >= 0 && result >= firstRestart && result <= restartBlock && result != restartBlock-1 {
		if result == restartBlock {
			number = int64(p.calls.RestartSyscall)
		}
		put(p.calls.Number, uint64(number))
		put(p.state.PC, get(p.state.PC)-uint64(len(p.calls.Code)))
	}
	put(p.calls.NoRestart, ^uint64(0))
	return nil
}

// The results of system calls that begin again (include/linux/errno.h); 515 is another.
const (
	firstRestart = 512
	restartBlock = 516
)

// findInstruction returns the address of an instruction that calls the kernel: the library of the kernel has one.
func (p *tracee) findInstruction() (uint64, error) {
	space, err := p.space()
	if err != nil {
		return 0, err
	}
	executable := slices.DeleteFunc(slices.Clone(space.maps), func(m image.Mapping) bool { return !m.Executable || m.Path == "[vsyscall]" })
	slices.SortStableFunc(executable, func(a, b image.Mapping) int {
		rank := func(m image.Mapping) int { return map[bool]int{m.Path == "[vdso]": -1}[true] }
		return rank(a) - rank(b)
	})
	for _, m := range executable {
		code := make([]byte, m.End-m.Start)
		if p.read(m.Start, code) != nil {
			continue
		}
		if i := bytes.Index(code, p.calls.Code); i >= 0 {
			return m.Start + uint64(i), nil
		}
	}
	return 0, errors.New("no instruction of it calls the kernel")
}

// call makes a system call in the process.
func (p *tracee) call(number uint64, args ...uint64) (uint64, error) {
	c := p.calling
	for {
		data := slices.Clone(c.saved)
		put := func(offset int, value uint64) { p.state.Put(data, offset, p.word, p.order, value) }
		put(p.calls.Number, number)
		for i, at := range p.calls.Arguments {
			if i < len(args) {
				put(at, args[i])
			}
		}
		if c.block != 0 {
			if err := p.write(c.block, c.saved); err != nil {
				return 0, err
			}
		}
		put(p.state.PC, c.instruction)
		if err := setRegisters(c.tid, data); err != nil {
			return 0, err
		}
		sig, err := p.enterAndLeave()
		if err != nil {
			return 0, err
		}
		if sig == 0 {
			break
		}
		// A signal has come first. The program gets it, and the call is tried again from there.
		if err := errors.Join(setRegisters(c.tid, c.saved), p.stopAgain(sig), p.saveRegisters()); err != nil {
			return 0, err
		}
	}
	data, err := registers(c.tid, p.state.Size)
	if err := errors.Join(err, setRegisters(c.tid, c.saved)); err != nil {
		return 0, err
	}
	result := p.state.Get(data, p.calls.Result, p.word, p.order)
	if errno := -result; errno > 0 && errno < 4096 {
		return 0, unix.Errno(errno)
	}
	return result, nil
}

// systemCallStop is the signal of a stop at a system call (PTRACE_O_TRACESYSGOOD). If the tracer is killed there, nothing comes of
// it; the stop behind a single step would become a SIGTRAP.
const systemCallStop = unix.SIGTRAP | 0x80

// enterAndLeave has the thread make a system call. It returns the signal that has come before, or 0.
func (p *tracee) enterAndLeave() (unix.Signal, error) {
	for entered := false; ; {
		if err := unix.PtraceSyscall(p.calling.tid, 0); err != nil {
			return 0, err
		}
		c, ok := wait(p.calling.tid, true)
		switch {
		case !ok || !c.status.Stopped():
			p.t.handle(c)
			return 0, errGone
		case c.event() != 0:
		case c.status.StopSignal() != systemCallStop:
			return c.status.StopSignal(), nil
		case entered:
			return 0, nil
		default:
			entered = true
		}
	}
}

// stopAgain lets the thread run on with a signal, up to where it stops for the tracer.
func (p *tracee) stopAgain(sig unix.Signal) error {
	tid := p.calling.tid
	for {
		if err := errors.Join(interrupt(tid), resume(tid, sig)); err != nil {
			return err
		}
		c, ok := wait(tid, true)
		if !ok || !c.status.Stopped() {
			p.t.handle(c)
			return errGone
		}
		if c.event() == unix.PTRACE_EVENT_STOP {
			if th := p.threads[tid]; th != nil {
				th.grouped = c.status.StopSignal() != unix.SIGTRAP
			}
			return nil
		}
		sig = 0
		if c.event() == 0 {
			sig = c.status.StopSignal()
		}
	}
}

// endCalls has the thread be as it was.
func (p *tracee) endCalls() error {
	if p.calling == nil {
		return nil
	}
	defer func() { p.calling = nil }()
	if p.calling.clear != 0 {
		p.write(p.calling.clear, make([]byte, firstStub))
	}
	if th := p.threads[p.calling.tid]; th == nil || !th.grouped {
		return nil
	}
	return p.stopAgain(0)
}

// findThreadID looks for where the C library keeps the ID of each thread: sixteen threads have to agree. A place that is not one of
// a known library has to fit two threads.
func (p *tracee) findThreadID() {
	const size = 0x800
	if p.threadID >= 0 || p.state.Pointer == 0 {
		return
	}
	var blocks [][]byte
	var ids []uint32
	for _, th := range p.threads {
		data, err := registers(th.tid, p.state.Size)
		if !th.stopped || err != nil {
			continue
		}
		block := make([]byte, size)
		if p.read(p.state.Get(data, p.state.Pointer, p.word, p.order), block) != nil {
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
