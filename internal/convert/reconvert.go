package convert

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
)

// reconvertOnRead is a source, or what it is converted to, that is not kept in memory until
// it is written: it is opened, and converted, again when it is read, and closed
// when all of it was read. An archive may have any number of members.
type reconvertOnRead struct {
	name string
	size int64
	open func() (io.ReaderAt, io.Closer, error)

	mu   sync.Mutex
	r    io.ReaderAt
	file io.Closer
	left int64 // bytes that are still to be read
}

// output returns an output of all of it.
func (l *reconvertOnRead) output() *elfreloc.Output {
	return &elfreloc.Output{Size: l.size, Extents: []elfreloc.Extent{{Len: l.size, From: l}}}
}

// ReadAt reads each byte once: with the last one everything is closed.
func (l *reconvertOnRead) ReadAt(b []byte, off int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.r == nil {
		var err error
		if l.r, l.file, err = l.open(); err != nil {
			return 0, err
		}
		l.left = l.size
	}
	n, err := l.r.ReadAt(b, off)
	if l.left -= int64(n); l.left <= 0 || n < len(b) {
		l.file.Close()
		l.r = nil
	}
	if n < len(b) && errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: %w", l.name, input.ErrChanged)
	}
	return n, err
}

// reconvert converts a source a second time, which has to give as much as the first.
func (c *Converter) reconvert(src *input.Source, size int64) (io.ReaderAt, error) {
	_, out, err := c.output(src, nil)
	if err != nil {
		return nil, err
	}
	if out == nil || out.Size != size {
		return nil, fmt.Errorf("%s: %w", src.Name, input.ErrChanged)
	}
	return out.Reader(src), nil
}

// reconvertMember returns the converted member of a regular archive, of so many bytes.
func (c *Converter) reconvertMember(src *input.Source, size int64) *reconvertOnRead {
	member := src.Again()
	return &reconvertOnRead{name: src.Name, size: size, open: func() (io.ReaderAt, io.Closer, error) {
		r, err := c.reconvert(member.Again(), size)
		return r, io.NopCloser(nil), err
	}}
}

// reconvertFile returns the file of a thin archive's member, or what it is converted to, of so
// many bytes.
func (c *Converter) reconvertFile(src *input.Source, size int64, convert bool) *reconvertOnRead {
	path, info := src.File.Path, src.File.Info
	again := src.Again()
	return &reconvertOnRead{name: src.Name, size: size, open: func() (io.ReaderAt, io.Closer, error) {
		in, err := input.Open(path)
		if err != nil {
			return nil, nil, err
		}
		src := again.In(in)
		var r io.ReaderAt = src
		if !input.SameFile(in.Info, info) || in.Size() != info.Size() || !in.Info.ModTime().Equal(info.ModTime()) {
			err = fmt.Errorf("%s: %w", src.Name, input.ErrChanged)
		} else if convert {
			r, err = c.reconvert(src, size)
		}
		if err != nil {
			in.Close()
			return nil, nil, err
		}
		return r, in, nil
	}}
}
