package replace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
)

// An extent of the input is copied within the kernel, where the file system
// may share its blocks, if it is at least copyMin long; what is shorter is
// gathered in a buffer of one window with what stands around it. The output is
// divided into parts of about partSize for the workers.
const (
	copyMin  = 256 << 10
	partSize = 32 * elfreloc.BlockSize
)

// part is a run of extents and where it goes.
type part struct {
	off     int64
	extents []elfreloc.Extent
}

// write writes an output, but for what is there already, with several threads.
//
// Only one thread at a time can write to a file, so the parts that the kernel
// copies by itself are all left to the first one. The others gather, and change,
// what it cannot copy, and write that in between.
func write(dst *file, src *input.File, out *elfreloc.Output, draft *Draft, workers int) error {
	copies, gathered := sortParts(src, divide(out, draft))
	errs := make([]error, max(1, min(workers, len(gathered))))
	var next atomic.Int64
	var failed atomic.Bool // then the others need not go on
	do := func(w int, p part) {
		if errs[w] = writePart(dst, src, p); errs[w] != nil {
			failed.Store(true)
		}
	}
	gather := func(w int) {
		for i := next.Add(1) - 1; i < int64(len(gathered)) && !failed.Load(); i = next.Add(1) - 1 {
			do(w, gathered[i])
		}
	}
	var wg sync.WaitGroup
	for w := 1; w < len(errs); w++ {
		wg.Go(func() { gather(w) })
	}
	for i := 0; i < len(copies) && !failed.Load(); i++ {
		do(0, copies[i])
	}
	gather(0)
	wg.Wait()
	return cmp.Or(errs...)
}

// sortParts tells the parts that the kernel copies from those that it cannot.
func sortParts(src *input.File, parts []part) (copies, gathered []part) {
	for _, p := range parts {
		if src.Loaded() || slices.ContainsFunc(p.extents, func(x elfreloc.Extent) bool { return !inKernel(x) }) {
			gathered = append(gathered, p)
		} else {
			copies = append(copies, p)
		}
	}
	return copies, gathered
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
		piece := elfreloc.Extent{Src: x.Src + at, Len: min(partSize, x.Len-at), From: x.From}
		if x.Rewrite != nil {
			piece.Rewrite = func(off int64, b []byte) error { return x.Rewrite(at+off, b) }
		}
		pieces = append(pieces, piece)
	}
	return pieces
}

func writePart(dst *file, src *input.File, p part) error {
	off := p.off
	for len(p.extents) > 0 {
		n := 0
		for n < len(p.extents) && (src.Loaded() || !inKernel(p.extents[n])) {
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
		copied, err := copyRange(dst, off, src, x.Src, x.Len)
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
	return x.IsCopy() && x.Len >= copyMin
}

// offsetWriter writes in sequence from an offset on, and does not use the file's own
// offset.
type offsetWriter struct {
	f   *file
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
	if size := min(n, elfreloc.BlockSize); int64(cap(*b)) < size {
		*b = make([]byte, size)
	}
	*b = (*b)[:min(cap(*b), elfreloc.BlockSize)]
	return b
}

// assemble writes extents one behind the other, through a buffer.
func assemble(w io.Writer, src *input.File, extents []elfreloc.Extent) error {
	if len(extents) == 0 {
		return nil
	}
	held := buffer(length(extents))
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
func load(b []byte, src *input.File, x elfreloc.Extent, at int64) error {
	if x.Data != nil {
		copy(b, x.Data[at:])
		return nil
	}
	if err := readExtent(b, src, x, at); err != nil {
		return err
	}
	if x.Rewrite == nil {
		return nil
	}
	return x.Rewrite(at, b)
}

func readExtent(b []byte, src *input.File, x elfreloc.Extent, at int64) error {
	from := io.ReaderAt(src)
	if x.From != nil {
		from = x.From
	}
	n, err := from.ReadAt(b, x.Src+at)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		err = input.ErrChanged
	}
	if x.From == nil { // another reader names the file itself
		err = fmt.Errorf("%s: %w", src.Path, err)
	}
	return err
}
