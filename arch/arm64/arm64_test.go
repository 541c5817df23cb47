package arm64

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"sdtconvert/arch"
)

// words writes instructions, which are little-endian whatever the object is.
func words(insns ...uint32) []byte {
	var b []byte
	for _, i := range insns {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	return b
}

func TestDisableRefusals(t *testing.T) {
	_, err := Machine{}.Disable(arch.Site{Form: arch.CondTail, Code: words(0x94000000)}, arch.Enabled, arch.Env{})
	if err == nil || err.Error() != "got an isenabled-cond-tail" {
		t.Error(err)
	}
}

func TestDisabledIsNotRandomBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		insn := r.Uint32()
		if insn>>26 == 5 {
			continue // a b
		}
		kinds := []arch.Kind{arch.Probe, arch.Enabled}
		if insn>>26 == 0x25 {
			kinds = kinds[:1] // a bl
		}
		for _, k := range kinds {
			if got, ok := (Machine{}).Disabled(arch.Text{Code: words(insn)}, 0, k); ok {
				t.Fatalf("%08x is taken for %s", insn, arch.Describe(k, got.Form))
			}
		}
	}
	if _, ok := (Machine{}).Disabled(arch.Text{Code: words(0xd503201f)}, 2, arch.Probe); ok {
		t.Error("half a nop is taken for a site")
	}
}
