package inject

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

// errNoThread says that no thread of a process can make calls.
var errNoThread = errors.New("no thread of it can be stopped")

// beginCalls prepares a stopped thread for calls: one whose calls reach the kernel, and that is in no restartable sequence if there is
// another.
func (in *Injector) beginCalls() (err error) {
	tid, refused := 0, errNoThread
	for _, candidate := range in.Stopped() {
		if err := in.Unfilter(candidate); err != nil {
			refused = err
			continue
		}
		data, err := in.Registers(candidate, in.State.Size)
		if err != nil {
			in.Filter(candidate)
			refused = err
			continue
		}
		_, inside := in.Critical(candidate, in.pc(data), in.Order)
		if inside && tid != 0 {
			in.Filter(candidate)
			continue
		}
		if tid != 0 {
			in.Filter(tid)
		}
		if tid = candidate; !inside {
			break
		}
	}
	if tid == 0 {
		return refused
	}
	in.calling = &remoteCalls{tid: tid}
	if err := errors.Join(in.leaveStubs(), in.placeStub()); err != nil {
		return errors.Join(err, in.End())
	}
	if err := in.saveRegisters(); err != nil {
		return errors.Join(err, in.End())
	}
	return nil
}

func (in *Injector) pc(registers []byte) uint64 {
	return in.State.Get(registers, in.State.PC, in.Word, in.Order)
}

// The code of calls while there is no area: in the last bytes of the kernel's library, which are empty.
const (
	firstStub  = 512 // bytes before the end
	firstBlock = 256
)

// placeStub chooses the code by which the thread makes calls. In an area, and in the kernel's library, that is code by which the
// thread restores its registers itself if the tracer does not. Else any instruction that calls the kernel does.
func (in *Injector) placeStub() (err error) {
	c := in.calling
	vdso, empty := in.vdsoEnd(), make([]byte, firstStub)
	if in.Machine.CallStub(0, 0) == nil {
		c.instruction, err = in.findInstruction()
		return err
	}
	if len(in.areas) > 0 {
		c.instruction, c.block = in.areas[0].start+stubAt, in.areas[0].start+blockAt
		return nil
	}
	code, current := in.Machine.CallStub(vdso-firstStub, vdso-firstBlock), make([]byte, firstStub)
	isFree := vdso > 0 && in.Read(vdso-firstStub, current) == nil && (bytes.Equal(current, empty) || bytes.HasPrefix(current, code))
	if !isFree || len(code) > firstStub-firstBlock || in.Write(vdso-firstStub, code) != nil {
		c.instruction, err = in.findInstruction()
		return err
	}
	c.instruction, c.block, c.clear = vdso-firstStub, vdso-firstBlock, vdso-firstStub
	return nil
}

