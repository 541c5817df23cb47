package ptrace

// What ptrace(2) and wait(2) do for the tracer. All calls come from one thread of the system.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/image"
)

// ptraceOptions have new threads and children traced from their first instruction on, and report each exec.
const ptraceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC

// SystemCallStop is the signal of a stop at a system call (PTRACE_O_TRACESYSGOOD). If the tracer is killed there, nothing comes of
// it; the stop behind a single step would become a SIGTRAP.
const SystemCallStop = unix.SIGTRAP | 0x80

// ReportExits has the stopped threads, and those that they make, stop once more when they end.
func (p *Process) ReportExits() {
	for _, th := range p.Threads {
		if th.Stopped {
			th.options |= unix.PTRACE_O_TRACEEXIT
			th.setOptions(0)
		}
	}
}

// setOptions sets the options of a stopped thread, and others for now.
func (th *Thread) setOptions(others int) error {
	return ptraceCall(unix.PTRACE_SETOPTIONS, th.ID, 0, uintptr(ptraceOptions|th.options|others))
}

// Seize begins to trace a thread, which runs on.
func Seize(tid int) error {
	return ptraceCall(unix.PTRACE_SEIZE, tid, 0, ptraceOptions)
}

// Interrupt has a thread stop.
func Interrupt(tid int) error { return ptraceCall(unix.PTRACE_INTERRUPT, tid, 0, 0) }

// listen leaves a thread stopped by job control as it is.
func listen(tid int) error { return ptraceCall(unix.PTRACE_LISTEN, tid, 0, 0) }

// Resume lets a stopped thread run on, with a signal or with 0.
func Resume(tid int, sig unix.Signal) error {
	return ptraceCall(unix.PTRACE_CONT, tid, 0, uintptr(sig))
}

// Detach lets go of a stopped thread, with a signal or with 0.
func Detach(tid int, sig unix.Signal) error {
	return ptraceCall(unix.PTRACE_DETACH, tid, 0, uintptr(sig))
}

// EventMessage returns the thread of which an event of a thread tells, 0 if it has gone.
func EventMessage(tid int) int {
	message, err := unix.PtraceGetEventMsg(tid)
	if err != nil {
		return 0
	}
	return int(message)
}

// ptraceCall makes a call that does not wait. So the runtime need not know of it: at breakpoints that costs as much as the call.
func ptraceCall(request, tid int, addr, data uintptr) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

const (
	ntPRSTATUS = 1
	ntPRFPREG  = 2
)

// Registers reads the registers of a stopped thread. Those of a program of 32 bits are fewer.
func (p *Process) Registers(tid, size int) ([]byte, error) {
	buffer := make([]byte, 1024)
	n, err := regset(unix.PTRACE_GETREGSET, tid, ntPRSTATUS, buffer)
	if err == nil && n != size {
		err = fmt.Errorf("the kernel shows %d bytes of registers of thread %d, not %d", n, tid, size)
	}
	return buffer[:min(n, size)], err
}

// SetRegisters sets the registers of a stopped thread.
func (p *Process) SetRegisters(tid int, data []byte) error {
	_, err := regset(unix.PTRACE_SETREGSET, tid, ntPRSTATUS, data)
	return err
}

// Vectors returns the floating-point and vector registers of a stopped thread (NT_PRFPREG).
func (p *Process) Vectors(tid int) ([]byte, error) {
	buffer := make([]byte, 1024)
	n, err := regset(unix.PTRACE_GETREGSET, tid, ntPRFPREG, buffer)
	return buffer[:n], err
}

func regset(request, tid, set int, data []byte) (int, error) {
	vector := unix.Iovec{Base: &data[0]}
	vector.SetLen(len(data))
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), uintptr(set), uintptr(unsafe.Pointer(&vector)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(vector.Len), nil
}

// Change is what Wait has reported of a thread.
type Change struct {
	TID    int
	Status unix.WaitStatus
}

// Event returns the kind of a stop that ptrace makes, 0 for others.
func (c Change) Event() int { return int(c.Status>>16) & 0xff }

// Wait returns a change of one thread, or of any with tid -1; false if there is none yet.
func Wait(tid int, block bool) (Change, bool) {
	if !block {
		c, err := poll(tid)
		return c, err == nil && c.TID > 0
	}
	var status unix.WaitStatus
	for {
		found, err := unix.Wait4(tid, &status, unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return Change{found, status}, err == nil && found > 0
		}
	}
}

// poll returns a change of one thread, or of any with tid -1. Its TID is 0 if there is none yet. It is an error if no such thread is traced.
func poll(tid int) (Change, error) {
	var status int32
	found, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(tid), uintptr(unsafe.Pointer(&status)), unix.WALL|unix.WNOHANG, 0, 0, 0)
	if errno != 0 {
		return Change{}, errno
	}
	return Change{int(found), unix.WaitStatus(status)}, nil
}

