package elfreloc

import (
	"fmt"
	"io"
	"slices"
)

// Reader reads an output that nobody has written yet. It is for tables: what is
// rewritten on its way is rewritten anew for each read.
func (out *Output) Reader(in io.ReaderAt) io.ReaderAt {
	r := &outputReader{out: out, in: in, starts: make([]int64, len(out.Extents))}
	at := int64(0)
	for i, x := range out.Extents {
		r.starts[i] = at
		at += x.Len
	}
	return r
}

type outputReader struct {
	out    *Output
	in     io.ReaderAt
	starts []int64 // offset of each extent
}

func (r *outputReader) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 || off >= r.out.Size {
		return 0, io.EOF
	}
	i, found := slices.BinarySearch(r.starts, off)
	if !found {
		i--
	}
	for ; n < len(b) && i < len(r.starts); i++ {
		x := &r.out.Extents[i]
		at := off + int64(n) - r.starts[i]
		part := b[n : n+int(min(int64(len(b)-n), x.Len-at))]
		if err := r.read(part, x, at); err != nil {
			return n, err
		}
		n += len(part)
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

// read reads what stands at offset at of an extent.
func (r *outputReader) read(b []byte, x *Extent, at int64) error {
	if x.Data != nil {
		copy(b, x.Data[at:])
		return nil
	}
	in := r.in
	if x.From != nil {
		in = x.From
	}
	if x.Rewrite == nil {
		return readFull(in, b, x.Src+at)
	}
	window := make([]byte, min(Window, x.Len))
	for n := 0; n < len(b); {
		start := (at + int64(n)) / Window * Window
		w := window[:min(Window, x.Len-start)]
		if err := readFull(in, w, x.Src+start); err != nil {
			return err
		}
		if err := x.Rewrite(start, w); err != nil {
			return err
		}
		n += copy(b[n:], w[at+int64(n)-start:])
	}
	return nil
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	if n, err := r.ReadAt(b, off); n < len(b) {
		return fmt.Errorf("read at offset %#x: %w", off+int64(n), err)
	}
	return nil
}
