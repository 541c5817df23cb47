package replace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const directoryFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// Directory is an open directory. Files in it are made and renamed by its descriptor, so that they stay in it, whatever becomes of
// its path meanwhile, and never through a link.
type Directory struct {
	Path string
	fd   int
}

// OpenDirectory opens a directory, "" for the current one. Close it.
func OpenDirectory(path string) (*Directory, error) {
	fd, err := ignoreInterrupts(func() (int, error) { return unix.Open(cmp.Or(path, "."), directoryFlags, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Directory{path, fd}, nil
}

// Close closes the directory.
func (d *Directory) Close() error { return unix.Close(d.fd) }

// Create makes a file that is not there yet, to be read and written.
func (d *Directory) Create(name string, mode fs.FileMode) (*os.File, error) {
	return d.openFile(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, mode)
}

// open opens a file that is there, to be read and written.
func (d *Directory) open(name string) (*os.File, error) {
	return d.openFile(name, unix.O_RDWR|unix.O_NONBLOCK, 0)
}

func (d *Directory) openFile(name string, flags int, mode fs.FileMode) (*os.File, error) {
	fd, err := ignoreInterrupts(func() (int, error) {
		return unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode.Perm()))
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.join(name), Err: err}
	}
	return os.NewFile(uintptr(fd), d.join(name)), nil
}

// makeDirectory makes a directory that is not there yet, and opens it.
func (d *Directory) makeDirectory(name string, mode fs.FileMode) (*Directory, error) {
	path := d.join(name)
	if err := unix.Mkdirat(d.fd, name, uint32(mode.Perm())); err != nil {
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	fd, err := ignoreInterrupts(func() (int, error) { return unix.Openat(d.fd, name, directoryFlags|unix.O_NOFOLLOW, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	made := &Directory{path, fd}
	info, err := made.stat()
	if err == nil && !isOwn(info) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("was replaced by a directory of another user")}
	}
	if err != nil {
		made.Close()
		return nil, err
	}
	return made, nil
}

// lstat looks at a file of the directory, and follows no link.
func (d *Directory) lstat(name string) (fs.FileInfo, error) {
	fd, err := ignoreInterrupts(func() (int, error) { return unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: d.join(name), Err: err}
	}
	f := os.NewFile(uintptr(fd), d.join(name))
	defer f.Close()
	return f.Stat()
}

// stat looks at the directory itself.
func (d *Directory) stat() (fs.FileInfo, error) {
	copied, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: d.Path, Err: err}
	}
	f := os.NewFile(uintptr(copied), d.Path)
	defer f.Close()
	return f.Stat()
}

// isTrusted reports whether the user and root alone may change what is in the directory.
func (d *Directory) isTrusted() (bool, error) {
	info, err := d.stat()
	if err != nil {
		return false, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (s.Uid == 0 || int(s.Uid) == euid) && info.Mode()&0o022 == 0, nil
}

// Rename gives a file of the directory another name in it.
func (d *Directory) Rename(from, to string) error {
	if err := unix.Renameat(d.fd, from, d.fd, to); err != nil {
		return &os.LinkError{Op: "rename", Old: d.join(from), New: d.join(to), Err: err}
	}
	return nil
}

// Remove removes a file of the directory.
func (d *Directory) Remove(name string) error {
	if err := unix.Unlinkat(d.fd, name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: d.join(name), Err: err}
	}
	return nil
}

// isOwn reports whether a file is the user's.
func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == euid
}

// hasLinks reports whether a file has several names.
func hasLinks(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || s.Nlink > 1
}

func ignoreInterrupts(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
