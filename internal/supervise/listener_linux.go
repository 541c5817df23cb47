package supervise

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Structures of <linux/seccomp.h>. Those that the kernel fills may be longer in later
// versions (SECCOMP_GET_NOTIF_SIZES).
type (
	notification struct {
		id      uint64
		pid     uint32
		_       uint32 // flags
		number  int32
		arch    uint32
		_       uint64 // instruction pointer
		args    [6]uint64
		reserve [64]byte // for what later kernels add
	}
	response struct {
		id    uint64
		value int64
		error int32
		flags uint32
	}
	addition struct { // of a descriptor
		id       uint64
		flags    uint32
		from, to uint32
		toFlags  uint32
	}
)

// listener is the descriptor at which the kernel reports stopped calls.
type listener struct {
	fd int
}

// install installs a filter for the calling thread, and what it will start.
func install(program []unix.SockFilter) (*listener, error) {
	if len(program) < 2 {
		return nil, &UnavailableError{What: "sdtconvert knows no system calls of this machine"}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, &UnavailableError{"prctl(PR_SET_NO_NEW_PRIVS) is forbidden", err}
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// With the flag of Linux 5.19, a signal does not end a call that is being answered.
	var fd uintptr
	var errno unix.Errno
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
		fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		if errno != unix.EINVAL {
			break
		}
	}
	switch errno {
	case 0:
	case unix.EBUSY:
		return nil, &UnavailableError{"another supervisor has filtered this process", errno}
	case unix.EINVAL:
		return nil, &UnavailableError{"the kernel has no SECCOMP_RET_USER_NOTIF (Linux 5.0)", errno}
	default:
		return nil, &UnavailableError{"seccomp(SECCOMP_SET_MODE_FILTER) is forbidden", errno}
	}
	l := &listener{fd: int(fd)}
	if err := l.probe(); err != nil {
		unix.Close(l.fd)
		return nil, err
	}
	return l, nil
}

// probe finds out whether the kernel can give descriptors, by an answer to a call that is not.
func (l *listener) probe() error {
	_, err := l.add(&addition{from: uint32(l.fd)})
	switch err {
	case unix.ENOENT, unix.EINPROGRESS:
	case unix.EINVAL, unix.ENOTTY:
		return &UnavailableError{"the kernel has no SECCOMP_IOCTL_NOTIF_ADDFD (Linux 5.9)", err}
	default:
		return &UnavailableError{"ioctl(SECCOMP_IOCTL_NOTIF_ADDFD) is forbidden", err}
	}
	// Linux 6.6 wakes the other side on the same processor, which saves time.
	unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return nil
}

// ioctl is ioctl(2) on the listener. Its error is nil or an Errno.
func (l *listener) ioctl(request uintptr, arg unsafe.Pointer) (result uintptr, err error) {
	for {
		result, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(arg))
		if errno == 0 {
			return result, nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

// add adds a descriptor to the process of a stopped call.
func (l *listener) add(a *addition) (fd uintptr, err error) {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(a))
}

// send ends a stopped call.
func (l *listener) send(r *response) error {
	_, err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
	return err
}

// receive waits for a call to be stopped. A nil notification means that its process has
// died meanwhile.
func (l *listener) receive() (*notification, error) {
	n := &notification{}
	switch _, err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)); err {
	case nil:
		return n, nil
	case unix.ENOENT:
		return nil, nil
	default:
		return nil, fmt.Errorf("ioctl(SECCOMP_IOCTL_NOTIF_RECV): %w", err)
	}
}

// answer ends a stopped call: with an error, or with flags.
func (l *listener) answer(id uint64, errno unix.Errno, flags uint32) error {
	return l.send(&response{id: id, error: -int32(errno), flags: flags})
}

// give ends a stopped call with a descriptor. It does not ask for both in one step
// (SECCOMP_ADDFD_FLAG_SEND): if a signal interrupts that one, the call ends with descriptor 0 and
// without an error (Linux 6.18), and the process reads its standard input.
func (l *listener) give(id uint64, fd int, flags uint32) error {
	childFD, err := l.add(&addition{id: id, from: uint32(fd), toFlags: flags})
	if err != nil {
		return err
	}
	return l.send(&response{id: id, value: int64(childFD)})
}

// isValid reports whether a stopped call still waits, so that its process is the one that
// made it.
func (l *listener) isValid(id uint64) bool {
	_, err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id))
	return err == nil
}

// isGone reports whether an error says that a process has died.
func isGone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT)
}
