package amd64

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBranches(t *testing.T) {
	code := unhex(t, "e8 0b 00 00 00 "+ // 400000: call 400010
		"e9 f6 ff ff ff "+ // 400005: jmp 400000
		"0f 85 00 00 00 00 "+ // 40000a: jne 400010
		"67 e8 ea ff ff ff "+ // 400010: addr32 call 400000
		"0f 84 00 00 00") // cut off
	var got [][2]uint64
	Machine{}.Branches(code, 0x400000, func(at, to uint64) { got = append(got, [2]uint64{at, to}) })
	want := [][2]uint64{{0x400000, 0x400010}, {0x400005, 0x400000}, {0x40000a, 0x400010}, {0x400011, 0x400000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlots(t *testing.T) {
	code := unhex(t, "f3 0f 1e fa f2 ff 25 f5 0f 00 00 "+ // 400000: endbr64; bnd jmp *401000(%rip)
		"ff 15 ef ff ff ff "+ // 40000b: call *400000(%rip)
		"ff 35 00 00 00 00 ff 25 00") // push; cut off
	var got [][2]uint64
	Machine{}.Slots(code, 0x400000, 0, func(at, slot uint64) { got = append(got, [2]uint64{at, slot}) })
	want := [][2]uint64{{0x400005, 0x401000}, {0x40000b, 0x400000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
