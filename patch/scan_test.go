package patch_test

import (
	"encoding/binary"
	"testing"

	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// Calls whose relocations nobody reads are not passed over.
func TestRelocationsOfUnknownTypeAreRefused(t *testing.T) {
	const androidRELA = 0x60000002
	data := objects.Read(t, "large.amd64-clang19-crel.o")
	sec := objects.Section(t, objects.Open(t, data), ".crel.text")
	header := data[int(binary.LittleEndian.Uint64(data[40:]))+64*sec:]
	binary.LittleEndian.PutUint32(header[4:], androidRELA)
	_, err := patch.Find(objects.Open(t, data), nil, patch.DefaultOptions().Names)
	const want = "a.o: .crel.text: relocations of unknown type 0x60000002 apply to .text"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
