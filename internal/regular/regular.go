// Package regular opens regular files that others name or have made: what a path leads to may be a device or a pipe, may
// change between two looks, and may show a size that it does not take on disk.
//
// A file is found first, as a descriptor that opens nothing (O_PATH), then looked at, and only then opened through that
// descriptor. So no device and no pipe is ever opened, whatever takes the place of a file meanwhile.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// File is an open regular file. Several goroutines may read from it, with ReadAt. It is an elfreloc.BoundedReader.
type File struct {
	*os.File
	Info fs.FileInfo // as it was when the file was opened
	Path string      // that it was opened by, for messages

	// Most is the length of the longest read that CheckRead permits, in bytes; 0 for any. It is for files that nobody has
	// asked for by name.
	Most int64

	mu      sync.Mutex // of what follows
	held    int64      // bytes, once they were counted; 0 before
	charged int64      // bytes of holes that were asked for
}

// The errors of paths that lead to something else.
var (
	errDirectory  = errors.New("is a directory")
	errNotRegular = errors.New("is not a regular file")
)

// checkType refuses what is no regular file.
func checkType(path string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return &fs.PathError{Op: "open", Path: path, Err: errDirectory}
	}
	return &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
}

// FromFile makes a File of one that is open. name is for messages.
func FromFile(file *os.File, name string) (*File, error) {
	info, err := file.Stat()
	if err == nil {
		err = checkType(name, info)
	}
	if err != nil {
		return nil, err
	}
	return &File{File: file, Info: info, Path: name}, nil
}

// IsType reports whether an error is that a path leads to something else than a regular file.
func IsType(err error) bool { return errors.Is(err, errDirectory) || errors.Is(err, errNotRegular) }

// LimitError says that reading a file would take more than the file holds, or than may be taken for it. It does not name the file.
type LimitError struct{ text string }

func (e *LimitError) Error() string { return e.text }

// Limitf makes a LimitError.
func Limitf(format string, args ...any) error { return &LimitError{fmt.Sprintf(format, args...)} }

// IsLimit reports whether an error is, or wraps, a LimitError.
func IsLimit(err error) bool {
	_, ok := errors.AsType[*LimitError](err)
	return ok
}

// shortRead is the length of a read that is always permitted, and smallHoles are bytes of holes that may be read of any file: linkers
// leave pages between segments.
const shortRead, smallHoles = 1 << 20, 16 << 20

// Held returns how many bytes the file holds: its size, but for holes, which take no room on disk.
func (f *File) Held() int64 {
	if !isSparse(f.Info) {
		return f.Info.Size()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countHeld()
}

// countHeld is Held for a caller that holds the lock.
func (f *File) countHeld() int64 {
	if f.held == 0 {
		f.held = max(1, f.Info.Size()-holes(f.File, 0, f.Info.Size()))
	}
	return f.held
}

// CheckRead returns an error if the n bytes at off are not to be read at once: they are more than Most, or holes, of which no
// more can be read, in all, than the file holds besides. A reader calls it before it takes memory or time for many bytes.
func (f *File) CheckRead(off, n int64) error {
	if n > shortRead && isSparse(f.Info) {
		if err := f.chargeHoles(off, n); err != nil {
			return err
		}
	}
	if f.Most > 0 && n > f.Most {
		return Limitf("%d MiB at offset %#x would have to be read at once, and no more than %d are of a file that is not named on the command line", n>>20, off, f.Most>>20)
	}
	return nil
}

// chargeHoles takes the holes of n bytes from those that may still be read.
func (f *File) chargeHoles(off, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	empty := holes(f.File, off, n)
	if held := f.countHeld(); empty > held+smallHoles-f.charged {
		return Limitf("of %d bytes at offset %#x, %d are a hole, and all of the file holds %d", n, off, empty, held)
	}
	f.charged += empty
	return nil
}
