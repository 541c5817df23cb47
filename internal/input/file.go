// Package input is the one way in: from a path to the objects, archive members and
// images that are behind it.
//
// A File is opened once, and a Source is its contents: all of it, or a member of an archive. An ELF file
// becomes an Object.
//
// There is one rule for how long bytes live. What is read of a file is good until
// the file is closed, and what is read of a member of an archive until its turn is
// over: until the function returns that was called with it. Source.Load makes a
// member's bytes live as long as its file is open. A caller that wants anything for
// longer copies it.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// ErrChanged says that a file is no longer what was opened.
var ErrChanged = errors.New("file changed during conversion")

// File is a regular file as it was when it was opened. Several goroutines may read
// from it.
type File struct {
	Path string
	Info fs.FileInfo

	file   *os.File
	mu     sync.Mutex // of the rest
	closed bool       // the descriptor may be another file's by now
	head   []byte     // the beginning of the file, or all of it
}

// smallFile is the length of the files that Open reads whole, and headSize how much it reads
// of others, in bytes: reading all of a small file costs no more than reading its headers
// and names one by one.
const (
	smallFile = 16 << 10
	headSize  = 512
)

// Errors of Open for other files.
var (
	errDirectory  = errors.New("is a directory")
	errNotRegular = errors.New("is not a regular file")
)

// Open opens a regular file.
func Open(path string) (*File, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, Path: path, Info: info}
	n := info.Size()
	if n > smallFile {
		n = headSize
	}
	if err := f.readHead(n); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openRegular opens a regular file. A pipe without a writer would wait without O_NONBLOCK,
// which means nothing to a regular file.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil || info.Mode().IsRegular():
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: errDirectory}
	default:
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return f.Info.Size() }

// LoadMax is the size of the largest file that Load takes, in bytes.
const LoadMax = 4 << 20

// Load reads the whole file into memory, if it is not larger than LoadMax: when most
// of it will be wanted, one large read is cheaper than many small ones.
func (f *File) Load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Size() > LoadMax || f.loaded() {
		return nil
	}
	return f.readHead(f.Size())
}

// Loaded reports whether the whole file is in memory.
func (f *File) Loaded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loaded()
}

func (f *File) loaded() bool { return int64(len(f.head)) == f.Size() }

// readHead reads the first n bytes, which are in the file, into memory.
func (f *File) readHead(n int64) error {
	if f.closed {
		return os.ErrClosed
	}
	head := make([]byte, n)
	if got, err := f.file.ReadAt(head, 0); int64(got) < n {
		if err == io.EOF {
			err = ErrChanged
		}
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	f.head = head
	return nil
}

// inMemory returns n bytes at offset off, nil if they are not in memory.
func (f *File) inMemory(off, n int64) []byte {
	if off < 0 || off > int64(len(f.head)) || n > int64(len(f.head))-off {
		return nil
	}
	return f.head[off : off+n : off+n]
}

// Slice returns n bytes at offset off, which lie in the file, or nil where they are
// not in memory. They are not to be modified.
func (f *File) Slice(off, n int64) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inMemory(off, n)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	f.mu.Lock()
	data, closed := f.inMemory(off, int64(len(b))), f.closed
	f.mu.Unlock()
	switch {
	case data != nil:
		return copy(b, data), nil
	case closed:
		return 0, os.ErrClosed
	}
	return f.file.ReadAt(b, off)
}

// Fd returns the descriptor of the open file.
func (f *File) Fd() uintptr { return f.file.Fd() }

// CloseFile closes the file, of which nothing more is read, and keeps what is in memory
// of it.
func (f *File) CloseFile() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return f.file.Close()
}

// Close closes the file and lets go of what is in memory of it.
func (f *File) Close() error {
	f.head = nil
	return f.CloseFile()
}

// Unchanged returns an error that is ErrChanged when the open file, or what its name
// stands for, is not what was opened. If the name stands for the open file, what is said
// of one is said of the other.
func (f *File) Unchanged() error {
	info, err := os.Stat(f.Path)
	if err != nil {
		return err
	}
	if !f.isSame(info) {
		return &fs.PathError{Op: "convert", Path: f.Path, Err: ErrChanged}
	}
	return nil
}

func (f *File) isSame(info fs.FileInfo) bool {
	return os.SameFile(info, f.Info) && info.Size() == f.Size() && info.ModTime().Equal(f.Info.ModTime())
}

// ReadAtMost returns what a file holds, which may be no regular file. It is an error that the
// file has more than so many MiB.
func ReadAtMost(name string, mebibytes int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mebibytes<<20+1))
	if err == nil && int64(len(data)) > mebibytes<<20 {
		err = fmt.Errorf("%s: has more than %d MiB", name, mebibytes)
	}
	return data, err
}
