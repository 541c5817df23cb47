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
	"unsafe"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/image"
)

// thread is a thread that is traced.
type thread struct {
	tid     int
	stopped bool
	grouped bool // stopped by job control
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
	semaphores map[uint64]int        // raised, with the number of its entry in the ledger
	entry      *armedSite            // where the program begins, if it has not begun

	areas       []*area
	ledger      []entry
	hops        map[uint64]bool // pages
	sharedInUse map[uint64]bool
	rings       map[uint32]*collectedRing
	tables      []*counterTable
	counters    []uint64 // addresses of tables of counters, each for countersPerTable sites
	threadID    int32    // offset of a thread's ID from its thread pointer, -1 if it is not known
	filtered    bool     // a seccomp filter may forbid system calls
	cachedSpace *addressSpace
	calling     *remoteCalls
	stopping    bool
	mapsText    string // /proc/PID/maps when modules were looked for
}

// armedSite is code that the tracer has changed.
type armedSite struct {
	*Site
	at       uint64
	old, new []byte
}

// newTracee opens a process that is stopped.
func newTracee(t *tracer, pid int) (*tracee, error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: its memory cannot be written: %w", pid, err)
	}
	p := &tracee{
		t: t, pid: pid, memory: memory, threads: map[int]*thread{}, modules: map[string]*armedSite{}, traps: map[uint64]*armedSite{},
		semaphores: map[uint64]int{}, hops: map[uint64]bool{}, sharedInUse: map[uint64]bool{}, rings: map[uint32]*collectedRing{}, threadID: -1,
	}
	p.filtered = processStatus(pid, "Seccomp") == "2"
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

// stop stops all threads. A thread that waits in the kernel and cannot be stopped runs none of the program's code until it can.
// It returns false if the process has gone.
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
			case !ok && time.Since(begun) > 20*time.Millisecond && isBlocked(th.tid):
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
		if waiting == 0 {
			p.cachedSpace = nil
			return true
		}
		if time.Since(begun) > time.Millisecond {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// resume lets all threads run on.
func (p *tracee) resume() {
	for _, th := range p.threads {
		if th.stopped {
			p.t.resumeThread(th)
		}
	}
}

// remoteCalls is a thread that makes system calls for the tracer, with what it was doing.
type remoteCalls struct {
	tid         int
	instruction uint64 // address
	saved       []byte
	mask        uint64
}

const (
	ptraceGetSigmask = 0x420a
	ptraceSetSigmask = 0x420b
)

func signalMask(request, tid int, mask *uint64) error {
	return ptraceCall(request, tid, wordBytes, uintptr(unsafe.Pointer(mask)))
}

// beginCalls prepares a stopped thread for calls: no signal interrupts them.
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
	if c.instruction, err = p.findInstruction(); err != nil {
		return err
	}
	if c.saved, err = registers(c.tid, p.state.Size); err != nil {
		return err
	}
	blocked := ^uint64(0)
	if err := errors.Join(signalMask(ptraceGetSigmask, c.tid, &c.mask), signalMask(ptraceSetSigmask, c.tid, &blocked)); err != nil {
		return err
	}
	p.calling = c
	return nil
}

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
	data := slices.Clone(c.saved)
	put := func(offset int, value uint64) { p.state.Put(data, offset, p.word, p.order, value) }
	put(p.calls.Number, number)
	for i, at := range p.calls.Arguments {
		if i < len(args) {
			put(at, args[i])
		}
	}
	put(p.state.PC, c.instruction)
	if p.calls.NoRestart >= 0 {
		put(p.calls.NoRestart, ^uint64(0))
	}
	if err := setRegisters(c.tid, data); err != nil {
		return 0, err
	}
	for {
		if err := step(c.tid); err != nil {
			return 0, err
		}
		change, ok := wait(c.tid, true)
		if !ok || !change.status.Stopped() {
			p.t.handle(change)
			return 0, errors.New("the process has ended")
		}
		if change.event() == 0 && change.status.StopSignal() == unix.SIGTRAP {
			break
		}
	}
	data, err := registers(c.tid, p.state.Size)
	if err != nil {
		return 0, err
	}
	result := p.state.Get(data, p.calls.Result, p.word, p.order)
	if errno := -result; errno > 0 && errno < 4096 {
		return 0, unix.Errno(errno)
	}
	return result, nil
}

// endCalls has the thread go on where it was. It stops once more, so that a call which it was in begins again.
func (p *tracee) endCalls() error {
	c := p.calling
	p.calling = nil
	th := p.threads[c.tid]
	if th == nil {
		return errors.New("the process has ended")
	}
	for {
		if err := errors.Join(interrupt(c.tid), resume(c.tid, 0)); err != nil {
			return err
		}
		change, ok := wait(c.tid, true)
		if !ok || !change.status.Stopped() {
			p.t.handle(change)
			return errors.New("the process has ended")
		}
		if change.event() == unix.PTRACE_EVENT_STOP {
			th.grouped = change.status.StopSignal() != unix.SIGTRAP
			break
		}
	}
	return errors.Join(setRegisters(c.tid, c.saved), signalMask(ptraceSetSigmask, c.tid, &c.mask))
}

// findThreadID looks for where the C library keeps the ID of each thread: all threads have to agree. It knows the
// offsets of glibc and musl; another one has to fit two threads.
func (p *tracee) findThreadID() {
	const fsBase, size = 21 * wordBytes, 0x800
	if p.threadID >= 0 || p.machine.Traits().Name != "amd64" {
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
		if p.read(p.state.Get(data, fsBase, p.word, p.order), block) != nil {
			return
		}
		blocks, ids = append(blocks, block), append(ids, uint32(idInProcess(th.tid)))
	}
	candidates := []int{0x2d0, 0x30}
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
	if jumper, ok := p.machine.(arch.Jumper); ok && traits.Name == runtime.GOARCH && p.t.jumps {
		p.jumper, p.calls = jumper, jumper.SystemCall()
	}
	return nil
}
