package image_test

import (
	"bytes"
	"debug/elf"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
)

// wideHash is a machine with entries of DT_HASH of 8 bytes.
type wideHash struct{ arch.Machine }

func (m wideHash) Traits() *arch.Traits {
	t := *m.Machine.Traits()
	t.WideHash = true
	return &t
}

// DT_HASH has a chain entry for each symbol, so its second entry is their number.
func TestSymbolsAreCountedByTheirHashTable(t *testing.T) {
	for _, c := range []struct {
		wide  bool
		table []uint32
		want  int // arrays that the symbols bound
	}{
		{false, []uint32{1, 4}, 1},
		{false, []uint32{1, 3}, 0},
		{true, []uint32{1, 0, 4, 0}, 1},
		{true, []uint32{1, 0, 3, 0}, 0},
		{true, []uint32{1, 4, 0, 0}, 1},
		{true, []uint32{1, 3, 0, 0}, 0},
	} {
		m := newTiny()
		m.dynamic[5].Tag, m.gnuHash = int64(elf.DT_HASH), c.table
		data := m.bytes()
		o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "tiny.so"))(t)
		machine := machines.Lookup(o.ABI())
		if c.wide {
			machine = wideHash{machine}
		}
		im := expect.Value(image.Open(o, machine))(t)
		expect.Equal(t, c.want, len(expect.Value(im.Arrays("set"))(t)), "%v", c.table)
	}
}
