package machines_test

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"slices"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
)

// numbers returns numbers of some bytes each as the bytes that a machine has of them.
func numbers(t testing.TB, value string, size int, big bool) string {
	t.Helper()
	b, err := unhex(value)
	if err != nil || len(b)%size != 0 {
		t.Fatalf("%s are not numbers of %d bytes: %v", value, size, err)
	}
	for i := 0; !big && i < len(b); i += size {
		slices.Reverse(b[i : i+size])
	}
	return hex.EncodeToString(b)
}

// bigCode reports whether a machine's code is big-endian. That of Arm's BE8 is not, though its data
// is: its instructions are those of the little-endian machine.
func bigCode(m arch.Machine) bool {
	return m.Traits().ABIs[0].Data == elf.ELFDATA2MSB && !slices.ContainsFunc(machines.All(), func(other arch.Machine) bool {
		return packageOf(other) == packageOf(m) && other.Traits().ABIs[0].Data == elf.ELFDATA2LSB &&
			bytes.Equal(other.Traits().HelperMark.Code, m.Traits().HelperMark.Code)
	})
}
