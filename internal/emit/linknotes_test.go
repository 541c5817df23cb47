package emit

import (
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

func propertyNote(namesz, descsz, typ uint32, rest ...byte) []byte {
	var b []byte
	for _, v := range []uint32{namesz, descsz, typ} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, rest...)
}

const property = 0xc0000002

func TestFeatures(t *testing.T) {
	gnu := []byte("GNU\x00")
	value := []byte{2, 0, 0, 0xc0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}
	other := []byte{1, 0, 0, 0xc0, 4, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name  string
		notes []byte
		bits  uint32
		ok    bool
	}{
		{"nothing", nil, 0, true},
		{"a property", propertyNote(4, 16, 5, join(gnu, value)...), 3, true},
		{"behind another", propertyNote(4, 32, 5, join(gnu, other, value)...), 3, true},
		{"behind another note", join(propertyNote(4, 0, 1, gnu...), propertyNote(4, 16, 5, join(gnu, value)...)), 3, true},
		{"without padding", propertyNote(4, 12, 5, join(gnu, value[:12])...), 3, true},
		{"another's", propertyNote(4, 16, 5, join([]byte("ABC\x00"), value)...), 0, true},
		{"another type", propertyNote(4, 16, 6, join(gnu, value)...), 0, true},
		{"a cut header", propertyNote(4, 16, 5)[:11], 0, false},
		{"a long name", propertyNote(1<<31, 16, 5, join(gnu, value)...), 0, false},
		{"a long note", propertyNote(4, 0xffffffff, 5, join(gnu, value)...), 0, false},
		{"a long property", propertyNote(4, 16, 5, join(gnu, value[:4], []byte{9}, value[5:])...), 0, false},
		{"a cut property", propertyNote(4, 4, 5, join(gnu, value[:4])...), 0, false},
	} {
		l := elfreloc.Encoding{Class: elf.ELFCLASS64, Order: binary.LittleEndian}
		if bits, ok := featureBits(l, c.notes, property); bits != c.bits || ok != c.ok {
			t.Errorf("%s: %#x, %v", c.name, bits, ok)
		}
	}
}

// TestCommonPromises adds random objects to several parts, and compares what these have in common,
// once they are merged, with the promises that the objects were made with.
func TestCommonPromises(t *testing.T) {
	like := objects.Open(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	m := machines.Lookup(like.ABI())
	supported := m.Traits().Features.Supported
	promising := map[uint32]*elfreloc.Object{}
	for bits := range uint32(8) {
		a := expect.Value(NewObject(expect.Value(like.Empty(""))(t), m, "f"))(t)
		(&LinkNotes{machine: m, bits: bits}).Write(a, 8)
		promising[bits] = objects.Open(t, expect.Value(a.Bytes())(t))
	}
	r := rand.New(rand.NewPCG(1, 4))
	for range 500 {
		parts, want := make([]LinkNotes, 1+r.IntN(3)), LinkNotes{}
		for i := range parts {
			for range r.IntN(3) {
				bits := []uint32{3, uint32(r.IntN(8))}[r.IntN(2)]
				expect.OK(t, parts[i].Add(promising[bits], m))
				expect.OK(t, parts[i].Add(promising[0], nil))
				if want.objects++; want.objects == 1 {
					want.bits = supported
				}
				want.bits &= bits
				want.any |= bits
			}
		}
		var got LinkNotes
		for i := range parts {
			got.merge(&parts[i])
		}
		expect.Equal(t, []uint32{uint32(want.objects), want.bits, want.any}, []uint32{uint32(got.objects), got.bits, got.any})
		expect.Equal(t, want.bits&m.Traits().Features.LandingPad != 0, got.landingPad(), "a landing pad")
		expect.Equal(t, want.any|supported, got.OfData(m).bits, "promises of data")
	}
}
