package ptrace

// Whether a thread may make system calls for the tracer: what forbids them, and the code in which it must not.

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Unfilter makes sure that no filter of a stopped thread and no dispatcher sees its system calls, until Filter is called for it. It returns an
// error if one may see them: a seccomp filter may kill the program for a call that it does not make by itself.
func (p *Process) Unfilter(tid int) error {
	if isDispatched(tid) {
		return errors.New("the program handles its system calls itself (PR_SET_SYSCALL_USER_DISPATCH)")
	}
	mode, th := Status(tid, "Seccomp"), p.Threads[tid]
	if mode == "" || mode == "0" || th == nil {
		return nil
	}
	if th.setOptions(unix.PTRACE_O_SUSPEND_SECCOMP) == nil { // of root outside of containers; it ends with the tracer
		return nil
	}
	if own := filterCount(os.Getpid()); mode == "2" && own != "" && filterCount(tid) == own && ownCallsWork() {
		return nil
	}
	return errors.New("its seccomp filter may forbid the system calls that jumps need: as root, sdtconvert makes them past the filter")
}

// Filter has the filters of a thread see its calls again.
func (p *Process) Filter(tid int) {
	if th := p.Threads[tid]; th != nil && th.Stopped {
		th.setOptions(0)
	}
}

// filterCount returns how many filters a thread has, "" if the kernel does not tell (Linux before 5.9). Of two threads with one count in one
// container the filters are taken to be the same.
func filterCount(tid int) string { return Status(tid, "Seccomp_filters") }

// ownCallsWork tries the calls in the tracer, which has the same filters.
var ownCallsWork = sync.OnceValue(func() bool {
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer unix.Munmap(code)
	fd, err := unix.MemfdCreate("sdtconvert", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return false
	}
	err = unix.Ftruncate(fd, 1)
	return errors.Join(err, unix.Close(fd)) == nil
})

// isDispatched reports whether a thread's system calls become signals (Documentation/admin-guide/syscall-user-dispatch.rst), as far as the
// kernel says so: Linux before 6.4 does not.
func isDispatched(tid int) bool {
	const getConfig, modeOn = 0x4211, 1
	var config [4]uint64 // mode, selector, offset, length
	err := ptraceCall(getConfig, tid, unsafe.Sizeof(config), uintptr(unsafe.Pointer(&config)))
	return err == nil && config[0] == modeOn
}

// Critical reports whether a stopped thread is inside of a restartable sequence (rseq(2)): if it leaves the sequence, it has to go on at abort.
// The kernel does not notice it when the tracer moves a thread out and back.
func (p *Process) Critical(tid int, pc uint64, order binary.ByteOrder) (abort uint64, inside bool) {
	const getConfiguration = 0x420f
	var configuration struct {
		Pointer         uint64
		Size, Signature uint32
		Flags, _        uint32
	}
	if ptraceCall(getConfiguration, tid, unsafe.Sizeof(configuration), uintptr(unsafe.Pointer(&configuration))) != nil || configuration.Pointer == 0 {
		return 0, false
	}
	const sequenceAt = 8 // of struct rseq
	var word [8]byte
	var sequence [32]byte // version, flags, start, length, abort
	if p.Read(configuration.Pointer+sequenceAt, word[:]) != nil {
		return 0, false
	}
	at := order.Uint64(word[:])
	if at == 0 || p.Read(at, sequence[:]) != nil || pc-order.Uint64(sequence[8:]) >= order.Uint64(sequence[16:]) {
		return 0, false
	}
	return order.Uint64(sequence[24:]), true
}

// HasShadowStack reports whether a stopped thread has a shadow stack of x86 (Documentation/arch/x86/shstk.rst): its processor returns from calls
// alone that were made by call instructions.
func (p *Process) HasShadowStack(tid int) bool {
	const ntX86Shstk = 0x204
	n, err := regset(unix.PTRACE_GETREGSET, tid, ntX86Shstk, make([]byte, 8))
	return err == nil && n > 0
}

// TakeFile takes over a descriptor of a stopped thread, which holds a memory file of a length in bytes that can neither shrink nor grow
// from then on. It returns an error if the descriptor is something else: the process may have put another file there.
func (p *Process) TakeFile(tid int, fd, length uint64) (*os.File, error) {
	handle, err := unix.PidfdOpen(ProcessOf(tid), 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(handle)
	own, err := unix.PidfdGetfd(handle, int(fd), 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_getfd", err)
	}
	file := os.NewFile(uintptr(own), "shared memory")
	if err := seal(own, length); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// seal seals a memory file against other lengths. Only such files take seals; of those on huge pages the system may have too few.
func seal(fd int, length uint64) error {
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	var system unix.Statfs_t
	var stat unix.Stat_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return err
	}
	if system.Type != unix.TMPFS_MAGIC {
		return errOtherFile
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	if set, getErr := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); getErr != nil || set&seals != seals {
		return errors.Join(errOtherFile, err)
	}
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if uint64(stat.Size) != length {
		return errOtherFile
	}
	return nil
}

var errOtherFile = errors.New("the process has put another file in the place of the tracer's")
