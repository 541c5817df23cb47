package linkerset_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/failing"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
)

// readAll lists what the records of an object say, what earlier conversions left, and what keeps
// records alive.
func readAll(in *failing.File, l linkerset.Layout) (all []string, err error) {
	add := func(v any) { all = append(all, fmt.Sprintf("%+v", v)) }
	o, err := elfreloc.Open(in, in.Size(), "a.o")
	if err != nil {
		return nil, err
	}
	m := machines.Lookup(o.ABI())
	im, err := image.Open(o, m)
	if err != nil {
		return nil, err
	}
	entries, faults, err := l.Read(im)
	if err != nil || len(faults) > 0 {
		return nil, fmt.Errorf("%v %w", faults, err)
	}
	probes := linkerset.NewProbes(im, "sdt_")
	for _, e := range entries {
		probe, err := probes.Lookup(e.Probe)
		if err != nil {
			return nil, err
		}
		ids, err := probes.IDs(e.Probe)
		if err != nil {
			return nil, err
		}
		add([]any{e, probe, ids})
	}
	set, err := probes.Set()
	if err != nil {
		return nil, err
	}
	found, err := l.CheckEarlier(o, m)
	if err != nil {
		return nil, err
	}
	symbol, err := l.ProbeSymbol(o)
	if err != nil {
		return nil, err
	}
	anchored, err := linkerset.AnchoredSections(o, m)
	add([]any{set, found, symbol, anchored})
	return all, err
}

// TestEachReadMayFail lets each read fail in turn. Then there is an error, or what was to be read is
// not needed.
func TestEachReadMayFail(t *testing.T) {
	for _, name := range append(objects.OfEachMachine, "locals.amd64-gcc12-O2.o", "thunk.amd64-gcc12-tails.o") {
		for _, l := range everyLayout(t) {
			after, plan := convert(t, objects.Read(t, name), l, false)
			if plan == nil {
				continue
			}
			in := failing.New(after, 0)
			want, err := readAll(in, l)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for n := 1; n <= in.Reads; n++ {
				got, err := readAll(failing.New(after, n), l)
				if err == nil && !cmp.Equal(want, got) {
					t.Errorf("%s, %v: read %d of %d fails, and nothing tells so", name, l, n, in.Reads)
				}
			}
		}
	}
}
