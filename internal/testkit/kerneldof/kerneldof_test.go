package kerneldof_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"sdtconvert/internal/dof"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/kerneldof"
)

// good returns a file that kernels take.
func good(t testing.TB) []byte { return file(t, "p", 7) }

// file returns one with a provider and the offsets of a probe in a function.
func file(t testing.TB, provider string, offsets ...uint32) []byte {
	t.Helper()
	data, _, err := dof.Write(dof.Format{Order: binary.LittleEndian, LP64: true, Relocation: dof.Relative}, []dof.Provider{{
		Name: provider, Probes: []dof.Probe{{
			Name: "x", Native: []string{"int"}, Translated: []string{"int"}, Mapping: []byte{0},
			Functions: []dof.Function{{Name: "f", Symbol: "f", Offsets: offsets, Enabled: []uint32{9}}},
		}},
	}})
	expect.OK(t, err)
	return data
}

// Sections of good, in their order, and where the header of each is.
func header(i int) int { return 64 + 32*i }

// Each rule refuses something.
func TestRefused(t *testing.T) {
	at := func(data []byte, section int) int { return int(binary.LittleEndian.Uint64(data[header(section)+16:])) }
	const probes, args, provider, relocs, relhdr = 1, 2, 5, 6, 7
	for want, spoil := range map[string]func(b []byte){
		"no DOF":                          func(b []byte) { b[0] = 0 },
		"encoding 3":                      func(b []byte) { b[5] = 3 },
		"identification":                  func(b []byte) { b[6] = 3 },
		"flags 0x1":                       func(b []byte) { b[16] = 1 },
		"255 sections":                    func(b []byte) { b[28] = 255 },
		"strings without end":             func(b []byte) { b[len(b)-1] = 'x' },
		"type 99":                         func(b []byte) { b[header(args)] = 99 },
		"is not loaded":                   func(b []byte) { b[header(args)+8] = 0 },
		"aligned to 3":                    func(b []byte) { b[header(args)+4] = 3 },
		"bytes at":                        func(b []byte) { b[header(args)+31] = 1 },
		"a provider of 40 bytes":          func(b []byte) { b[header(provider)+24] = 40 },
		"section 9 is not of type":        func(b []byte) { b[at(b, provider)+4] = 9 },
		"tests of 4 bytes in version 1":   func(b []byte) { b[6] = 1 },
		"entries of 40":                   func(b []byte) { b[header(probes)+12] = 40 },
		`provider "": <nil>`:              func(b []byte) { b[at(b, provider)+16] = 0 },
		"attributes":                      func(b []byte) { b[at(b, provider)+23] = 8 },
		"function":                        func(b []byte) { b[at(b, probes)+9] = 9 },
		`probe "": <nil>`:                 func(b []byte) { b[at(b, probes)+12] = 0 },
		"string at":                       func(b []byte) { b[at(b, probes)+17] = 9 },
		"1 arguments at 1":                func(b []byte) { b[at(b, probes)+24] = 1 },
		"argument 0 of 0":                 func(b []byte) { b[at(b, probes)+32] = 0 },
		"1 offsets at 1":                  func(b []byte) { b[at(b, probes)+28] = 1 },
		"has no site":                     func(b []byte) { b[at(b, probes)+34], b[at(b, probes)+40] = 0, 0 },
		"tests at 0 of none":              func(b []byte) { b[at(b, provider)+40] = 0 },
		"relocation of type 3":            func(b []byte) { b[at(b, relocs)+4] = 3 },
		"relocation of type 2 at 4":       func(b []byte) { b[at(b, relocs)+8] = 4 },
		"relocation of no probe":          func(b []byte) { b[at(b, relocs)+8] = 8 },
		"relocations of 8 bytes":          func(b []byte) { b[header(relhdr)+24] = 8 },
		"relocations of 25 bytes":         func(b []byte) { b[header(relocs)+12] = 25 },
		"section 3 is not of type 16":     func(b []byte) { b[at(b, relhdr)+8] = 3 },
		"section 0 is not of type 10 and": func(b []byte) { b[at(b, relhdr)+4] = 0 },
	} {
		data := good(t)
		expect.Value(kerneldof.Read(data, kerneldof.FreeBSD))(t)
		spoil(data)
		expect.Contains(t, expect.Failure(kerneldof.Read(data, kerneldof.FreeBSD)), want)
	}
}

// fasttrap makes nothing of some files that the rest of the kernel takes.
func TestNoProbes(t *testing.T) {
	longest := strings.Repeat("n", 53)
	expect.Value(kerneldof.Read(file(t, longest, 8, 7), kerneldof.FreeBSD))(t)
	for want, data := range map[string][]byte{
		"fasttrap makes no provider":                    file(t, longest+"n", 7),
		`fasttrap makes no provider "pid"`:              file(t, "pid", 7),
		"fasttrap makes no probe x in f: a site is the": file(t, "p", 7, 7),
	} {
		expect.Contains(t, expect.Failure(kerneldof.Read(data, kerneldof.FreeBSD)), want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := kerneldof.Read(data, kerneldof.FreeBSD)
		if (file == nil) != (err != nil) {
			t.Fatal(file, err)
		}
	})
}
