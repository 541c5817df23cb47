package input

import (
	"errors"
	"fmt"
	"io"

	"sdtconvert/internal/archive"
)

// Options say what is opened.
type Options struct {
	// FollowThin permits to open files outside of the directory of a thin archive.
	FollowThin bool
}

// Each opens a file and calls work with what is to be worked on in it: all of it or,
// if it is an archive, each of its members, objects or not, in their order. The first
// error ends it.
func Each(path string, o Options, work func(src *Source) error) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Each(o, work)
}

// Each is Each for a file that is open.
func (f *File) Each(o Options, work func(src *Source) error) error {
	src := f.Source()
	if isArchive, err := src.IsArchive(); err != nil || !isArchive {
		if err != nil {
			return err
		}
		return work(src)
	}
	a, err := f.Archive(o)
	if err != nil {
		return err
	}
	return a.Each(work)
}

// Archive is an archive that is a file.
type Archive struct {
	*archive.Archive
	File   *File
	o      Options
	window *window

	inner *Archive // the archive that the last member of a thin one was in, or nil
}

// Archive reads the headers of an archive's tables.
func (f *File) Archive(o Options) (*Archive, error) {
	a := &Archive{File: f, o: o, window: &window{in: f}}
	var err error
	a.Archive, err = archive.Open(a.window, f.Size(), f.Path)
	return a, err
}

// Each calls work with each member, one after the other.
func (a *Archive) Each(work func(src *Source) error) error {
	return a.Batches(func(batch []*Source) error {
		for _, src := range batch {
			if err := work(src); err != nil {
				return err
			}
		}
		return nil
	})
}

// The most members in a batch, and their length in bytes unless it is one alone: what
// is made of them is in memory at once.
const (
	batchMembers = 256
	batchSize    = 8 << 20
)

// Batches calls work with neighbouring members, which may be worked on at once, until
// none is left. Their turn is over when it returns.
func (a *Archive) Batches(work func(batch []*Source) error) error {
	defer a.closeInner()
	var batch []*Source
	size := int64(0)
	flush := func() (err error) {
		if len(batch) > 0 {
			err = work(batch)
		}
		batch, size = nil, 0
		return err
	}
	for m, err := range a.Members() {
		if err != nil {
			return errors.Join(flush(), err)
		}
		if a.Thin {
			if err := a.thin(m, func(src *Source) error { return work([]*Source{src}) }); err != nil {
				return err
			}
			continue
		}
		if len(batch) == batchMembers || size+m.Size > batchSize || !a.window.takes(m) {
			if err := flush(); err != nil {
				return err
			}
		}
		src, err := a.member(m)
		if err != nil {
			return err
		}
		batch, size = append(batch, src), size+m.Size
	}
	return flush()
}

func (a *Archive) source(m *archive.Member) *Source {
	return &Source{Name: a.File.Path + "(" + m.Name + ")", Size: m.Size, File: a.File, Start: m.Start, Member: m}
}

func (a *Archive) member(m *archive.Member) (src *Source, err error) {
	src = a.source(m)
	if src.memory, err = a.window.contents(m); err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	src.borrowed = src.memory != nil
	return src, nil
}

// thin calls work with the file that a member of a thin archive names, or with the member of another
// archive. If it cannot be opened, the source has the error.
func (a *Archive) thin(m *archive.Member, work func(src *Source) error) error {
	src := a.source(m)
	if m.Origin != 0 {
		src.err = a.openInner(m, src)
		return work(src)
	}
	f, err := a.open(m)
	if err != nil {
		src.err = fmt.Errorf("%s: %w", src.Name, err)
		return work(src)
	}
	defer f.Close()
	src.File, src.Start, src.Size = f, 0, f.Size()
	return work(src)
}

// open opens the file that a member of a thin archive names.
func (a *Archive) open(m *archive.Member) (*File, error) {
	path := a.Path(m)
	if !a.o.FollowThin {
		if err := a.CheckInside(path); err != nil {
			if errors.Is(err, archive.ErrOutside) {
				err = fmt.Errorf("%w; --follow-thin takes it", err)
			}
			return nil, err
		}
	}
	return Open(path)
}

// openInner finds a member of another archive.
func (a *Archive) openInner(m *archive.Member, src *Source) error {
	if a.inner == nil || a.inner.File.Path != a.Path(m) {
		a.closeInner()
		f, err := a.open(m)
		if err != nil {
			return fmt.Errorf("%s: %w", src.Name, err)
		}
		inner, err := f.Archive(a.o)
		if err == nil && inner.Thin {
			err = fmt.Errorf("%s: is a thin archive within a thin archive", src.Name)
		}
		if err != nil {
			f.Close()
			return err
		}
		a.inner = inner
	}
	member, err := a.inner.At(m.Origin)
	if err != nil {
		return fmt.Errorf("%s: %w", src.Name, err)
	}
	src.Name = a.File.Path + "(" + m.Name + "(" + member.Name + "))"
	src.Inner = member
	src.File, src.Start, src.Size = a.inner.File, member.Start, member.Size
	return nil
}

func (a *Archive) closeInner() {
	if a.inner != nil {
		a.inner.File.Close()
		a.inner = nil
	}
}

// window reads a file in large steps where it holds small members, one behind the
// other. Of large ones only what is asked for is read.
type window struct {
	in  *File
	buf []byte
	off int64 // of buf in the file
}

const windowSize = 1 << 20

// ReadAt reads from the window what is there.
func (w *window) ReadAt(b []byte, off int64) (int, error) {
	if at := off - w.off; at >= 0 && at+int64(len(b)) <= int64(len(w.buf)) {
		return copy(b, w.buf[at:]), nil
	}
	return w.in.ReadAt(b, off)
}

// takes reports whether contents can return a member's bytes without moving the window, which would
// overwrite the bytes of earlier members.
func (w *window) takes(m *archive.Member) bool {
	return !w.wants(m) || m.Start >= w.off && m.Start+m.Size <= w.off+int64(len(w.buf))
}

// wants reports whether a member is one of those that are read through the window.
func (w *window) wants(m *archive.Member) bool { return m.Size <= smallFile && !w.in.Loaded() }

// contents returns the contents of a member if it is small, and nil otherwise. They
// are good until it is called with a member that the window does not take.
func (w *window) contents(m *archive.Member) ([]byte, error) {
	if !w.wants(m) {
		return nil, nil
	}
	if !w.takes(m) {
		if err := w.read(m); err != nil {
			return nil, err
		}
	}
	at := m.Start - w.off
	return w.buf[at : at+m.Size : at+m.Size], nil
}

// read moves the window to where a member begins.
func (w *window) read(m *archive.Member) error {
	if w.buf == nil {
		w.buf = make([]byte, min(windowSize, w.in.Size()))
	}
	w.off, w.buf = m.Start, w.buf[:cap(w.buf)]
	n, err := w.in.ReadAt(w.buf, w.off)
	w.buf = w.buf[:n]
	if int64(n) < m.Size {
		if err == io.EOF {
			err = ErrChanged
		}
		return err
	}
	return nil
}
