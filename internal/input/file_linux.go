package input

import (
	"io"
	"io/fs"
	"syscall"
	"time"
)

// rawFile is a file descriptor. An os.File takes as long to make as all that is read
// of a small object.
type rawFile int

// openRaw opens a regular file. A pipe without a writer would wait without
// O_NONBLOCK, which means nothing to a regular file.
func openRaw(path string) (rawFile, fs.FileInfo, error) {
	var fd int
	err := Uninterrupted(func() (err error) {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return 0, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := rawFile(fd)
	info, err := f.Stat()
	if err == nil {
		switch info.(*fileInfo).stat.Mode & syscall.S_IFMT {
		case syscall.S_IFREG:
		case syscall.S_IFDIR:
			err = errDirectory
		default:
			err = errNotRegular
		}
	}
	if err != nil {
		f.Close()
		return 0, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, info, nil
}

// Uninterrupted makes a system call again until no signal interrupts it.
func Uninterrupted(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

func (f rawFile) Fd() uintptr { return uintptr(f) }

func (f rawFile) Close() error { return syscall.Close(int(f)) }

func (f rawFile) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		got, err := syscall.Pread(int(f), b[n:], off+int64(n))
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return n, err
		case got == 0:
			return n, io.EOF
		default:
			n += got
		}
	}
	return n, nil
}

// Stat asks the system what the file is now.
func (f rawFile) Stat() (fs.FileInfo, error) {
	info := &fileInfo{}
	err := Uninterrupted(func() error { return syscall.Fstat(int(f), &info.stat) })
	return info, err
}

// fileInfo is what fstat(2) says about a regular file.
type fileInfo struct{ stat syscall.Stat_t }

func (i *fileInfo) Name() string       { return "" }
func (i *fileInfo) Size() int64        { return i.stat.Size }
func (i *fileInfo) IsDir() bool        { return false }
func (i *fileInfo) Sys() any           { return &i.stat }
func (i *fileInfo) ModTime() time.Time { return time.Unix(i.stat.Mtim.Unix()) }

// modeBits are those that a mode has beside permissions, as package fs has them.
var modeBits = []struct {
	system uint32
	mode   fs.FileMode
}{{syscall.S_ISUID, fs.ModeSetuid}, {syscall.S_ISGID, fs.ModeSetgid}, {syscall.S_ISVTX, fs.ModeSticky}}

func (i *fileInfo) Mode() fs.FileMode {
	mode := fs.FileMode(i.stat.Mode) & fs.ModePerm
	for _, bit := range modeBits {
		if i.stat.Mode&bit.system != 0 {
			mode |= bit.mode
		}
	}
	return mode
}

// SameFile reports whether two infos, of a File or of package os, are of one file.
func SameFile(a, b fs.FileInfo) bool {
	sa, oka := a.Sys().(*syscall.Stat_t)
	sb, okb := b.Sys().(*syscall.Stat_t)
	return oka && okb && sa.Dev == sb.Dev && sa.Ino == sb.Ino
}
