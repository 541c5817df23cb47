package convert

import (
	"testing"

	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// FuzzConvert converts objects in memory, with the flags that a byte stands
// for. The file's content may lead to an error, never to a panic or to an
// output that checkRun does not accept.
func FuzzConvert(f *testing.F) {
	const limit = 16 << 10 // small inputs fuzz faster
	for i, file := range append(objects.Committed(f, limit), objects.Foreign(f, limit)...) {
		f.Add(file.Data, byte(0))
		f.Add(file.Data, byte(i))
	}
	files := newScratch(f)
	f.Fuzz(func(t *testing.T, data []byte, flags byte) {
		opts := fuzzOptions(flags)
		run, err := files.convert(data, opts)
		if (run != nil) == (err != nil) {
			t.Fatalf("got %v and error %v", run, err)
		}
		if err == nil {
			files.checkRun(t, data, opts, run)
		}
	})
}

// fuzzOptions spreads the flags of convert over a byte.
func fuzzOptions(b byte) patch.Options {
	opts := patch.DefaultOptions()
	opts.Layout.Format = linkerset.Format(b % 3)
	b /= 3
	if b&1 != 0 {
		opts.Layout.Name = "my_set"
	}
	opts.NoRecords = b&2 != 0
	opts.DropRelocations = b&4 != 0
	if b&8 != 0 {
		opts.ReturnThunk.Symbol = "__x86_return_thunk"
	}
	if b&16 != 0 {
		opts.Names.Symbols = []string{"use", "outside"}
	}
	opts.Stapsdt = b&32 != 0
	opts.DTrace = b&64 != 0
	return opts
}
