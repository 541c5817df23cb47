// Package input is the one way in: from a path to the objects, archive members and
// images that are behind it.
//
// A File is opened once, and a Source is its contents: all of it, or a member of an archive. An ELF file
// becomes an Object.
//
// What is read of a file is a copy, and stays.
package input

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"sdtconvert/internal/paths"
)

// ErrChanged says that a file is no longer what was opened.
var ErrChanged = errors.New("file changed during conversion")

// File is a regular file as it was when it was opened. Several goroutines may read
// from it.
type File struct {
	Path string
	Info fs.FileInfo

	file *os.File

	reads   atomic.Int32 // calls of ReadAt so far, if it is a small file
	once    sync.Once
	content *[]byte // of a small file, once it is read; of a pool
	failure error   // in reading it
}

// smallFile is the size of files of which all is read at once, in bytes, after firstReads that tell whether an object names
// probes: headers, sections and names. Most objects are smaller; of one that is converted nearly all is wanted, in some
// twenty pieces, and of others nothing more.
const (
	smallFile  = 64 << 10
	firstReads = 4
)

// contents are buffers for small files.
var contents = sync.Pool{New: func() any { b := make([]byte, 0, smallFile); return &b }}

// Open opens a regular file. A pipe without a writer would wait without O_NONBLOCK,
// which means nothing to a regular file.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil || info.Mode().IsRegular():
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is a directory")}
	default:
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{file: f, Path: path, Info: info}, nil
}

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return f.Info.Size() }

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	if f.Size() > smallFile || f.reads.Add(1) <= firstReads {
		return f.file.ReadAt(b, off)
	}
	f.once.Do(f.readAll)
	if f.failure != nil || off < 0 {
		return f.file.ReadAt(b, off) // which says what is wrong
	}
	content := *f.content
	if off >= int64(len(content)) {
		return 0, io.EOF
	}
	n := copy(b, content[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// readAll reads a small file.
func (f *File) readAll() {
	f.content = contents.Get().(*[]byte)
	var n int
	n, f.failure = f.file.ReadAt((*f.content)[:f.Size()], 0)
	*f.content = (*f.content)[:n]
}

// Close closes the file. No read may follow.
func (f *File) Close() error {
	err := f.file.Close()
	f.once.Do(func() {})
	if f.content != nil {
		contents.Put(f.content)
		f.content = nil
	}
	f.failure = cmp.Or(f.failure, os.ErrClosed)
	return err
}

// CheckUnchanged returns an error that is ErrChanged if the open file, or the file at its path, is not what was opened. One
// stat of the path is enough: if it is still the open file, both are compared.
func (f *File) CheckUnchanged() error {
	info, err := os.Stat(f.Path)
	if err != nil {
		return err
	}
	if IsChanged(f.Info, info) {
		return &fs.PathError{Op: "convert", Path: f.Path, Err: ErrChanged}
	}
	return nil
}

// IsChanged reports whether a file was written or replaced between two looks at its path.
func IsChanged(before, after fs.FileInfo) bool {
	return !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime())
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

// Distinct removes files that are named twice, by whatever path. Two hard links
// to one file are two files: converting one leaves the other as it is.
func Distinct(files []string) ([]string, error) {
	if len(files) < 2 {
		return files, nil
	}
	type file struct{ directory, base string }
	directories := map[string]string{} // where they lead: each is resolved once, however many files are in it
	seen := make(map[file]bool, len(files))
	out := make([]string, 0, len(files))
	for _, name := range files {
		real := name
		if _, err := os.Readlink(name); err == nil { // which takes less time than lstat(2)
			if target, err := filepath.EvalSymlinks(name); err == nil {
				real = target
			}
		}
		path, base := filepath.Split(real)
		directory, resolved := directories[path]
		if !resolved {
			var err error
			if directory, err = paths.Real(path); err != nil { // it leads nowhere, and is compared as it is written
				directory, err = paths.Absolute(path)
			}
			if err != nil {
				return nil, err
			}
			directories[path] = directory
		}
		if key := (file{directory, base}); !seen[key] {
			seen[key] = true
			out = append(out, name)
		}
	}
	return out, nil
}

// SamePath reports whether two paths lead to the same name in the same directory.
func SamePath(a, b string) (bool, error) {
	distinct, err := Distinct([]string{a, b})
	return len(distinct) == 1, err
}