// ThreadIDs returns the threads of a process.
func ThreadIDs(pid int) (ids []int) {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, entry := range entries {
		if id, err := strconv.Atoi(entry.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Status returns a field of /proc/PID/status, "" if there is none.
func Status(pid int, field string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ProcessOf returns the process that a thread belongs to, 0 if it has gone.
func ProcessOf(tid int) int {
	pid, _ := strconv.Atoi(Status(tid, "Tgid"))
	return pid
}

// idInProcess returns the ID that a thread has for itself: in a container it is another one.
func idInProcess(tid int) int {
	fields := strings.Fields(Status(tid, "NSpid"))
	if len(fields) == 0 {
		return tid
	}
	id, _ := strconv.Atoi(fields[len(fields)-1])
	return id
}

// SharePIDs reports whether two processes have the same IDs for threads.
func SharePIDs(a, b int) bool {
	first, err1 := os.Readlink(image.ProcessDirectory(a) + "/ns/pid")
	second, err2 := os.Readlink(image.ProcessDirectory(b) + "/ns/pid")
	return err1 == nil && err2 == nil && first == second
}

// isBlocked reports whether a thread waits in the kernel and cannot be stopped: for a child of vfork, or a device.
func isBlocked(tid int) bool {
	return strings.HasPrefix(Status(tid, "State"), "D")
}

// IsZombie reports whether a thread has ended, while others of its process run.
func IsZombie(tid int) bool { return strings.HasPrefix(Status(tid, "State"), "Z") }

// SignalCode returns the code of the signal for which a thread has stopped (si_code of sigaction(2)). If it cannot be read, ok is false.
func (p *Process) SignalCode(tid int) (code int32, ok bool) {
	const codeAt = 8 // in siginfo_t
	var info [128]byte
	if ptraceCall(unix.PTRACE_GETSIGINFO, tid, 0, uintptr(unsafe.Pointer(&info))) != nil {
		return 0, false
	}
	return int32(binary.NativeEndian.Uint32(info[codeAt:])), true
}

// HasPending reports whether a stopped thread has one of some signals that it has not yet got, and does not block.
func HasPending(tid int, signals ...unix.Signal) bool {
	pending, err := strconv.ParseUint(Status(tid, "SigPnd"), 16, 64)
	blocked, blockedErr := strconv.ParseUint(Status(tid, "SigBlk"), 16, 64)
	return err == nil && blockedErr == nil && slices.ContainsFunc(signals, func(sig unix.Signal) bool { return pending&^blocked&(1<<(sig-1)) != 0 })
}

// ThreadPointer returns the thread pointer of a stopped thread: the word at an offset of a register set.
func (p *Process) ThreadPointer(tid int, state *arch.ThreadState, word int, order binary.ByteOrder) (uint64, error) {
	set := ntPRSTATUS
	if state.PointerSet != 0 {
		set = state.PointerSet
	}
	data := make([]byte, 1024)
	n, err := regset(unix.PTRACE_GETREGSET, tid, set, data)
	if err == nil && state.Pointer+word > n {
		err = errors.New("the kernel does not show the thread pointer")
	}
	if err == nil && state.Selector != 0 { // of the descriptor whose number is in the first word
		const entryShift = 3
		registers, registersErr := p.Registers(tid, state.Size)
		if err = registersErr; err == nil && order.Uint32(registers[state.Selector:])>>entryShift != order.Uint32(data) {
			err = errors.New("the thread pointer is not in the first descriptor")
		}
	}
	return state.Get(data, state.Pointer, word, order), err
}

// SharesMemory reports whether two processes have the same memory. known is false if the kernel does not tell.
func SharesMemory(a, b int) (shares, known bool) {
	const kcmpVM = 1
	result, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return result == 0, errno == 0
}

// LetGo lets go of a thread that runs.
func LetGo(tid int) {
	if Interrupt(tid) != nil {
		return
	}
	for begun := time.Now(); time.Since(begun) < Patience; {
		c, err := poll(tid)
		if err == nil && c.TID == 0 {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		if err != nil || !c.Status.Stopped() {
			return
		}
		sig := unix.Signal(0)
		if c.Event() == 0 {
			sig = c.Status.StopSignal()
		}
		if Detach(tid, sig) == nil {
			return
		}
	}
}

// stat returns the fields of a process's or thread's stat from the third on, by the numbers of proc_pid_stat(5), nil if it has gone. Its
// name, the second, may hold anything.
func stat(id int) []string {
	text := ReadText(image.ProcessDirectory(id) + "/stat")
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return nil
	}
	return append(make([]string, 3), strings.Fields(text[end+1:])...)
}

// Processor returns the number of the processor on which a thread has run last.
func Processor(tid int) (n int, ok bool) {
	const processor = 39
	fields := stat(tid)
	if len(fields) <= processor {
		return 0, false
	}
	n, err := strconv.Atoi(fields[processor])
	return n, err == nil
}

// ReadText returns what a file of /proc says, "" if it cannot be read.
func ReadText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
