package resolve_test

import (
	"fmt"
	"slices"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/failing"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/resolve"
)

// lookAll lists the functions of interesting places of a file, and counts warnings.
func lookAll(in *failing.File) (functions []string, warnings int, err error) {
	o, err := elfreloc.Open(in, in.Size(), "a")
	if err != nil {
		return nil, 0, err
	}
	table, err := resolve.New(o, resolve.Options{DebugRoots: []string{}, Warn: func(error) { warnings++ }})
	if err != nil {
		return nil, warnings, err
	}
	for _, place := range interesting(o) {
		f, ok := table.Lookup(place.section, place.off)
		functions = append(functions, fmt.Sprint(place, f, ok, table.SourceFile(f)))
	}
	return functions, warnings, nil
}

// TestEachReadMayFail lets each read fail in turn. Then there is an error, a warning, or what was to
// be read is not needed.
func TestEachReadMayFail(t *testing.T) {
	files := append(objects.ELF(t, "calls.amd64-gcc12-O2", "calls.ppc64", "existing.thumb"), objects.Foreign(t, 16<<10)...)
	images := 0
	for _, file := range files {
		in := failing.New(file.Data, 0)
		want, warnings, refused := lookAll(in)
		if refused != nil {
			continue // an ELF file that is broken
		}
		images++
		for n := 1; n <= in.Reads; n++ {
			got, warned, err := lookAll(failing.New(file.Data, n))
			if err == nil && warned == warnings && !slices.Equal(want, got) {
				t.Errorf("%s: read %d of %d fails, and nothing tells so", file.Name, n, in.Reads)
			}
		}
	}
	expect.Equal(t, true, images > 10, "%d files", images)
}
