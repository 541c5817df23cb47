// Package replace writes a file so that its name never stands for half of it.
//
// The contents go to a temporary file in the same folder, which takes the place
// of the old one by rename(2) once it is complete. Nothing is synced: a linker
// does not either, and a build that a crash has interrupted starts over.
package replace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"sdtconvert/elfreloc"
)

// ErrChanged says that the input is no longer what was read.
var ErrChanged = errors.New("was changed by somebody else while it was converted")

// Input is a file as it was when it was opened.
type Input struct {
	*os.File
	Path string
	Info fs.FileInfo

	// KeepTime says that what takes its place has its time of modification too: ninja
	// takes an object of another time for outdated.
	KeepTime bool

	memory *[]byte // the whole file, if it was loaded
}

// Open opens a regular file.
func Open(path string) (*Input, error) {
	// A pipe that nobody writes to would wait without O_NONBLOCK, which means
	// nothing to a regular file.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Input{File: f, Path: path, Info: info}, nil
}

// LoadMax is the size of the largest file that Load takes.
const LoadMax = 4 << 20

var memories = sync.Pool{New: func() any { return new([]byte) }}

// Load reads the whole file into memory if it is small: when most of it will
// be wanted, one large read is cheaper than many small ones.
func (in *Input) Load() error {
	size := in.Info.Size()
	if size > LoadMax || in.memory != nil {
		return nil
	}
	memory := memories.Get().(*[]byte)
	if int64(cap(*memory)) < size {
		*memory = make([]byte, size)
	}
	*memory = (*memory)[:size]
	if n, err := in.File.ReadAt(*memory, 0); n < len(*memory) {
		memories.Put(memory)
		if err == io.EOF {
			err = ErrChanged
		}
		return fmt.Errorf("%s: %w", in.Path, err)
	}
	in.memory = memory
	return nil
}

// Loaded reports whether the whole file is in memory.
func (in *Input) Loaded() bool { return in.memory != nil }

// Slice returns bytes of a loaded file. They are good until Close.
func (in *Input) Slice(off, n int64) []byte {
	if in.memory == nil {
		return nil
	}
	return (*in.memory)[off : off+n]
}

// ReadAt reads from memory where the file was loaded.
func (in *Input) ReadAt(b []byte, off int64) (int, error) {
	if in.memory == nil {
		return in.File.ReadAt(b, off)
	}
	if off >= int64(len(*in.memory)) {
		return 0, io.EOF
	}
	n := copy(b, (*in.memory)[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close closes the file and lets go of its memory.
func (in *Input) Close() error {
	if in.memory != nil {
		memories.Put(in.memory)
		in.memory = nil
	}
	return in.File.Close()
}

// unchanged returns ErrChanged when the open file, or what its name stands for,
// is not what was opened.
func (in *Input) unchanged() error {
	now, err := in.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(in.Path)
	if err != nil {
		return err
	}
	for _, info := range []fs.FileInfo{now, named} {
		if !os.SameFile(info, in.Info) || info.Size() != in.Info.Size() || !info.ModTime().Equal(in.Info.ModTime()) {
			return &fs.PathError{Op: "convert", Path: in.Path, Err: ErrChanged}
		}
	}
	return nil
}

// File writes out, made from in, to path with the mode of in. Where path is the
// input itself, its owner is kept too, as far as that is permitted. A symbolic
// link is followed and stays. What is no regular file, /dev/null for instance,
// is written to and not replaced. draft is what Begin has begun for the same path,
// or nil. workers bounds the threads that copy. The input cannot be read
// any more afterwards.
func File(path string, in *Input, out *elfreloc.Output, draft *Draft, workers int) error {
	target, regular, err := resolve(path)
	if err != nil {
		return err
	}
	if !regular {
		return writeInto(target, in, out)
	}
	temp, err := temporaryFor(target, draft, out.Size)
	if err != nil {
		return err
	}
	defer temp.discard()
	if err := write(temp.File, in, out, draft, workers); err != nil {
		return err
	}
	if err := temp.adopt(in); err != nil {
		return err
	}
	if err := in.unchanged(); err != nil {
		return err
	}
	in.File.Close() // Windows replaces no file that is open
	return temp.rename(target)
}

// Fresh is File for a path that is not there yet, in a folder that the caller removes
// when anything goes wrong: the file has its name at once.
func Fresh(path string, in *Input, out *elfreloc.Output, draft *Draft, workers int) error {
	if draft != nil {
		return File(path, in, out, draft, workers)
	}
	f, err := createFresh(path)
	if err != nil {
		return err
	}
	err = write(f, in, out, nil, workers)
	if err == nil {
		err = in.unchanged()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path) // it may be tried again
	}
	return err
}

// resolve follows path to the file that is to be replaced, and reports whether
// it is one that can be: a regular file, or none yet.
func resolve(path string) (target string, regular bool, err error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err = filepath.EvalSymlinks(path); err == nil {
			path = target
			info, err = os.Stat(target)
		} // else a link that leads nowhere is replaced itself
	}
	if errors.Is(err, fs.ErrNotExist) {
		return path, true, nil
	}
	return path, err == nil && info.Mode().IsRegular(), err
}

// temporaryFor makes the file that is to become target, or takes the one that
// was begun.
func temporaryFor(target string, draft *Draft, size int64) (*temporary, error) {
	if draft == nil {
		return createTemp(target)
	}
	temp, err := draft.take(size)
	if err != nil {
		temp.discard()
	}
	return temp, err
}

// writeInto writes to a device or a pipe.
func writeInto(path string, in *Input, out *elfreloc.Output) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = assemble(f, in, out.Extents)
	return errors.Join(err, f.Close())
}
