package main

import (
	"fmt"
	"io"

	"sdtconvert/internal/archive"
	"sdtconvert/internal/replace"
)

// eachSource calls work with what a command works on: a file itself or, if that is an
// archive, each of its members, objects or not, in their order. What work gets is
// good until it returns. The first error ends it.
func eachSource(in *replace.Input, work func(src *source) error) error {
	src := wholeFile(in)
	if is, err := src.isArchive(); err != nil || !is {
		if err != nil {
			return err
		}
		return work(src)
	}
	a, w, err := openArchive(in)
	if err != nil {
		return err
	}
	return eachMember(in, a, w, work)
}

// openArchive reads the headers of an archive, through a window.
func openArchive(in *replace.Input) (*archive.Archive, *window, error) {
	w := &window{in: in}
	a, err := archive.Open(w, in.Info.Size(), in.Path)
	if err == nil && a.Thin {
		err = fmt.Errorf("%s: is a thin archive, which is not supported yet; convert the objects that it names", in.Path)
	}
	return a, w, err
}

// eachMember calls work with each member of an archive.
func eachMember(in *replace.Input, a *archive.Archive, w *window, work func(src *source) error) error {
	for m, err := range a.Members() {
		if err != nil {
			return err
		}
		src := &source{name: in.Path + "(" + m.Name + ")", size: m.Size, file: in, start: m.Start, member: m}
		if src.memory, err = w.contents(m); err != nil {
			return err
		}
		src.lent = src.memory != nil
		if err := work(src); err != nil {
			return err
		}
	}
	return nil
}

// window reads a file in large steps where it holds small members, one behind the
// other. Of large ones only what is asked for is read.
type window struct {
	in  *replace.Input
	buf []byte
	off int64 // of buf in the file
}

const (
	windowSize  = 256 << 10
	smallMember = 64 << 10
)

// ReadAt reads from the window what is there.
func (w *window) ReadAt(b []byte, off int64) (int, error) {
	if at := off - w.off; at >= 0 && at+int64(len(b)) <= int64(len(w.buf)) {
		return copy(b, w.buf[at:]), nil
	}
	return w.in.ReadAt(b, off)
}

// contents returns the contents of a member if it is small, and nil otherwise. They
// are good until the next call.
func (w *window) contents(m *archive.Member) ([]byte, error) {
	if m.Size > smallMember || w.in.Loaded() {
		return nil, nil
	}
	end := m.Start + m.Size
	if m.Start < w.off || end > w.off+int64(len(w.buf)) {
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
			return nil, err
		}
	}
	return w.buf[m.Start-w.off : end-w.off : end-w.off], nil
}
