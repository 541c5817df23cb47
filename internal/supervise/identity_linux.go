package supervise

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Identity is what distinguishes a file, as it is now, from all others.
type Identity struct {
	device, inode       uint64
	size                int64
	modified, changed   int64 // seconds
	modifiedN, changedN int64 // and nanoseconds
}

// CheckProc fails unless /proc shows the processes of this PID namespace by their numbers here.
func CheckProc() error {
	switch self, err := os.Readlink("/proc/self"); {
	case err != nil:
		return &UnavailableError{"/proc does not show this process (mount /proc in its PID namespace)", errors.Unwrap(err)}
	case self != strconv.Itoa(os.Getpid()):
		return &UnavailableError{What: "/proc is that of another PID namespace (mount one in this namespace, as unshare --mount-proc and bwrap --proc /proc do)"}
	}
	return nil
}

// Identify returns the identity of a regular file, whatever path leads to it.
func Identify(path string) (id Identity, ok bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return id, false
	}
	return Identity{uint64(st.Dev), uint64(st.Ino), int64(st.Size), int64(st.Mtim.Sec), int64(st.Ctim.Sec), int64(st.Mtim.Nsec), int64(st.Ctim.Nsec)}, true
}

// Descriptors returns how many descriptors this process may have.
func Descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 256
	}
	return int(min(limit.Cur, 1<<20))
}

// Terminate asks the process of a thread to end.
func Terminate(pid int) { unix.Kill(pid, unix.SIGTERM) }

// Executable returns the path of what a process runs.
func Executable(pid int) (string, error) {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil && !isGone(err) {
		return "", &UnavailableError{"what a process of the link runs cannot be looked up", errors.Unwrap(err)}
	}
	return path, nil
}
