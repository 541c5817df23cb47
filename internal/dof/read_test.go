package dof

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/kerneldof"
	"sdtconvert/linkerset"
)

// fake is an image of which nothing but the words of a section is known.
type fake struct {
	image.Image
	addr uint64
	data []byte
}

func (f fake) Encoding() elfreloc.Encoding {
	return elfreloc.Encoding{Class: 2, Order: binary.LittleEndian}
}

func (f fake) Word(a image.Addr) (image.Ref, error) {
	return image.Ref{Addr: image.Addr{Offset: binary.LittleEndian.Uint64(f.data[a.Offset-f.addr:])}}, nil
}

// sample returns what is written of two providers, linked to addresses from 0x1000 on.
func sample(t testing.TB, r Relocation, addr uint64) []byte {
	t.Helper()
	data, fixups, err := Write(Format{Order: binary.LittleEndian, LP64: true, Relocation: r}, []Provider{
		{Name: "shop", Probes: []Probe{
			{
				Name: "order-placed", Native: []string{"int", "char *"}, Translated: []string{"char *", "long", "int"}, Mapping: []byte{1, 0, 0},
				Functions: []Function{
					{Name: "place", Symbol: "place", Offsets: []uint32{4, 20}, Enabled: []uint32{3}},
					{Name: "replace", Symbol: "$dtrace1.replace", Offsets: []uint32{8}},
				},
			},
			{Name: "closed", Functions: []Function{{Name: "place", Symbol: "place", Offsets: []uint32{30}}}},
		}},
		{Name: "bank_", Probes: []Probe{{Name: "paid", Functions: []Function{{Name: "pay", Symbol: "pay", Enabled: []uint32{5}}}}}},
	})
	expect.OK(t, err)
	for _, f := range fixups {
		to := map[string]uint64{"place": 0x1000, "$dtrace1.replace": 0x2000, "pay": 0x3000}[f.Symbol]
		if r == Relative {
			to -= addr + f.Offset
		}
		binary.LittleEndian.PutUint64(data[f.Offset:], to)
	}
	return data
}

func site(k arch.Kind, addr uint64) Site { return Site{image.Addr{Offset: addr}, k} }

func TestRead(t *testing.T) {
	args := []linkerset.Argument{{Index: 0, Native: "char *"}, {Index: 1, Native: "int", Translated: "long"}, {Index: 2, Native: "int"}}
	none := []linkerset.Argument{}
	want := []FunctionProbe{
		{"shop", "place", "order-placed", args, []Site{site(arch.Probe, 0x1004), site(arch.Probe, 0x1014), site(arch.Enabled, 0x1003)}},
		{"shop", "replace", "order-placed", args, []Site{site(arch.Probe, 0x2008)}},
		{"shop", "place", "closed", none, []Site{site(arch.Probe, 0x101e)}},
		{"bank_", "pay", "paid", none, []Site{site(arch.Enabled, 0x3005)}},
	}
	const addr = 0x5000
	for _, r := range []Relocation{SetX, Relative} {
		// A linker puts those of several objects one behind the other.
		first := sample(t, r, addr)
		data := append(first, make([]byte, -len(first)&7)...)
		data = append(data, sample(t, r, addr+uint64(len(data)))...)
		got, _, err := readFiles(fake{addr: addr, data: data}, addr, data)
		expect.OK(t, err)
		expect.Equal(t, append(want, want...), got)
	}
}

func TestFaults(t *testing.T) {
	whole := sample(t, SetX, 0)
	put32 := func(at int, v uint32) func(b []byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	for want, damage := range map[string]func(b []byte) []byte{
		"holds what is not DTrace's object format": func(b []byte) []byte { return append(b, "ELF"...) },
		"bytes by its header, and there are":       func(b []byte) []byte { return b[:len(b)-1] },
		"headers of sections of 31 bytes":          put32(24, 31),
		"has 1000000 headers of sections":          put32(28, 1000000),
		"behind its end":                           put32(headerSize+24, 1<<30),
		"that does not end":                        func(b []byte) []byte { b[len(b)-1] = 'x'; return b },
		"names section 1, which is not of type 16": func(b []byte) []byte { b[headerSize+sectionHeaderSize] = sectStrtab; return b },
	} {
		data := damage(append([]byte(nil), whole...))
		_, _, err := readFiles(fake{data: data}, 0, data)
		expect.Error(t, err, want)
	}
}

// Whatever the bytes are, what comes of them is bounded by their number.
func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	whole := sample(t, Relative, 0)
	good := 0
	for range 100_000 {
		data := append([]byte(nil), whole...)
		for range 1 + r.IntN(4) {
			data[r.IntN(len(data))] = [...]byte{0, 1, 2, 0x7f, 0x80, 0xff, byte(r.Uint32())}[r.IntN(7)]
		}
		probes, _, err := readFiles(fake{data: data}, 0, data)
		if err == nil {
			good++
		}
		text, sites := 0, 0
		for _, p := range probes {
			text, sites = text+len(p.Provider)+len(p.Function)+len(p.Name), sites+len(p.Sites)
		}
		if text > 4*len(data) || sites > len(data) {
			t.Fatalf("%d bytes have %d of text and %d sites: %v", len(data), text, sites, err)
		}
	}
	if good < 1000 {
		t.Errorf("%d were read to the end", good)
	}
}

// A file whose tables all name the same bytes is not read for ever.
func TestTablesThatOverlap(t *testing.T) {
	data := sample(t, SetX, 0)
	n := len(data)
	sections := uint64(binary.LittleEndian.Uint32(data[28:]))
	headers := make([]byte, 0, int(sections)*sectionHeaderSize)
	headers = append(headers, data[headerSize:][:sections*sectionHeaderSize]...)
	for i := range sections { // each provider a thousand times
		s := headers[i*sectionHeaderSize:][:sectionHeaderSize]
		if binary.LittleEndian.Uint32(s) == sectProvider {
			for range 1000 {
				headers = append(headers, s...)
			}
		}
	}
	data = append(data, headers...)
	binary.LittleEndian.PutUint32(data[28:], uint32(len(headers)/sectionHeaderSize))
	binary.LittleEndian.PutUint64(data[32:], uint64(n))
	binary.LittleEndian.PutUint64(data[48:], uint64(len(data)))
	if probes, _, err := readFiles(fake{data: data}, 0, data); err != errOverlap || len(probes) > len(data) {
		t.Errorf("%d probes, %v", len(probes), err)
	}
}

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
