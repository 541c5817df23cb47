// Package replace writes a file so that its name never stands for half of it.
//
// The contents go to a temporary file in the same directory, which takes the place
// of the old one by rename(2) once it is complete. Nothing is synced: a linker
// does not either, and a build that a crash has interrupted starts over.
package replace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/paths"
)

// Writer writes files. It knows those that are not complete, so that whatever ends
// the process can remove them. The zero value is ready for use, by any number of
// goroutines.
type Writer struct {
	// BeforeFirstFile is called once, before the first file is made, unless it is nil.
	// Signals need not be watched before.
	BeforeFirstFile func()

	// TakeDescriptor, unless it is nil, gets the outputs in the place of their paths: each is a
	// descriptor of a file without a name, which is TakeDescriptor's to close. A path may come again,
	// if its output had to be written anew. Only Linux has such files.
	TakeDescriptor func(path string, fd int)
	TempDir        string // where large ones are; small ones are in memory

	once      sync.Once
	mu        sync.RWMutex // held for reading while a file is made, renamed or changed by its name
	tempFiles sync.Map     // the *temporary files that exist
}

// Abandon removes all temporary files, and lets none be made or renamed any
// more: callers wait for ever. It is for a process that a signal is
// about to end.
func (w *Writer) Abandon() {
	w.mu.Lock() // and never unlock
	w.tempFiles.Range(func(file, _ any) bool {
		t := file.(*temporary)
		t.directory.Remove(t.name())
		return true
	})
}

// File writes out, made from in, to path, with the mode, the access list and the attributes of in and, as far as permitted, its owner. If
// they cannot be copied, that is an error. If path is the
// input itself, its time of modification is kept too: ninja compiles an object of another time again. A symbolic
// link is followed and stays. What is not a regular file, like /dev/null,
// is written to and not replaced. The input cannot be read any more afterwards.
func (w *Writer) File(path string, in *input.File, out *elfreloc.Output) error {
	if err := checkHoles(in); err != nil {
		return err
	}
	if w.TakeDescriptor != nil {
		f, err := w.createUnnamed(path, out.Size)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := writeOutput(f, in, out); err != nil {
			return err
		}
		return in.CheckUnchanged()
	}
	return w.write(path, 0o600, func(to *os.File) error { return writeOutput(to, in, out) },
		func(t *temporary, target string) error { return t.replaceTarget(target, in) })
}

// checkHoles refuses an input that is mostly a hole: an output has none, and would take more room on disk.
func checkHoles(in *input.File) error {
	if err := in.CheckRead(0, in.Size()); err != nil {
		return fmt.Errorf("%s: %w", in.Path, err)
	}
	return nil
}

// New writes a file that is made from no other. It gets the mode that any new
// file gets, or the mode and the attributes of the file that it replaces. Links and devices are
// treated as File treats them.
func (w *Writer) New(path string, data []byte) error {
	contents := func(to *os.File) error {
		_, err := to.Write(data)
		return err
	}
	return w.write(path, 0o666, contents, func(t *temporary, target string) error {
		old, err := input.Open(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return t.rename(target)
		case err != nil:
			return err
		}
		defer old.Close()
		if err := copyAttributes(t.File, old.Descriptor(), true); err != nil {
			return err
		}
		if err := t.Chmod(old.Info.Mode() & os.ModePerm); err != nil {
			return err
		}
		old.Close() // Windows replaces no file that is open
		return t.rename(target)
	})
}

// write has contents write a temporary file beside the file that path stands for, and then
// finish put it in that file's place. A device or a pipe is written to.
func (w *Writer) write(path string, mode os.FileMode, contents func(to *os.File) error, finish func(t *temporary, target string) error) error {
	target, regular, err := resolve(path)
	if err != nil {
		return err
	}
	if !regular {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(contents(f), f.Close())
	}
	temp, err := w.createTemp(path, target, mode)
	if err != nil {
		return err
	}
	defer temp.discard()
	if err := contents(temp.File); err != nil {
		return temp.withTargetName(err, target)
	}
	return temp.withTargetName(finish(temp, target), target)
}

