package debuginfo

import (
	"bytes"
	"encoding/binary"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// A field keeps its length: the sum and the difference of a ULEB128 are those of as many
// bits as it has.
func TestFieldsOfRelocations(t *testing.T) {
	o := &elfreloc.Object{}
	o.Encoding.Order = binary.LittleEndian
	for _, c := range []struct {
		size      int
		data      string
		add       uint64
		want      string // "" where there is no field
		wantValue uint64 // before
	}{
		{1, "\x05\x07", 0x103, "\x08\x07", 5},
		{4, "\x05\x00\x00\x80\x07", 1, "\x06\x00\x00\x80\x07", 0x80000005},
		{8, "\x05\x00\x00\x80\x07", 1, "", 0},
		{arch.ULEB128, "\x05\x07", 3, "\x08\x07", 5},
		{arch.ULEB128, "\x80\x80\x00\x07", 0x1234, "\xb4\xa4\x00\x07", 0},
		{arch.ULEB128, "\xff\x7f\x07", 1, "\x80\x00\x07", 0x3fff},
		{arch.ULEB128, "\x80\x00", ^uint64(0), "\xff\x7f", 0},
		{arch.ULEB128, "\x80\x80", 1, "", 0},
		{arch.ULEB128, "", 1, "", 0},
		{arch.ULEB128, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 1, "", 0},
	} {
		data := []byte(c.data)
		field := begin(data, c.size)
		if field == nil || c.want == "" {
			if field != nil || c.want != "" {
				t.Errorf("%d, % x: a field % x", c.size, c.data, field)
			}
			continue
		}
		value := get(o, c.size, field)
		put(o, c.size, field, value+c.add)
		if value != c.wantValue || !bytes.Equal(data, []byte(c.want)) {
			t.Errorf("%d, % x: %#x, and then % x", c.size, c.data, value, data)
		}
	}
}
