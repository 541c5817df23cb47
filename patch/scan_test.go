package patch_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// Calls whose relocations cannot be read are not passed over.
func TestRelocationsOfUnknownTypeAreRefused(t *testing.T) {
	const androidRELA = 0x60000002
	data := objects.Read(t, "large.amd64-clang19-crel.o")
	sec := objects.Section(t, objects.Open(t, data), ".crel.text")
	header := data[int(binary.LittleEndian.Uint64(data[40:]))+64*sec:]
	binary.LittleEndian.PutUint32(header[4:], androidRELA)
	expect.Equal(t, "a.o: .crel.text: relocations of unknown type 0x60000002 apply to .text",
		expect.Failure(patch.Find(objects.Open(t, data), nil, patch.DefaultOptions().Names)))
}

// Relocations of a byte each claim more references than there can be: that is one error, and
// no refusal of each.
func TestMoreReferencesThanHaveRoomAreRefused(t *testing.T) {
	data := objects.Read(t, "large.amd64-clang19-crel.o")
	o := objects.Open(t, data)
	sec := objects.Section(t, o, ".crel.text")
	text := o.Sections[o.Sections[sec].Info]
	rels := expect.Value(o.RelocSections())(t)
	var stub elfreloc.Relocation
	expect.OK(t, o.EachRelocation(rels[0], func(i int, r elfreloc.Relocation) error {
		stub = r
		return nil
	}))
	const entries = 1000
	crel := []byte{0x84 | entries<<3&0x7f, entries >> 4, 1<<3 | 0b111, byte(stub.Sym), byte(stub.Type), 0x7c}
	crel = append(crel, bytes.Repeat([]byte{0}, entries-1)...) // the same again
	header := data[int(binary.LittleEndian.Uint64(data[40:]))+64*sec:]
	binary.LittleEndian.PutUint64(header[24:], uint64(len(data)))
	binary.LittleEndian.PutUint64(header[32:], uint64(len(crel)))
	expect.Equal(t, fmt.Sprintf("a.o: .crel.text: more than %d references to stubs in %d bytes", text.Size/4+1, text.Size),
		expect.Failure(patch.Find(objects.Open(t, append(data, crel...)), nil, patch.DefaultOptions().Names)))
}
