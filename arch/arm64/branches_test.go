package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// As GNU as and objdump have them.
func TestBranches(t *testing.T) {
	var code []byte
	for _, insn := range []uint32{
		0x94000004, // 400000: bl 400010
		0x17ffffff, // 400004: b 400000
		0x54ffffc1, // 400008: b.ne 400000
		0xb4ffffa0, // 40000c: cbz x0, 400000
		0x94800000, // 400010: bl 2400010
	} {
		code = binary.LittleEndian.AppendUint32(code, insn)
	}
	var got [][2]uint64
	Machine{}.Branches(append(code, 0, 0), 0x400000, func(at, to uint64) { got = append(got, [2]uint64{at, to}) })
	want := [][2]uint64{{0x400000, 0x400010}, {0x400004, 0x400000}, {0x400008, 0x400000}, {0x400010, 0x2400010}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlots(t *testing.T) {
	var code []byte
	for _, insn := range []uint32{
		0x90000090, 0xf9400e11, // 400000: adrp x16, 410000; ldr x17, [x16, #24]
		0xf0fffff0, 0xf9400211, // 400008: adrp x16, 3ff000; ldr x17, [x16]
		0x90000090, 0xf9400e31, // adrp x16; ldr x17, [x17, #24]
		0x90000090, // and no more
	} {
		code = binary.LittleEndian.AppendUint32(code, insn)
	}
	var got [][2]uint64
	Machine{}.Slots(code, 0x400000, 0, func(at, slot uint64) { got = append(got, [2]uint64{at, slot}) })
	if diff := cmp.Diff([][2]uint64{{0x400000, 0x410018}, {0x400008, 0x3ff000}}, got); diff != "" {
		t.Error(diff)
	}
}
