package main

import (
	"errors"
	"fmt"
	"io"

	"sdtconvert/internal/archive"
	"sdtconvert/internal/replace"
)

// eachSource calls work with what a command works on: a file itself or, if that is an
// archive, each of its members, objects or not, in their order. What work gets is
// good until it returns. The first error ends it. follow says whether files outside
// of the folder of a thin archive may be opened.
func eachSource(in *replace.Input, follow bool, work func(src *source) error) error {
	src := wholeFile(in)
	if is, err := src.isArchive(); err != nil || !is {
		if err != nil {
			return err
		}
		return work(src)
	}
	l, err := openLibrary(in, follow)
	if err != nil {
		return err
	}
	return l.each(work)
}

// library is an archive that is a file.
type library struct {
	*archive.Archive
	in     *replace.Input
	window *window
	follow bool

	inner *library // the archive that the last member of a thin one was in, or nil
}

// openLibrary reads the headers of an archive's tables.
func openLibrary(in *replace.Input, follow bool) (*library, error) {
	l := &library{in: in, window: &window{in: in}, follow: follow}
	var err error
	l.Archive, err = archive.Open(l.window, in.Info.Size(), in.Path)
	return l, err
}

// each calls work with each member.
func (l *library) each(work func(src *source) error) error {
	return l.batches(func(batch []*source) error {
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

// batches calls work with neighbouring members, which may be worked on at once, until
// none is left. They are good until it returns.
func (l *library) batches(work func(batch []*source) error) error {
	defer l.closeInner()
	var batch []*source
	size := int64(0)
	flush := func() (err error) {
		if len(batch) > 0 {
			err = work(batch)
		}
		batch, size = nil, 0
		return err
	}
	for m, err := range l.Members() {
		if err != nil {
			return errors.Join(flush(), err)
		}
		if l.Thin {
			if err := l.thin(m, func(src *source) error { return work([]*source{src}) }); err != nil {
				return err
			}
			continue
		}
		if len(batch) == batchMembers || size+m.Size > batchSize || !l.window.takes(m) {
			if err := flush(); err != nil {
				return err
			}
		}
		src, err := l.member(m)
		if err != nil {
			return err
		}
		batch, size = append(batch, src), size+m.Size
	}
	return flush()
}

func (l *library) source(m *archive.Member) *source {
	return &source{name: l.in.Path + "(" + m.Name + ")", size: m.Size, file: l.in, start: m.Start, member: m}
}

func (l *library) member(m *archive.Member) (src *source, err error) {
	src = l.source(m)
	if src.memory, err = l.window.contents(m); err != nil {
		return nil, fmt.Errorf("%s: %w", src.name, err)
	}
	src.lent = src.memory != nil
	return src, nil
}

// thin calls work with the file that is a member, or the member of another archive.
// What keeps it from being opened is for work to find out.
func (l *library) thin(m *archive.Member, work func(src *source) error) error {
	src := l.source(m)
	if m.Origin != 0 {
		src.err = l.openInner(m, src)
		return work(src)
	}
	in, err := l.open(m)
	if err != nil {
		src.err = fmt.Errorf("%s: %w", src.name, err)
		return work(src)
	}
	defer in.Close()
	src.file, src.start, src.size = in, 0, in.Info.Size()
	if src.size <= smallFile {
		if err := in.Load(); err != nil {
			return err
		}
	}
	return work(src)
}

// open opens the file that a member of a thin archive names.
func (l *library) open(m *archive.Member) (*replace.Input, error) {
	path := l.Path(m)
	if !l.follow {
		if err := l.CheckInside(path); err != nil {
			if errors.Is(err, archive.ErrOutside) {
				err = fmt.Errorf("%w; --follow-thin takes it", err)
			}
			return nil, err
		}
	}
	return replace.Open(path)
}

// openInner finds a member of another archive.
func (l *library) openInner(m *archive.Member, src *source) error {
	if l.inner == nil || l.inner.in.Path != l.Path(m) {
		l.closeInner()
		in, err := l.open(m)
		if err != nil {
			return fmt.Errorf("%s: %w", src.name, err)
		}
		inner, err := openLibrary(in, l.follow)
		if err == nil && inner.Thin {
			err = fmt.Errorf("%s: is a thin archive within a thin archive", src.name)
		}
		if err != nil {
			in.Close()
			return err
		}
		l.inner = inner
	}
	member, err := l.inner.At(m.Origin)
	if err != nil {
		return fmt.Errorf("%s: %w", src.name, err)
	}
	src.name = l.in.Path + "(" + m.Name + "(" + member.Name + "))"
	src.inner = member
	src.file, src.start, src.size = l.inner.in, member.Start, member.Size
	return nil
}

func (l *library) closeInner() {
	if l.inner != nil {
		l.inner.in.Close()
		l.inner = nil
	}
}

// window reads a file in large steps where it holds small members, one behind the
// other. Of large ones only what is asked for is read.
type window struct {
	in  *replace.Input
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

// takes reports whether contents can return those of a member and leave the others
// alone.
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
		w.buf = make([]byte, min(windowSize, w.in.Info.Size()))
	}
	w.off, w.buf = m.Start, w.buf[:cap(w.buf)]
	n, err := w.in.ReadAt(w.buf, w.off)
	w.buf = w.buf[:n]
	if int64(n) < m.Size {
		if err == io.EOF {
			err = replace.ErrChanged
		}
		return err
	}
	return nil
}
