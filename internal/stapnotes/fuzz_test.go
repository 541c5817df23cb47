package stapnotes_test

import (
	"bytes"
	"errors"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/stapnotes"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/seeds"
	"sdtconvert/internal/testkit/toolchains"
)

// FuzzNotes reads the notes of any object or image. Notes come of the file's bytes,
// and every fault names the file.
func FuzzNotes(f *testing.F) {
	seeds.Add(f)
	for _, m := range toolchains.Machines {
		objects := compiled(f, m, toolchains.GCC)
		for _, path := range append(objects, linked(f, m, m.Linker("bfd"), "-pie", objects)) {
			f.Add(disk.Read(f, path))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "fuzz")
		if err != nil {
			return
		}
		im, err := image.Open(o, machines.Lookup(o.ABI()))
		if err != nil {
			return
		}
		notes, faults, err := stapnotes.Read(o, im)
		if err != nil {
			faults = append(faults, err)
		}
		for _, fault := range faults {
			if e, ok := errors.AsType[*elfreloc.Error](fault); !ok || e.File != "fuzz" {
				t.Fatalf("an error that does not name its file: %v", fault)
			}
		}
		size := 0
		for _, n := range notes {
			size += len(n.Provider) + len(n.Name) + len(n.Args) + 3
		}
		if size > len(data) {
			t.Fatalf("strings of %d bytes in a file of %d bytes", size, len(data))
		}
	})
}
