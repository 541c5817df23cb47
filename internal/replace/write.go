package replace

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"sdtconvert/elfreloc"
)

// An extent of the input is copied within the kernel, where the file system
// may share its blocks, if it is at least copyMin long; what is shorter is
// gathered in a buffer of one window with what stands around it. The output is
// divided into parts of about partSize for the workers.
const (
	copyMin  = 256 << 10
	partSize = 32 * elfreloc.Window
)

// part is a run of extents and where it goes.
type part struct {
	off     int64
	extents []elfreloc.Extent
}

// write writes an output, but for what is there already, with several threads.
func write(dst *os.File, src *Input, out *elfreloc.Output, draft *Draft, workers int) error {
	parts := divide(out, draft)
	if len(parts) == 1 {
		return writePart(dst, src, parts[0])
	}
	workers = max(1, min(workers, len(parts)))
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					return
				}
				errs[w] = writePart(dst, src, parts[i])
			}
			next.Store(int64(len(parts))) // the others need not go on
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// divide splits long extents, at whole windows, and groups short ones. It leaves
// out what the draft holds.
func divide(out *elfreloc.Output, draft *Draft) []part {
	if out.Size <= partSize {
		return []part{{extents: out.Extents}}
	}
	var parts []part
	var off, size int64
	current := part{}
	flush := func() {
		if len(current.extents) > 0 {
			parts = append(parts, current)
		}
		current, size = part{off: off}, 0
	}
	for _, x := range out.Extents {
		for _, piece := range split(x) {
			if draft.holds(off, piece) {
				flush()
				off += piece.Len
				current.off = off
				continue
			}
			current.extents = append(current.extents, piece)
			off += piece.Len
			if size += piece.Len; size >= partSize {
				flush()
			}
		}
	}
	flush()
	return parts
}

func split(x elfreloc.Extent) []elfreloc.Extent {
	if x.Data != nil || x.Len <= partSize {
		return []elfreloc.Extent{x}
	}
	var pieces []elfreloc.Extent
	for at := int64(0); at < x.Len; at += partSize {
		piece := elfreloc.Extent{Src: x.Src + at, Len: min(partSize, x.Len-at)}
		if x.Rewrite != nil {
			piece.Rewrite = func(off int64, b []byte) error { return x.Rewrite(at+off, b) }
		}
		pieces = append(pieces, piece)
	}
	return pieces
}

func writePart(dst *os.File, src *Input, p part) error {
	off := p.off
	for len(p.extents) > 0 {
		n := 0
		for n < len(p.extents) && (src.memory != nil || !inKernel(p.extents[n])) {
			n++
		}
		w := &offsetWriter{dst, off}
		if err := assemble(w, src, p.extents[:n]); err != nil {
			return err
		}
		off, p.extents = w.off, p.extents[n:]
		if len(p.extents) == 0 {
			break
		}
		x := p.extents[0]
		copied, err := copyRange(dst, off, src.File, x.Src, x.Len)
		if err != nil {
			return err
		}
		off += copied
		if p.extents = p.extents[1:]; copied < x.Len {
			rest := elfreloc.Extent{Src: x.Src + copied, Len: x.Len - copied}
			w := &offsetWriter{dst, off}
			if err := assemble(w, src, []elfreloc.Extent{rest}); err != nil {
				return err
			}
			off = w.off
		}
	}
	return nil
}

func inKernel(x elfreloc.Extent) bool {
	return x.Data == nil && x.Rewrite == nil && x.Len >= copyMin
}

// offsetWriter writes in sequence from an offset on, leaving the file's own
// offset to nobody.
type offsetWriter struct {
	f   *os.File
	off int64
}

func (w *offsetWriter) Write(b []byte) (int, error) {
	n, err := w.f.WriteAt(b, w.off)
	w.off += int64(n)
	return n, err
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// buffer returns a buffer of at most one window for n bytes in all.
func buffer(n int64) *[]byte {
	b := buffers.Get().(*[]byte)
	if size := min(n, elfreloc.Window); int64(cap(*b)) < size {
		*b = make([]byte, size)
	}
	*b = (*b)[:min(cap(*b), elfreloc.Window)]
	return b
}

// assemble writes extents one behind the other, through a buffer.
func assemble(w io.Writer, src *Input, extents []elfreloc.Extent) error {
	if len(extents) == 0 {
		return nil
	}
	total := int64(0)
	for _, x := range extents {
		total += x.Len
	}
	held := buffer(total)
	defer buffers.Put(held)
	buf, fill := *held, 0
	flush := func() error {
		_, err := w.Write(buf[:fill])
		fill = 0
		return err
	}
	for _, x := range extents {
		for at := int64(0); at < x.Len; {
			// A window that is to be rewritten must be whole.
			n := min(x.Len-at, int64(len(buf)))
			if n > int64(len(buf)-fill) {
				if x.Rewrite == nil && fill < len(buf) {
					n = int64(len(buf) - fill)
				} else if err := flush(); err != nil {
					return err
				}
			}
			b := buf[fill : fill+int(n)]
			if err := load(b, src, x, at); err != nil {
				return err
			}
			fill, at = fill+int(n), at+n
		}
	}
	return flush()
}

// load reads the bytes at offset at of an extent.
func load(b []byte, src *Input, x elfreloc.Extent, at int64) error {
	if x.Data != nil {
		copy(b, x.Data[at:])
		return nil
	}
	if n, err := src.ReadAt(b, x.Src+at); n < len(b) {
		if err == io.EOF {
			err = ErrChanged
		}
		return fmt.Errorf("%s: %w", src.Path, err)
	}
	if x.Rewrite == nil {
		return nil
	}
	return x.Rewrite(at, b)
}
