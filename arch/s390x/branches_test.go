package s390x

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// As GNU as and objdump have them.
func TestBranches(t *testing.T) {
	code := []byte("\xc0\xe5\x00\x00\x00\x0c" + // 100000: brasl %r14, 100018
		"\xc0\xf4\xff\xff\xff\xfd" + // 100006: jg 100000
		"\xc0\x64\xff\xff\xff\xfa" + // 10000c: jglh 100000
		"\xa7\x74\xff\xf7" + // 100012: jne 100000
		"\x07\xfe" + // 100016: br %r14
		"\xc0\x04\x00\x00\x00\x03" + // 100018: brcl 0, 10001e
		"\xc0\x10\x00\x00\x00\x03" + // 10001e: larl %r1, 100024
		"\xc0\xe5\x00\x00") // and no more
	var got [][2]uint64
	Machine{}.Branches(code, 0x100000, func(at, to uint64) { got = append(got, [2]uint64{at, to}) })
	want := [][2]uint64{{0x100000, 0x100018}, {0x100006, 0x100000}, {0x10000c, 0x100000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlots(t *testing.T) {
	code := []byte("\xc0\x10\x00\x00\x10\x0c\xe3\x10\x10\x00\x00\x04" + // 100000: larl %r1, 102018; lg %r1, 0(%r1)
		"\xc4\x18\xff\xff\xf7\xfa" + // 10000c: lgrl %r1, ff000
		"\xc0\x10\x00\x00\x10\x0c\xe3\x10\x20\x00\x00\x04" + // larl %r1; lg %r1, 0(%r2)
		"\xc0\x10\x00\x00\x10\x0c\xe3\x10\x10\x08\x00\x04" + // larl %r1; lg %r1, 8(%r1)
		"\xc0\x10\x00\x00\x10\x0c") // larl %r1, and no more
	var got [][2]uint64
	Machine{}.Slots(code, 0x100000, 0, func(at, slot uint64) { got = append(got, [2]uint64{at, slot}) })
	if diff := cmp.Diff([][2]uint64{{0x100000, 0x102018}, {0x10000c, 0xff000}}, got); diff != "" {
		t.Error(diff)
	}
}
