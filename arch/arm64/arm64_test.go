package arm64

import (
	"encoding/binary"
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
