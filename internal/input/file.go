// Package input is the one way in: from a path to the objects, archive members and
// images that are behind it.
//
// A File is opened once, and a Source is its contents: all of it, or a member of an archive. An ELF file
// becomes an Object.
//
// What is read of a file is a copy, and stays.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sdtconvert/internal/paths"
	"sdtconvert/internal/regular"
	"sdtconvert/internal/unpack"
)

// ErrChanged says that a file is no longer what was opened.
var ErrChanged = errors.New("file changed during conversion")

// File is a regular file as it was when it was opened. Several goroutines may read
// from it.
type File struct {
	Path string
	Info fs.FileInfo

	file     *regular.File
	content  *[]byte // once Source.Load has read all of it; of loaded
	unpacked []byte  // of a compressed file, once Unpack has read it
}

// Open opens a regular file, as package regular does.
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	return FromFile(f), nil
}

// FromFile makes a file of one that is open. Close closes it.
func FromFile(f *regular.File) *File { return &File{file: f, Path: f.Path, Info: f.Info} }

// Descriptor returns the descriptor of the open file, for what belongs to it besides its contents.
func (f *File) Descriptor() int { return int(f.file.Fd()) }

// Size returns the length of the file in bytes.
func (f *File) Size() int64 {
	if f.unpacked != nil {
		return int64(len(f.unpacked))
	}
	return f.Info.Size()
}

// Held returns how many bytes the file holds: its size without holes.
func (f *File) Held() int64 {
	if f.unpacked != nil {
		return int64(len(f.unpacked))
	}
	return f.file.Held()
}

// CheckRead returns an error if n bytes at an offset are not to be read at once, as regular.File says.
func (f *File) CheckRead(off, n int64) error {
	if f.unpacked != nil {
		return nil
	}
	return f.file.CheckRead(off, n)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	switch {
	case f.unpacked != nil && off >= 0:
		return readFrom(f.unpacked, b, off)
	case f.content == nil || off < 0:
		return f.file.ReadAt(b, off)
	}
	return readFrom(*f.content, b, off)
}

// What a compressed file may become: so many times its size and a MiB, and at most so many bytes.
const (
	unpackRatio = 32
	unpackBase  = 1 << 20
	unpackMost  = 256 << 20
)

// Unpack replaces the contents of a compressed file, such as a module of Linux, by what was compressed. Other files stay. Call it before
// any read.
func (f *File) Unpack() error {
	head := make([]byte, 8)
	n, _ := f.ReadAt(head, 0)
	if unpack.Format(head[:n]) == "" {
		return nil
	}
	if err := f.CheckRead(0, f.Size()); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if f.Size() > unpackMost {
		return fmt.Errorf("%s: %w", f.Path, regular.Limitf("a compressed file of more than %d MiB; decompress it first", unpackMost>>20))
	}
	data := make([]byte, f.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	file, err := unpack.File(data, min(int64(len(data))*unpackRatio+unpackBase, unpackMost))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	f.unpacked = file
	return nil
}

// readFrom reads at an offset of data, as io.ReaderAt says.
func readFrom(data, b []byte, off int64) (n int, err error) {
	if off < int64(len(data)) {
		n = copy(b, data[off:])
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

// Close closes the file. No read may follow.
func (f *File) Close() error {
	unload(&f.content)
	return f.file.Close()
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
