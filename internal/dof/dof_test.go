package dof

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/kerneldof"
)

// shop has every part of the format: two providers, translated arguments, tests alone,
// probes in several functions, none without a name that is not its symbol.
func shop() []Provider {
	return []Provider{
		{
			Name: "shop", Attributes: [5]Attribute{{5, 6, 5}, {}, {1, 1, 0}, {7, 7, 4}, {0, 2, 3}},
			Probes: []Probe{
				{
					Name: "order-placed", Native: []string{"int", "char *"}, Translated: []string{"char *", "int"}, Mapping: []byte{1, 0},
					Functions: []Function{{Name: "f", Symbol: "$dtrace1.f", Offsets: []uint32{4, 12}}, {Name: "g", Symbol: "g", Offsets: []uint32{1}, Enabled: []uint32{0x12345}}},
				},
				{Name: "sent", Functions: []Function{{Name: "g", Symbol: "g", Enabled: []uint32{9}}}},
			},
		},
		{Name: "two", Probes: []Probe{{Name: "x", Native: []string{"int"}, Translated: []string{"int"}, Mapping: []byte{0}, Functions: []Function{{Name: "f", Symbol: "f", Offsets: []uint32{7}}}}}},
	}
}

// want is shop as a kernel reads it; the addresses are those that the fixups fill in.
func want(relative bool, fixups []Fixup, addr func(i int) uint64) []kerneldof.Probe {
	attributes := [5]uint32{5<<24 | 6<<16 | 5<<8, 0, 1<<24 | 1<<16, 7<<24 | 7<<16 | 4<<8, 2<<16 | 3<<8}
	order := kerneldof.Probe{Provider: "shop", Name: "order-placed", Attributes: attributes, Native: []string{"int", "char *"}, Translated: []string{"char *", "int"}, Mapping: []byte{1, 0}}
	all := []kerneldof.Probe{order, order, {Provider: "shop", Name: "sent", Attributes: attributes, Mapping: []byte{}}, {Provider: "two", Name: "x", Native: []string{"int"}, Translated: []string{"int"}, Mapping: []byte{0}}}
	all[0].Function, all[0].Symbol, all[0].Offsets = "f", "$dtrace1.f", []uint32{4, 12}
	all[1].Function, all[1].Symbol, all[1].Offsets, all[1].Enabled = "g", "g", []uint32{1}, []uint32{0x12345}
	all[2].Function, all[2].Symbol, all[2].Enabled = "g", "g", []uint32{9}
	all[3].Function, all[3].Symbol, all[3].Offsets = "f", "f", []uint32{7}
	for i := range all {
		all[i].Relative, all[i].Field, all[i].Addr = relative, fixups[i].Offset, addr(i)
	}
	return all
}

func TestKernelsReadIt(t *testing.T) {
	for _, f := range []Format{{binary.LittleEndian, true, SetX}, {binary.LittleEndian, true, Relative}, {binary.BigEndian, false, Relative}} {
		data, fixups, err := Write(f, shop())
		if err != nil || len(fixups) != 4 {
			t.Fatal(err, fixups)
		}
		for i, x := range fixups {
			f.Order.PutUint64(data[x.Offset:], uint64(i)<<33+5)
		}
		got := expect.Value(kerneldof.Read(data, kerneldof.FreeBSD))(t)
		diff := cmp.Diff(&kerneldof.File{Version: 2, LP64: f.LP64, Probes: want(f.Relocation == Relative, fixups, func(i int) uint64 { return uint64(i)<<33 + 5 })}, got)
		if diff != "" {
			t.Error(f, diff)
		}
		for i, x := range fixups {
			expect.Equal(t, x.Symbol, got.Probes[i].Symbol, "fixup %d", i)
		}
		if _, err := kerneldof.Read(data, kerneldof.Illumos); (err == nil) != (f.Relocation == SetX) {
			t.Errorf("%v on illumos: %v", f, err)
		}
	}
}

// A file without tests is of version 1, which old kernels read.
func TestVersion(t *testing.T) {
	p := shop()[1:]
	data, _, err := Write(Format{binary.LittleEndian, true, SetX}, p)
	expect.OK(t, err)
	expect.Equal(t, 1, expect.Value(kerneldof.Read(data, kerneldof.Illumos))(t).Version)
}

// The bytes themselves, so that nothing changes them unseen.
func TestBytes(t *testing.T) {
	data, _, err := Write(Format{binary.LittleEndian, true, Relative}, shop())
	expect.OK(t, err)
	path := filepath.Join("testdata", "shop.dof")
	if os.Getenv("UPDATE") != "" {
		expect.OK(t, errors.Join(os.MkdirAll("testdata", 0o777), os.WriteFile(path, data, 0o666)))
	}
	expect.Equal(t, disk.Read(t, path), data, "%s (UPDATE=1 writes it)", path)
}

func TestNoRoom(t *testing.T) {
	f := Format{binary.LittleEndian, true, SetX}
	for what, p := range map[string]Probe{
		"probe p has 256 arguments and 0 translated ones":   {Name: "p", Native: make([]string, 256)},
		"probe p has 0 arguments and 1 translated ones":     {Name: "p", Translated: []string{"int"}},
		"probe p has 65536 sites and 0 tests in function f": {Name: "p", Functions: []Function{{Name: "f", Offsets: make([]uint32, 1<<16)}}},
	} {
		if _, _, err := Write(f, []Provider{{Name: "x", Probes: []Probe{p}}}); err == nil || !strings.HasPrefix(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
}
