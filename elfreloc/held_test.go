package elfreloc_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// holding is a file of which a part is in memory: what is read of it at once before an
// offset.
type holding struct {
	*bytes.Reader
	until int64
	held  map[int64][]byte
}

func (h *holding) Slice(off, n int64) []byte {
	if off+n > h.until {
		return nil
	}
	if h.held[off] == nil || int64(len(h.held[off])) < n {
		h.held[off] = make([]byte, n)
		if _, err := h.ReadAt(h.held[off], off); err != nil {
			return nil
		}
	}
	return h.held[off][:n]
}

// A section of relocations is read in blocks, of which the reader may hold the first ones
// alone. These stay as they are: whatever else reads them gets them from there.
func TestHeldBytesAreNotOverwritten(t *testing.T) {
	const blocks = 3
	for _, m := range everyImage() {
		m.relocs = make([]uint32, blocks*elfreloc.BlockSize/8)
		for i := range m.relocs {
			m.relocs[i] = uint32(1 + i%2)
		}
		if m.crel != nil {
			flags := m.crel[0] & 4
			m.crel = binary.AppendUvarint(nil, blocks*elfreloc.BlockSize<<3|uint64(flags))
			for i := range blocks * elfreloc.BlockSize {
				m.crel = append(m.crel, byte(i%8)<<3)
			}
		}
		file := m.bytes()
		for until := range int64(blocks) {
			in := &holding{bytes.NewReader(file), (until + 1) * elfreloc.BlockSize * 3 / 2, map[int64][]byte{}}
			o := expect.Value(elfreloc.Open(in, int64(len(file)), "a.o"))(t)
			rels := expect.Value(o.RelocSections())(t)
			read := 0
			if err := o.EachRelocation(rels[0], func(int, elfreloc.Relocation) error { read++; return nil }); err != nil || read != rels[0].Len {
				t.Fatalf("%d of %d relocations, %v", read, rels[0].Len, err)
			}
			for off, b := range in.held {
				if !bytes.Equal(b, file[off:off+int64(len(b))]) {
					t.Errorf("%d blocks held of %v %v, rel %v, crel %v: %d bytes at %#x have changed", until, m.class, m.order, m.rel, m.crel != nil, len(b), off)
				}
			}
		}
	}
}
