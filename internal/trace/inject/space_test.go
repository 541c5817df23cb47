package inject

import (
	"testing"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
)

func TestAddressSpace(t *testing.T) {
	s := newAddressSpace([]image.Mapping{
		{Start: 0x5555_5555_0000, End: 0x5555_5556_0000}, {Start: 0x5555_5560_0000, End: 0x5555_5570_0000, Path: "[heap]"},
		{Start: 0x7fff_f000_0000, End: 0x7fff_f002_0000, Path: "[stack]"},
	}, 4096, 0x5555_5560_0000, 1<<47)
	for _, c := range []struct {
		start uint64
		want  bool
	}{
		{0x5555_5555_0000, false}, {0x5555_5554_f000, true}, {0x5555_5556_0000, true}, {0x5555_5570_0000, false},
		{0x5555_5570_0000 + hopHeapRoom, true}, {0x7fff_efff_f000, false}, {0x7fff_e000_0000 - 4096, true}, {0, false}, {1<<47 - 4096, false},
	} {
		expect.Equal(t, c.want, s.isFree(c.start, c.start+4096, hopHeapRoom), "%#x", c.start)
	}
	expect.Equal(t, uint64(0x5555_5540_0000), s.near(0x5555_5555_8000, 1<<20, 1<<30))
	expect.Equal(t, uint64(0), s.near(0x1000_0000_0000, 1<<20, 1<<20))
}
