// Package replace writes a file so that its name never stands for half of it.
//
// The contents go to a temporary file in the same directory, which takes the place
// of the old one by rename(2) once it is complete. Nothing is synced: a linker
// does not either, and a build that a crash has interrupted starts over.
package replace

import (
	"errors"
	"os"
	"sync"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
)

// Writer writes files. It knows those that are not complete, so that whatever ends
// the process can remove them. The zero value is ready for use, by any number of
// goroutines.
type Writer struct {
	// Begin is called once, before the first file is made, unless it is nil.
	// Signals need not be watched before.
	Begin func()

	// Unnamed, unless it is nil, gets the outputs in the place of their paths: each is a
	// descriptor of a file without a name, which is Unnamed's to close. A path may come again,
	// if its output had to be written anew. Only Linux has such files.
	Unnamed func(path string, fd int)
	TempDir string // where large ones are; small ones are in memory

	once  sync.Once
	mu    sync.RWMutex // held for reading while a file is made, renamed or changed by its name
	begun sync.Map     // names of temporary files that exist
}

// Abandon removes all temporary files, and lets none be made or renamed any
// more: callers wait for ever. It is for a process that a signal is
// about to end.
func (w *Writer) Abandon() {
	w.mu.Lock() // and never unlock
	w.begun.Range(func(name, _ any) bool {
		os.Remove(name.(string))
		return true
	})
}

// Options say how an output is written.
type Options struct {
	Draft   *Draft // what Draft has begun for the same path, or nil
	Workers int    // bounds the threads that copy
	// Fresh says that the path is not there yet, in a directory that the caller removes
	// when anything goes wrong, so that the file may have its name at once.
	Fresh bool
}

// File writes out, made from in, to path with the mode of in. If path is the
// input itself, its owner is kept too, as far as that is permitted, and its time of
// modification: ninja compiles an object of another time again. A symbolic
// link is followed and stays. What is not a regular file, like /dev/null,
// is written to and not replaced. The input cannot be read any more afterwards.
func (w *Writer) File(path string, in *input.File, out *elfreloc.Output, o Options) error {
	if w.Unnamed != nil {
		return w.unnamed(path, in, out, o.Workers)
	}
	if o.Fresh && o.Draft == nil {
		return w.fresh(path, in, out, o.Workers)
	}
	target, regular, err := resolve(path)
	if err != nil {
		return err
	}
	if !regular {
		return writeInto(target, in, out)
	}
	temp, err := w.temporaryFor(target, o.Draft, out.Size)
	if err != nil {
		return err
	}
	defer temp.discard()
	return temp.named(temp.become(target, in, out, o), target)
}

// become writes the file, and puts it in the place of target.
func (t *temporary) become(target string, in *input.File, out *elfreloc.Output, o Options) error {
	if err := write(t.file, in, out, o.Draft, o.Workers); err != nil {
		return err
	}
	return t.takePlace(target, in)
}

// takePlace puts the file, which is written, in the place of target.
func (t *temporary) takePlace(target string, in *input.File) error {
	if err := t.adopt(target, in); err != nil {
		return err
	}
	if err := in.Unchanged(); err != nil {
		return err
	}
	in.CloseFile() // Windows replaces no file that is open
	return t.rename(target)
}

// fresh writes a file that has its name at once.
func (w *Writer) fresh(path string, in *input.File, out *elfreloc.Output, workers int) error {
	f, err := w.createFresh(path)
	if err != nil {
		return err
	}
	err = write(f, in, out, nil, workers)
	if err == nil {
		err = in.Unchanged()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path) // it may be tried again
	}
	return err
}

// unnamed writes a file without a name.
func (w *Writer) unnamed(path string, in *input.File, out *elfreloc.Output, workers int) error {
	f, err := w.createUnnamed(path, out.Size)
	if err != nil {
		return err
	}
	if err := write(f, in, out, nil, workers); err != nil {
		return err
	}
	return in.Unchanged()
}

// temporaryFor makes the file that is to become target, or takes the one that
// was begun.
func (w *Writer) temporaryFor(target string, draft *Draft, size int64) (*temporary, error) {
	if draft == nil {
		return w.createTemp(target, 0o600)
	}
	temp, err := draft.take(size)
	if err != nil {
		temp.discard()
	}
	return temp, err
}

// writeInto writes to a device or a pipe.
func writeInto(path string, in *input.File, out *elfreloc.Output) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = assemble(f, in, out.Extents)
	return errors.Join(err, f.Close())
}
