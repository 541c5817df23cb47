package image_test

import (
	"bytes"
	"errors"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/objects"
)

// FuzzLinked reads all that records are read through of any ELF file. Each
// method gives a result or an error that names the file, and what is an array
// can be read.
func FuzzLinked(f *testing.F) {
	f.Add(newTiny().bytes(), uint64(tinyWords))
	for _, file := range objects.Foreign(f, 32<<10) {
		f.Add(file.Data, uint64(0x400000))
	}
	for _, file := range objects.Committed(f, 8<<10) {
		f.Add(file.Data, uint64(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, addr uint64) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "fuzz")
		if err != nil {
			return
		}
		im, err := openErr(o)
		if err != nil {
			checkError(t, err)
			return
		}
		readAt(t, im, image.Addr{Offset: addr})
		readAt(t, im, image.Addr{Section: int(addr % 16), Offset: addr >> 4})
		for _, name := range []string{"set", "sdt_instances_set", "sdt_instances_rel", ".data"} {
			all, err := im.Arrays(name)
			checkError(t, err)
			total := uint64(0)
			for _, r := range all {
				got, err := im.Bytes(r.Start, r.Size)
				if checkError(t, err); err == nil && uint64(len(got)) != r.Size {
					t.Fatalf("%d bytes of %+v", len(got), r)
				}
				if total += r.Size; total > uint64(len(data)) {
					t.Fatalf("arrays of %d bytes in a file of %d bytes", total, len(data))
				}
				for off := uint64(0); off < min(r.Size, 256); off += 4 {
					readAt(t, im, r.Start.Add(off))
				}
			}
		}
	})
}

// readAt calls every method for an address, and for what is referred to there.
func readAt(t *testing.T, im image.Image, a image.Addr) {
	t.Helper()
	im.Place(a)
	im.Executable(a)
	_, err := im.SymbolsAt(a)
	checkError(t, err)
	_, err = im.Distance(a)
	checkError(t, err)
	ref, err := im.Word(a)
	if checkError(t, err); err != nil || ref.Undefined {
		return
	}
	_, err = im.SymbolsAt(ref.Addr)
	checkError(t, err)
	_, err = im.Bytes(ref.Addr, 96)
	checkError(t, err)
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*elfreloc.Error](err); err != nil && (!ok || e.File != "fuzz") {
		t.Fatalf("an error that does not name its file: %v", err)
	}
}
