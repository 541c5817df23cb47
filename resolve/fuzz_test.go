package resolve_test

import (
	"bytes"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/resolve"
)

// Whatever a file claims, what is found holds the address that was asked for.
func FuzzTable(f *testing.F) {
	for _, file := range append(objects.Committed(f, 4<<10), objects.Foreign(f, 16<<10)...) {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "a")
		if err != nil {
			return
		}
		table, err := resolve.New(o, resolve.Options{DebugRoots: []string{}, Warn: func(error) {}})
		if err != nil {
			return
		}
		for _, place := range interesting(o) {
			f, ok := table.Lookup(place.section, place.off)
			if !ok {
				continue
			}
			if f.Section != place.section || f.Start > place.off || f.Size > 0 && place.off-f.Start >= f.Size || f.Name == "" != (f.Raw == "") {
				t.Errorf("%d+%#x is in %+v", place.section, place.off, f)
			}
			// A symbol may hold the start of what an unwind table describes.
			if start, ok := table.Lookup(f.Section, f.Start); !ok || start.Start != f.Start && start.From == f.From {
				t.Errorf("%d+%#x is in %+v, which starts in %+v", place.section, place.off, f, start)
			}
			table.SourceFile(f)
		}
	})
}

type place struct {
	section int
	off     uint64
}

// interesting are places around everything that a file names.
func interesting(o *elfreloc.Object) (places []place) {
	add := func(section int, off uint64) {
		places = append(places, place{section, off - 1}, place{section, off}, place{section, off + 1}, place{0, off})
	}
	for i := range o.Sections {
		s := &o.Sections[i]
		for _, off := range []uint64{0, s.Size, s.Addr, s.Addr + s.Size, s.Addr + s.Size/2} {
			add(i, off)
		}
	}
	if syms, err := o.Symbols(); err == nil {
		for i := range min(syms.Len(), 1000) {
			s := syms.At(i)
			add(s.Section, s.Value)
			add(s.Section, s.Value+s.Size)
		}
	}
	return places
}
