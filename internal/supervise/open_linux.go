package supervise

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Open is an attempt of a process to open a file. It waits for one of Continue, Give and
// Fail, which any goroutine may call.
type Open struct {
	PID   int    // the thread's ID, which is the process's for its first thread
	Path  string // as the process names the file
	File  string // the path by which this process finds the file
	Write bool   // the file is to be written

	// Err says why the path cannot be read, which is so for all of the program's opens: the
	// host forbids it.
	Err error

	start    string // of File: a directory of the process, or "" for a descriptor
	listener *listener
	id       uint64
	flags    uint64
}

// Continue lets the process open the file by itself.
func (o *Open) Continue() { o.listener.answer(o.id, 0, unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE) }

// Fail ends the call with an error, which is an Errno.
func (o *Open) Fail(err error) {
	errno := unix.EIO
	errors.As(err, &errno)
	o.listener.answer(o.id, errno, 0)
}

// Give ends the call with a new descriptor of what fd stands for. The caller may close fd
// afterwards. If the process cannot have another descriptor, it gets that error.
func (o *Open) Give(fd int) {
	err := o.listener.give(o.id, fd, uint32(o.flags)&unix.O_CLOEXEC)
	if err != nil && err != unix.ENOENT {
		o.Fail(err)
	}
}

// CheckReachable fails if this process cannot look for the file: it may be there for the other.
func (o *Open) CheckReachable() error {
	err := unix.Access(o.start, unix.F_OK)
	if o.start == "" || err == nil || !o.listener.isValid(o.id) {
		return nil
	}
	return &UnavailableError{o.start + " of the linker cannot be looked into", err}
}

// newOpen reads what a stopped call asks for. It returns nil for one that is to go on.
func (l *listener) newOpen(n *notification) *Open {
	o := &Open{PID: int(n.pid), listener: l, id: n.id}
	for _, a := range abis[runtime.GOARCH] {
		if a.arch != n.arch {
			continue
		}
		directory, path, flags, ok := a.call(int(n.number), n.args)
		if !ok {
			return nil
		}
		if int(n.number) == openat2 {
			how := [8]byte{}
			if read, err := readMemory(o.PID, a.pointer(n.args[2]), how[:]); err != nil || read < len(how) {
				return nil
			}
			flags = *(*uint64)(unsafe.Pointer(&how))
		}
		o.flags, o.Write = flags, flags&unix.O_ACCMODE != unix.O_RDONLY
		o.Path, o.Err = readString(o.PID, a.pointer(path))
		o.start, o.File = fileOf(o.PID, directory, o.Path)
		if !l.isValid(n.id) { // the memory that was read may be another process's
			return nil
		}
		return o
	}
	return nil
}

// readString reads a string that ends with a zero byte, from the memory of a process. What
// cannot be a path is "".
func readString(pid int, address uint64) (string, error) {
	var buffer [unix.PathMax]byte
	for have := 0; have < len(buffer); {
		// A read ends with the page: what is behind may not be there.
		page := uint64(os.Getpagesize())
		end := min(have+int(page-(address+uint64(have))%page), len(buffer))
		n, err := readMemory(pid, address+uint64(have), buffer[have:end])
		if err != nil {
			return "", err
		}
		if zero := bytes.IndexByte(buffer[have:have+n], 0); zero >= 0 {
			return string(buffer[:have+zero]), nil
		}
		if n == 0 {
			return "", nil
		}
		have += n
	}
	return "", nil
}

// readMemory reads the memory of a process, as far as there is any. It fails only if the
// host forbids it.
func readMemory(pid int, address uint64, b []byte) (int, error) {
	if uint64(uintptr(address)) == address {
		local := []unix.Iovec{{Base: &b[0]}}
		local[0].SetLen(len(b))
		n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
		if err != unix.EPERM && err != unix.ENOSYS {
			return max(n, 0), nil // the process may have died
		}
	}
	// Profiles of containers that forbid the call permit the file, in which a program of 32 bits finds the
	// memory of others, too.
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if isGone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, &UnavailableError{"the memory of the linker cannot be read (kernel.yama.ptrace_scope, or the profile of a container)", errors.Unwrap(err)}
	}
	defer f.Close()
	n, _ := f.ReadAt(b, int64(address))
	return n, nil
}

// fileOf returns where this process finds a file of another: below its root, or below one of its
// directories. start is the root or the current directory, "" for what begins elsewhere.
func fileOf(pid, directory int, path string) (start, file string) {
	process := "/proc/" + strconv.Itoa(pid)
	for _, self := range []string{"/proc/self", "/proc/thread-self"} {
		if below, ok := strings.CutPrefix(path, self); ok && strings.HasPrefix(below, "/") {
			return "", process + below
		}
	}
	switch descriptor, isDescriptor := strings.CutPrefix(path, "/dev/fd/"); {
	case path == "":
		return "", ""
	case isDescriptor:
		return "", process + "/fd/" + descriptor
	case path == "/dev/stdin":
		return "", process + "/fd/0"
	case path[0] == '/':
		start = process + "/root"
		return start, start + path
	case directory == unix.AT_FDCWD:
		start = process + "/cwd"
	default:
		return "", process + "/fd/" + strconv.Itoa(directory) + "/" + path
	}
	return start, start + "/" + path
}
