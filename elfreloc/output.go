package elfreloc

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// Output is a new file, as a list of what to write in the order of the file.
// Sections that do not change are not held in memory: their extents name bytes of
// the input. The input, which is what the object was opened with, has to stay as it
// is until they are written.
type Output struct {
	Size    int64    // bytes: the sum of the extents' lengths
	Extents []Extent // without gaps
}

// Extent is a part of an Output: Data, or Len bytes of the input.
type Extent struct {
	Data []byte      // nil for bytes of a file; not to be modified
	Src  int64       // offset in the input, or in From, bytes
	Len  int64       // bytes, also of Data
	From io.ReaderAt // the file that the bytes are of; nil for the input
}

// BlockSize is how much of a file is held at once when it is streamed, in bytes. It is a multiple of every size
// of relocation: 8, 12, 16 and 24.
const BlockSize = 8192 * 24

// blocks are for those who stream files. A run that converts many objects would spend much of its time on
// clearing and collecting them.
var blocks = sync.Pool{New: func() any { return new([BlockSize]byte) }}

// Write writes an output to w. in is what the object was opened with; its bytes
// have to be what they were then. What has been written when an error is met is
// of no use.
func (out *Output) Write(w io.Writer, in io.ReaderAt) error {
	block := blocks.Get().(*[BlockSize]byte)
	defer blocks.Put(block)
	for i := range out.Extents {
		x := &out.Extents[i]
		if x.Data != nil {
			if _, err := w.Write(x.Data); err != nil {
				return err
			}
			continue
		}
		for at := int64(0); at < x.Len; at += BlockSize {
			b := block[:min(BlockSize, x.Len-at)]
			if err := x.read(b, in, at); err != nil {
				return err
			}
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Reader reads an output that is not written yet; in is what the object was
// opened with. Several goroutines may use it, if they may use in.
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
		block := b[n : n+int(min(int64(len(b)-n), x.Len-at))]
		if err := x.read(block, r.in, at); err != nil {
			return n, err
		}
		n += len(block)
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

// read reads what stands at offset at of an extent.
func (x *Extent) read(b []byte, in io.ReaderAt, at int64) error {
	if x.Data != nil {
		copy(b, x.Data[at:])
		return nil
	}
	if x.From != nil {
		in = x.From
	}
	if n, err := in.ReadAt(b, x.Src+at); n < len(b) {
		return fmt.Errorf("read at offset %#x: %w", x.Src+at+int64(n), err)
	}
	return nil
}
