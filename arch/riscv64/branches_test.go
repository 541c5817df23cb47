package riscv64

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// As GNU as and objdump have them.
func TestBranches(t *testing.T) {
	code, err := hex.DecodeString("ef004002" + // 100000: jal ra, 100024
		"6ff0dfff" + // 100004: jal zero, 100000
		"e30c00fe" + // 100008: beq zero, zero, 100000
		"97000000e7808001" + // 10000c: auipc ra, 0; jalr ra, 24(ra): 100024
		"17f3ffff67000301" + // 100014: auipc t1, 0xfffff; jalr zero, 16(t1): ff024
		"97000000e7008301" + // 10001c: auipc ra, 0; jalr ra, 24(t1)
		"f1bf" + // 100024: c.j 100000
		"f9ab") // 100026: c.j 100604
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]uint64{}
	Machine{}.Branches(code, 0x100000, func(at, to uint64) { got[at] = to })
	want := map[uint64]uint64{
		0x100000: 0x100024, 0x100004: 0x100000, 0x10000c: 0x100024, 0x100014: 0xff024, 0x100024: 0x100000, 0x100026: 0x100604,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlots(t *testing.T) {
	code, err := hex.DecodeString("172e0000033e8e01" + // 100000: auipc t3, 2; ld t3, 24(t3): 102018
		"17feffff033e8eff" + // 100008: auipc t3, 0xfffff; ld t3, -8(t3): ff000
		"172e0000033e8300") // auipc t3, 2; ld t3, 8(t1)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]uint64{}
	Machine{}.Slots(code, 0x100000, 0, func(at, slot uint64) { got[at] = slot })
	if diff := cmp.Diff(map[uint64]uint64{0x100000: 0x102018, 0x100008: 0xff000}, got); diff != "" {
		t.Error(diff)
	}
}