// bufferSize is how much of short extents is gathered before it is written, in bytes.
const bufferSize = 64 << 10

// buffers are for short extents: a run that writes many files would spend much of its time on collecting them.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}

// writeOutput writes an output, made from in, to where a file is.
func writeOutput(to *os.File, in *input.File, out *elfreloc.Output) error {
	b := buffers.Get().(*bufio.Writer)
	defer buffers.Put(b)
	b.Reset(to)
	err := out.Write(b, in)
	switch {
	case err == nil:
		return b.Flush()
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w", in.Path, input.ErrChanged)
	case errors.Is(err, input.ErrChanged): // the reader has named the file, which the offset tells nothing about
		return errors.Unwrap(err)
	}
	return err
}

// output makes an output of extents.
func output(extents []elfreloc.Extent) *elfreloc.Output {
	out := &elfreloc.Output{Extents: extents}
	for i := range extents {
		out.Size += extents[i].Len
	}
	return out
}

// Stream is an output that is written while its end is still being decided on, and its
// beginning, which depends on all of it. It is for archives: no member is kept in
// memory until the last one is known.
type Stream struct {
	writer *Writer
	path   string // that is asked for
	in     *input.File
	temp   *temporary
	target string // the regular file that is replaced, or made; "" for a device or a pipe
	gap    int64  // bytes that are left for the beginning
	size   int64  // of the gap and what was added
}

// Stream begins an output, made from in, that is to be written to path as File does, with
// room for a beginning of so many bytes. Discard is called in any case.
func (w *Writer) Stream(path string, in *input.File, gap int64) (*Stream, error) {
	if err := checkHoles(in); err != nil {
		return nil, err
	}
	s := &Stream{writer: w, path: path, in: in, gap: gap, size: gap}
	if w.TakeDescriptor != nil {
		f, err := w.createUnnamed(path, in.Size())
		if err != nil {
			return nil, err
		}
		s.target, s.temp = path, &temporary{File: f, writer: w}
	} else {
		target, regular, err := resolve(path)
		if err != nil {
			return nil, err
		}
		if regular {
			s.target = target
		} else {
			target = paths.Join(os.TempDir(), filepath.Base(target))
		}
		if s.temp, err = w.createTemp(path, target, 0o600); err != nil {
			return nil, err
		}
	}
	_, err := s.temp.Seek(gap, io.SeekStart)
	return s, s.withTargetName(err)
}

// Add writes what follows what was added before.
func (s *Stream) Add(extents []elfreloc.Extent) error {
	out := output(extents)
	s.size += out.Size
	return s.withTargetName(writeOutput(s.temp.File, s.in, out))
}

// withTargetName says of an error in writing the file what it was to become.
func (s *Stream) withTargetName(err error) error {
	if s.target == "" {
		return err
	}
	return s.temp.withTargetName(err, s.target)
}

// Finish writes the beginning, and gives the file its name. Where the beginning does not
// fit its gap, or the path stands for no regular file, all is copied once more.
func (s *Stream) Finish(begin []elfreloc.Extent) error {
	out := output(begin)
	if s.target == "" || out.Size != s.gap {
		written, err := input.Open(s.temp.Name())
		if err != nil {
			return err
		}
		defer written.Close()
		return s.writer.File(s.path, s.in, output(append(slices.Clip(begin), elfreloc.Extent{From: written, Src: s.gap, Len: s.size - s.gap})))
	}
	_, err := s.temp.Seek(0, io.SeekStart)
	if err == nil {
		err = writeOutput(s.temp.File, s.in, out)
	}
	switch {
	case err == nil && s.temp.directory == nil:
		return s.in.CheckUnchanged()
	case err == nil:
		err = s.temp.replaceTarget(s.target, s.in)
	}
	return s.withTargetName(err)
}

// Discard removes the file unless it has its name.
func (s *Stream) Discard() {
	if s != nil {
		s.temp.discard()
	}
}
