package machines_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
)

// extremes are offsets at the ends of numbers, where sums overflow.
var extremes = []uint64{0, 1, 2, 3, 7, 8, 1 << 31, 1<<32 - 1, 1 << 63, ^uint64(0) - 8, ^uint64(0) - 1, ^uint64(0)}

// survive has a machine look at bytes in every way, as if they were what they are not.
func survive(t testing.TB, m arch.Machine, code []byte, start, off uint64, typ uint32, addend int64) {
	t.Helper()
	text := arch.Text{Code: code, Start: start, Map: []arch.Mapping{{Offset: off, Encoding: arch.Encoding(typ)}}}
	relocs := []elfreloc.Relocation{{Offset: off, Type: typ, Addend: addend}}
	for _, relocs := range [][]elfreloc.Relocation{relocs, {relocs[0], relocs[0]}, {{Offset: off, Type: typ, Implicit: true}}} {
		site, err := m.Decode(text, relocs)
		if err != nil {
			continue
		}
		if off := site.Offset - start; off > uint64(len(code)) || uint64(len(site.Code)) > uint64(len(code))-off {
			t.Fatalf("% x at %#x, relocation %+v: a site of %d bytes at %#x", code, start, relocs, len(site.Code), site.Offset)
		}
		for k := range arch.Kinds {
			for _, env := range []arch.Context{{Text: text}, {Text: text, Armable: true}, {Text: text, SemaphoreBytes: 2}, {Text: text, SemaphoreBytes: 4, ReturnThunk: true}, {Text: text, ReturnThunk: true, Returns: relocs}, {ReturnThunk: true, Returns: relocs}} {
				change, err := m.Disable(site, k, env)
				if err == nil && (len(change.New) != len(site.Code) || change.RecordedOffset-site.Offset >= uint64(len(change.New))) {
					t.Fatalf("% x: the disabled form is % x with the record at %#x", site.Code, change.New, change.RecordedOffset)
				}
			}
		}
	}
	for k := range arch.Kinds {
		site, ok := m.Disabled(text, off, k)
		if ok && !slices.Equal(text.At(site.Offset, len(site.Code)), site.Code) {
			t.Fatalf("% x at %#x: taken for a site with % x at %#x", code, start, site.Code, site.Offset)
		}
	}
	if d, ok := m.(arch.DOFMachine); ok {
		surviveDOF(t, d, text, off)
	}
	m.Live(text, off)
	m.Branch(text, off)
	m.LoadedSemaphore(text, off)
	within := func(at, _ uint64) {
		if at-start >= uint64(len(code)) {
			t.Fatalf("% x at %#x: something is found at %#x", code, start, at)
		}
	}
	m.Branches(code, start, within)
	m.Slots(code, start, off, within)
	m.Disassemble(code, start)
	m.RelocName(typ)
	m.Traits().DataReloc(typ)
}

// surviveDOF is survive for what only some machines have.
func surviveDOF(t testing.TB, m arch.DOFMachine, text arch.Text, off uint64) {
	t.Helper()
	for _, find := range []func(arch.Text, uint64, arch.Kind) (arch.Site, bool){m.DisabledDOF, m.RecordedDOF} {
		for k := range arch.Kinds {
			site, ok := find(text, off, k)
			if ok && !slices.Equal(text.At(site.Offset, len(site.Code)), site.Code) {
				t.Fatalf("% x at %#x: taken for a site with % x at %#x", text.Code, text.Start, site.Code, site.Offset)
			}
		}
	}
}

func TestMachinesSurviveWhatTheyDoNotExpect(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		r := rand.New(rand.NewPCG(1, 2))
		var known [][]byte
		var types []uint32
		for _, s := range c.sites {
			known, types = append(known, s.code), append(types, s.relocs[0].Type)
			for _, d := range s.disabled {
				known = append(known, d.code)
			}
		}
		for range 20_000 {
			var code []byte
			for range r.IntN(3) {
				code = append(code, known[r.IntN(len(known))]...)
			}
			for range r.IntN(4) { // and some bytes of it changed
				if len(code) > 0 {
					code[r.IntN(len(code))] = byte(r.Uint32())
				}
			}
			code = code[:r.IntN(len(code)+1)]
			start := extremes[r.IntN(len(extremes))]
			typ := types[r.IntN(len(types))]
			if r.IntN(4) == 0 {
				typ = r.Uint32() >> r.IntN(32)
			}
			survive(t, m, code, start, start+uint64(r.IntN(12)), typ, int64(r.IntN(16)-8))
			survive(t, m, code, start, extremes[r.IntN(len(extremes))], typ, int64(r.Uint64()))
		}
	})
}

func FuzzMachines(f *testing.F) {
	for i, m := range machines.All() {
		for _, s := range readCases(f, m).sites {
			f.Add(i, s.code, uint64(0), s.relocs[0].Offset, s.relocs[0].Type, s.relocs[0].Addend)
		}
	}
	f.Fuzz(func(t *testing.T, machine int, code []byte, start, off uint64, typ uint32, addend int64) {
		if all := machines.All(); machine >= 0 && machine < len(all) && len(code) < 1<<16 {
			survive(t, all[machine], code, start, off, typ, addend)
		}
	})
}
