package replace

import (
	"io"
	"io/fs"
	"syscall"

	"sdtconvert/internal/input"
)

// file is a new file that is open for reading and writing. An os.File is watched for
// readiness, and cleaned up after: that costs as much as creating a small file.
type file struct {
	fd   int
	name string
}

// create creates a file that is not there yet.
func create(path string, mode fs.FileMode) (*file, error) {
	fd := 0
	err := input.Uninterrupted(func() (err error) {
		fd, err = syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, uint32(mode.Perm()))
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &file{fd, path}, nil
}

// do makes a system call, and returns its error with the name of the file.
func (f *file) do(op string, call func() error) error {
	if err := input.Uninterrupted(call); err != nil {
		return &fs.PathError{Op: op, Path: f.name, Err: err}
	}
	return nil
}

// Name returns the path that the file was created at.
func (f *file) Name() string { return f.name }

// Fd returns the descriptor.
func (f *file) Fd() uintptr { return uintptr(f.fd) }

// Write implements io.Writer.
func (f *file) Write(b []byte) (int, error) {
	return f.write(b, func(b []byte) (int, error) { return syscall.Write(f.fd, b) })
}

// WriteAt implements io.WriterAt.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	return f.write(b, func(b []byte) (int, error) {
		n, err := syscall.Pwrite(f.fd, b, off)
		off += int64(max(n, 0))
		return n, err
	})
}

// write calls write until all of b is written. Each call writes what it can.
func (f *file) write(b []byte, write func(b []byte) (int, error)) (int, error) {
	done := 0
	for done < len(b) {
		n, err := write(b[done:])
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return done, &fs.PathError{Op: "write", Path: f.name, Err: err}
		case n == 0:
			return done, &fs.PathError{Op: "write", Path: f.name, Err: io.ErrShortWrite}
		}
		done += n
	}
	return done, nil
}

// Truncate gives the file a size in bytes.
func (f *file) Truncate(size int64) error {
	return f.do("truncate", func() error { return syscall.Ftruncate(f.fd, size) })
}

// Chmod sets the bits of a mode.
func (f *file) Chmod(mode fs.FileMode) error {
	bits := uint32(mode.Perm())
	for _, special := range []struct {
		mode fs.FileMode
		bit  uint32
	}{{fs.ModeSetuid, syscall.S_ISUID}, {fs.ModeSetgid, syscall.S_ISGID}, {fs.ModeSticky, syscall.S_ISVTX}} {
		if mode&special.mode != 0 {
			bits |= special.bit
		}
	}
	return f.do("chmod", func() error { return syscall.Fchmod(f.fd, bits) })
}

// Chown sets the owner and the group.
func (f *file) Chown(user, group int) error {
	return f.do("chown", func() error { return syscall.Fchown(f.fd, user, group) })
}

// Close closes the file; closing it twice is an error. What failed to be written before
// may be an error here.
func (f *file) Close() error {
	fd := f.fd
	f.fd = -1
	if fd < 0 {
		return fs.ErrClosed
	}
	if err := syscall.Close(fd); err != nil && err != syscall.EINTR { // the descriptor is gone either way
		return &fs.PathError{Op: "close", Path: f.name, Err: err}
	}
	return nil
}
