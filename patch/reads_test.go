package patch_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/failing"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// convertFrom returns what Convert makes of a file, nil where it leaves it as it is.
func convertFrom(in *failing.File, opts patch.Options) (result []byte, warnings int, err error) {
	o, err := elfreloc.Open(in, in.Size(), "a.o")
	if err != nil {
		return nil, 0, err
	}
	plan, err := patch.Examine(o, opts)
	if err != nil {
		return nil, 0, err
	}
	out, err := plan.Save()
	if err != nil || out == nil {
		return nil, 0, err
	}
	result, err = io.ReadAll(io.NewSectionReader(out.Reader(in), 0, out.Size))
	return result, len(plan.Warnings), err
}

// failEachRead converts an object as often as a conversion reads from it, and returns the result.
func failEachRead(t *testing.T, name string, data []byte, opts patch.Options) []byte {
	t.Helper()
	in := failing.New(data, 0)
	want, warnings, refused := convertFrom(in, opts)
	for n := 1; n <= in.Reads; n++ {
		got, warned, err := convertFrom(failing.New(data, n), opts)
		switch {
		case refused == nil && err != nil:
			if !errors.Is(err, failing.Err) {
				t.Errorf("%s: read %d of %d fails, which does not tell it: %v", name, n, in.Reads, err)
			}
		case refused != nil && err == nil:
			t.Errorf("%s: converted, as read %d of %d fails", name, n, in.Reads)
		case warned == warnings && !bytes.Equal(want, got):
			t.Errorf("%s: read %d of %d fails, and nothing tells so", name, n, in.Reads)
		}
	}
	return want
}

// TestEachReadMayFail lets each read of a conversion fail in turn. The conversion fails then, or
// says so in a warning, or does not need what was to be read.
func TestEachReadMayFail(t *testing.T) {
	names := slices.Concat(objects.OfEachMachine, []string{
		"gotload.amd64-gcc12-noplt.o", "large.amd64-gcc12-large.o", "locals.amd64-gcc12-O2.o", "flow.amd64-gcc12-far.o",
		"thunk.amd64-gcc12-tails.o", "returnsites.amd64-gcc12-as.o",
		"mixed.amd64-clang19-lld19.o", "nopsmerged.amd64-gcc12-bfd.o", "localtwice.amd64-gcc12-bfd.o",
	})
	for _, c := range []struct {
		name string
		opts patch.Options
	}{
		{"pairs", patch.Options{}},
		{"notes", patch.Options{Stapsdt: true, DTrace: true, Semaphores: patch.All}},
		{"freebsd", patch.Options{Layout: linkerset.Layout{Format: linkerset.FreeBSD, Name: "mine"}, DropRelocations: true}},
		{"dof", patch.Options{DOF: &patch.DOF{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range names {
				data := objects.Read(t, name)
				after := failEachRead(t, name, data, c.opts)
				if after != nil {
					failEachRead(t, name+" once more", after, c.opts)
				}
			}
		})
	}
}
