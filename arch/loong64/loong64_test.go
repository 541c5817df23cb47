package loong64

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

func words(insns ...uint32) []byte {
	var b []byte
	for _, i := range insns {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	return b
}

// What is behind a site of one instruction is none of it, whatever it is.
func TestSitesOfOneInstructionEndThere(t *testing.T) {
	for k := range arch.Kinds {
		for _, form := range []arch.Form{arch.Call, arch.Tail} {
			for _, next := range [][]byte{nop, ret, zero, b, bl} {
				code := join(single[k][form], next)
				if bytes.Equal(code, pairs[k][arch.Tail]) {
					continue // no code returns right behind a call, which has changed $ra
				}
				want := arch.Site{Offset: 0x40, Form: form, Code: single[k][form]}
				got, ok := Machine{}.Disabled(arch.Text{Code: code, Start: 0x40}, 0x40, k)
				if diff := cmp.Diff(want, got); !ok || diff != "" {
					t.Errorf("% x: %v %s", code, ok, diff)
				}
			}
		}
	}
}

// A call that links, and that linkers have made one instruction of, is one to a helper.
func TestRelaxedCallsOfHelpers(t *testing.T) {
	for insn, form := range map[uint32]arch.Form{0x54010000: arch.Call, 0x53ff03ff: arch.Tail} {
		code := words(insn, 0x03400000)
		want := arch.Site{Form: form, Code: code[:4]}
		got, ok := Machine{}.Disabled(arch.Text{Code: code}, 0, arch.Enabled)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%08x: %v %s", insn, ok, diff)
		}
		if _, ok := (Machine{}).Disabled(arch.Text{Code: code}, 0, arch.Probe); ok {
			t.Errorf("%08x is taken for a disabled probe call", insn)
		}
	}
}

// The ends of what an offset of 26 bits and a pair reach.
func TestBranchesThatReachFar(t *testing.T) {
	for _, c := range []struct {
		code []byte
		to   uint64
	}{
		{words(0x57fffdff), 0x10000000000 + 1<<27 - 4},
		{words(0x54000200), 0x10000000000 - 1<<27},
		{words(0x1effffe1, 0x4dfffc21), 0x10000000000 + (1<<19-1)<<18 + 1<<17 - 4},
		{words(0x1f000001, 0x4e000021), 0x10000000000 - 1<<37 - 1<<17},
	} {
		if to, ok := (Machine{}).Branch(arch.Text{Code: c.code, Start: 0x10000000000}, 0x10000000000); !ok || to != c.to {
			t.Errorf("% x: %#x %v, want %#x", c.code, to, ok, c.to)
		}
	}
}

// Every relocation of version 0 of the ABI of objects is named.
func TestStackMachinesAreRefused(t *testing.T) {
	for typ := uint32(elf.R_LARCH_MARK_LA); typ <= uint32(elf.R_LARCH_SOP_POP_32_U); typ++ {
		_, err := Machine{}.Decode(arch.Text{Code: bl}, []elfreloc.Relocation{{Type: typ}})
		want := "got " + elf.R_LARCH(typ).String() + ", of version 0 of the ABI of objects; assemble with binutils 2.40 or later, or with clang"
		expect.Equal(t, want, fmt.Sprint(err), "%d", typ)
	}
}