// vdsoEnd returns where the kernel's library ends, 0 if there is none.
func (in *Injector) vdsoEnd() uint64 {
	space, err := in.space()
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
func (in *Injector) isInStub(pc, vdso uint64) bool {
	return vdso > 0 && pc >= vdso-firstStub && pc < vdso || slices.ContainsFunc(in.areas, func(a *Area) bool {
		return pc >= a.start+stubAt && pc < a.start+stubAt+stubSize
	})
}

// leaveStubs lets threads go on that are in the stub of a system call, as a tracer has left them that was killed.
func (in *Injector) leaveStubs() error {
	const most = 8 // times that a thread is met there: a process may have code there that never leaves
	vdso := in.vdsoEnd()
	for _, tid := range in.Stopped() {
		for tries := 0; ; tries++ {
			data, err := in.Registers(tid, in.State.Size)
			if err != nil {
				return err
			}
			if !in.isInStub(in.pc(data), vdso) {
				break
			}
			if tries == most {
				return errors.New("a thread of it stays in code of an earlier tracer")
			}
			if err := in.StopAgain(tid, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// saveRegisters reads the registers of the thread. If it was in a system call that begins again, they are as if it had
// not yet called: the kernel has left that for when the thread runs on. If it was in a restartable sequence, it goes on where that aborts.
func (in *Injector) saveRegisters() error {
	c := in.calling
	data, err := in.Registers(c.tid, in.State.Size)
	if err != nil {
		return err
	}
	c.saved = data
	put := func(offset int, value uint64) { in.State.Put(data, offset, in.Word, in.Order, value) }
	if abort, inside := in.Critical(c.tid, in.pc(data), in.Order); inside {
		put(in.State.PC, abort)
	}
	if in.calls.NoRestart < 0 {
		return nil
	}
	get := func(offset int) uint64 { return in.State.Get(data, offset, in.Word, in.Order) }
	number, result := int64(get(in.calls.NoRestart)), -int64(get(in.calls.Result))
	if number >= 0 && result >= firstRestart && result <= restartBlock && result != restartBlock-1 {
		if result == restartBlock {
			number = int64(in.calls.RestartSyscall)
		}
		put(in.calls.Number, uint64(number))
		put(in.State.PC, get(in.State.PC)-uint64(len(in.calls.Code)))
	}
	put(in.calls.NoRestart, ^uint64(0))
	return nil
}

// The results of system calls that begin again (include/linux/errno.h); 515 is another.
const (
	firstRestart = 512
	restartBlock = 516
)

// findInstruction returns the address of an instruction that calls the kernel: the library of the kernel has one.
func (in *Injector) findInstruction() (uint64, error) {
	const piece, most = 64 << 10, 64 << 20 // bytes that are looked at, at once and in all
	space, err := in.space()
	if err != nil {
		return 0, err
	}
	executable := slices.DeleteFunc(slices.Clone(space.maps), func(m image.Mapping) bool { return !m.Executable || m.Path == "[vsyscall]" })
	slices.SortStableFunc(executable, func(a, b image.Mapping) int {
		rank := func(m image.Mapping) int { return map[bool]int{m.Path == "[vdso]": -1}[true] }
		return rank(a) - rank(b)
	})
	looked, data := 0, make([]byte, piece)
	for _, m := range executable {
		for at := m.Start; at < m.End && looked < most; at += piece - uint64(len(in.calls.Code)) + 1 {
			code := data[:min(piece, m.End-at)]
			if looked += len(code); in.Read(at, code) != nil {
				break
			}
			if i := bytes.Index(code, in.calls.Code); i >= 0 {
				return at + uint64(i), nil
			}
			if len(code) < piece {
				break
			}
		}
	}
	return 0, errors.New("no instruction of it calls the kernel")
}

// userDispatch is the code of a SIGSYS that comes in place of a system call (SYS_USER_DISPATCH).
const userDispatch = 2

// errDispatched says that a call did not reach the kernel.
var errDispatched = errors.New("the program handles its system calls itself (PR_SET_SYSCALL_USER_DISPATCH)")

// mostSignals is how many signals may come before a call is made.
const mostSignals = 200

// call makes a system call in the process.
func (in *Injector) call(number uint64, args ...uint64) (uint64, error) {
	c := in.calling
	for tries := 0; ; tries++ {
		if tries == mostSignals {
			return 0, errors.New("signals keep its thread from making system calls")
		}
		data := slices.Clone(c.saved)
		put := func(offset int, value uint64) { in.State.Put(data, offset, in.Word, in.Order, value) }
		put(in.calls.Number, number)
		for i, at := range in.calls.Arguments {
			if i < len(args) {
				put(at, args[i])
			}
		}
		if c.block != 0 {
			if err := in.Write(c.block, c.saved); err != nil {
				return 0, err
			}
		}
		put(in.State.PC, c.instruction)
		if err := in.SetRegisters(c.tid, data); err != nil {
			return 0, err
		}
		sig, err := in.SystemCall(c.tid)
		if err != nil {
			return 0, errors.Join(err, in.SetRegisters(c.tid, c.saved))
		}
		if sig == 0 {
			break
		}
		if code, ok := in.SignalCode(c.tid); sig == unix.SIGSYS && ok && code == userDispatch {
			return 0, errors.Join(errDispatched, in.SetRegisters(c.tid, c.saved), in.StopAgain(c.tid, 0))
		}
		// A signal has come first. The program gets it, and the call is tried again from there.
		if err := errors.Join(in.SetRegisters(c.tid, c.saved), in.StopAgain(c.tid, sig), in.saveRegisters()); err != nil {
			return 0, err
		}
	}
	data, err := in.Registers(c.tid, in.State.Size)
	if err := errors.Join(err, in.SetRegisters(c.tid, c.saved)); err != nil {
		return 0, err
	}
	result := in.State.Get(data, in.calls.Result, in.Word, in.Order)
	if errno := -result; errno > 0 && errno < 4096 {
		return 0, unix.Errno(errno)
	}
	return result, nil
}

// End has the thread be as it was.
func (in *Injector) End() (err error) {
	if in.calling == nil {
		return nil
	}
	defer func() { in.calling = nil }()
	if in.calling.clear != 0 {
		err = in.Write(in.calling.clear, make([]byte, firstStub))
	}
	in.Filter(in.calling.tid)
	if !in.IsGrouped(in.calling.tid) {
		return err
	}
	return errors.Join(err, in.StopAgain(in.calling.tid, 0))
}
