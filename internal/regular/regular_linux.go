package regular

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open opens the regular file that a path leads to, to read.
func Open(path string) (*File, error) {
	found, err := ignoreInterrupts(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) })
	return reopen(found, path, path, err)
}

// OpenBelow opens a regular file by the path that a process with that root would use: no symbolic link leads out of root. name
// is for messages.
func OpenBelow(root, path, name string) (*File, error) {
	directory, err := ignoreInterrupts(func() (int, error) { return unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(directory)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	found, err := ignoreInterrupts(func() (int, error) { return unix.Openat2(directory, path, &how) })
	if err == unix.ENOSYS || err == unix.EPERM { // Linux before 5.6, and filters that do not know it
		return Open(root + path)
	}
	return reopen(found, root+path, name, err)
}

// reopen opens the file that the descriptor found stands for, and closes found. Without /proc it takes path, and looks again.
func reopen(found int, path, name string, err error) (*File, error) {
	fail := func(err error) (*File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if err != nil {
		return fail(err)
	}
	defer unix.Close(found)
	var looked unix.Stat_t
	if err := unix.Fstat(found, &looked); err != nil {
		return fail(err)
	}
	switch looked.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return fail(errDirectory)
	default:
		return fail(errNotRegular)
	}
	// Without O_NONBLOCK, a lease of the file's owner would be waited for (fcntl(2), F_SETLEASE).
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := ignoreInterrupts(func() (int, error) { return unix.Open("/proc/self/fd/"+strconv.Itoa(found), flags, 0) })
	if errors.Is(err, fs.ErrNotExist) {
		fd, err = ignoreInterrupts(func() (int, error) { return unix.Open(path, flags, 0) })
	}
	if err != nil {
		return fail(err)
	}
	f := &File{File: os.NewFile(uintptr(fd), name), Path: name}
	if f.Info, err = f.Stat(); err == nil {
		if now, ok := f.Info.Sys().(*syscall.Stat_t); !ok || now.Ino != looked.Ino || uint64(now.Dev) != uint64(looked.Dev) {
			err = &fs.PathError{Op: "open", Path: name, Err: errors.New("is replaced while it is opened")}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// RealPath returns where the open file is now, without links; "" if it has no name, or without /proc.
func (f *File) RealPath() string {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if info, statErr := os.Lstat(path); err != nil || statErr != nil || !os.SameFile(info, f.Info) {
		return ""
	}
	return path
}

func ignoreInterrupts(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// isSparse reports whether a file takes less room on disk than its size. File systems that compress say so of files without holes.
func isSparse(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	const block = 512 // bytes, whatever the file system's blocks are (stat(2))
	return ok && stat.Blocks < (info.Size()+block-1)/block
}

// mostExtents bounds the parts between holes that are counted, which takes a system call or two each. Behind them all is a hole.
const mostExtents = 1 << 16

// holes returns how many of the n bytes at off are in holes.
func holes(f *os.File, off, n int64) int64 {
	data, end := int64(0), off+n
	for range mostExtents {
		start, err := f.Seek(off, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && start >= end {
			return n - data
		}
		if err != nil { // the file system knows no holes
			return 0
		}
		if off, err = f.Seek(start, unix.SEEK_HOLE); err != nil {
			return 0
		}
		data += min(off, end) - start
		if off >= end {
			return n - data
		}
	}
	return n - data
}
