package trace

// What ptrace(2) and wait(2) do for the tracer. All calls come from one thread of the system.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
)

// ptraceOptions have new threads and children traced from their first instruction on, and report each exec.
const ptraceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC

// reportExits has a stopped thread, and those that it makes, stop once more when they end.
func reportExits(tid int) error {
	return ptraceCall(unix.PTRACE_SETOPTIONS, tid, 0, ptraceOptions|unix.PTRACE_O_TRACEEXIT)
}

// seize begins to trace a thread, which runs on.
func seize(tid int) error {
	return ptraceCall(unix.PTRACE_SEIZE, tid, 0, ptraceOptions)
}

func interrupt(tid int) error { return ptraceCall(unix.PTRACE_INTERRUPT, tid, 0, 0) }

// listen leaves a thread stopped by job control as it is.
func listen(tid int) error { return ptraceCall(unix.PTRACE_LISTEN, tid, 0, 0) }

func resume(tid int, sig unix.Signal) error {
	return ptraceCall(unix.PTRACE_CONT, tid, 0, uintptr(sig))
}

func detach(tid int, sig unix.Signal) error {
	return ptraceCall(unix.PTRACE_DETACH, tid, 0, uintptr(sig))
}

func eventMessage(tid int) int {
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

const ntPRSTATUS = 1

// registers reads the registers of a stopped thread. Those of a program of 32 bits are fewer.
func registers(tid, size int) ([]byte, error) {
	buffer := make([]byte, 1024)
	n, err := regset(unix.PTRACE_GETREGSET, tid, ntPRSTATUS, buffer)
	if err == nil && n != size {
		err = fmt.Errorf("the kernel shows %d bytes of registers of thread %d, not %d", n, tid, size)
	}
	return buffer[:min(n, size)], err
}

func setRegisters(tid int, data []byte) error {
	_, err := regset(unix.PTRACE_SETREGSET, tid, ntPRSTATUS, data)
	return err
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

// change is what wait has reported of a thread.
type change struct {
	tid    int
	status unix.WaitStatus
}

// event returns the kind of a stop that ptrace makes, 0 for others.
func (c change) event() int { return int(c.status>>16) & 0xff }

// wait returns a change of one thread, or of any with tid -1; false if there is none yet.
func wait(tid int, block bool) (change, bool) {
	if !block {
		var status int32
		found, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(tid), uintptr(unsafe.Pointer(&status)), unix.WALL|unix.WNOHANG, 0, 0, 0)
		return change{int(found), unix.WaitStatus(status)}, errno == 0 && int(found) > 0
	}
	var status unix.WaitStatus
	for {
		found, err := unix.Wait4(tid, &status, unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return change{found, status}, err == nil && found > 0
		}
	}
}

// threadIDs returns the threads of a process.
func threadIDs(pid int) (ids []int) {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, entry := range entries {
		if id, err := strconv.Atoi(entry.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// processStatus returns a field of /proc/PID/status, "" if there is none.
func processStatus(pid int, field string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// processOf returns the process that a thread belongs to, 0 if it has gone.
func processOf(tid int) int {
	pid, _ := strconv.Atoi(processStatus(tid, "Tgid"))
	return pid
}

// idInProcess returns the ID that a thread has for itself: in a container it is another one.
func idInProcess(tid int) int {
	fields := strings.Fields(processStatus(tid, "NSpid"))
	if len(fields) == 0 {
		return tid
	}
	id, _ := strconv.Atoi(fields[len(fields)-1])
	return id
}

// sharesPIDs reports whether a process has the same IDs for threads as the tracer.
func sharesPIDs(pid int) bool {
	own, err1 := os.Readlink("/proc/self/ns/pid")
	its, err2 := os.Readlink(image.ProcessDirectory(pid) + "/ns/pid")
	return err1 == nil && err2 == nil && own == its
}

// isBlocked reports whether a thread waits in the kernel and cannot be stopped: for a child of vfork, or a device.
func isBlocked(tid int) bool {
	return strings.HasPrefix(processStatus(tid, "State"), "D")
}

// isZombie reports whether a thread has ended, while others of its process run.
func isZombie(tid int) bool { return strings.HasPrefix(processStatus(tid, "State"), "Z") }

// isSent reports whether the signal for which a thread has stopped was sent by a process, and not by the kernel.
func isSent(tid int) bool {
	const codeAt = 8 // in siginfo_t
	var info [128]byte
	if ptraceCall(unix.PTRACE_GETSIGINFO, tid, 0, uintptr(unsafe.Pointer(&info))) != nil {
		return false
	}
	return int32(binary.NativeEndian.Uint32(info[codeAt:])) <= 0
}

// hasPendingTrap reports whether a stopped thread has a SIGTRAP that it has not yet got.
func hasPendingTrap(tid int) bool {
	pending, err := strconv.ParseUint(processStatus(tid, "SigPnd"), 16, 64)
	return err == nil && pending&(1<<(unix.SIGTRAP-1)) != 0
}

// sharesMemory reports whether two processes have the same memory. known is false if the kernel does not tell.
func sharesMemory(a, b int) (shares, known bool) {
	const kcmpVM = 1
	result, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return result == 0, errno == 0
}

func readText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
