package supervise

import (
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

// Executable returns the path of what a process runs, "" if that is not known.
func Executable(pid int) string {
	path, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return path
}
