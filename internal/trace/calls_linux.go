package trace

// System calls that a thread of the process makes for the tracer.

import (
	"bytes"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
)

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
