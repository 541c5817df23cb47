// Package seeds gives the fuzz tests of what reads objects and images something to
// begin with.
package seeds

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
)

// share is of how many objects one is a seed. A run of whole products has all.
func share(f *testing.F) int {
	f.Helper()
	switch {
	case product.All():
		return 1
	case testing.Short():
		return 20
	}
	return 4
}

// Add adds the committed objects that are small, which fuzz faster, before and
// after their conversion, and as images.
func Add(f *testing.F) {
	f.Helper()
	const limit = 16 << 10
	every := share(f)
	for i, file := range objects.Committed(f, limit) {
		if i%every != 0 {
			continue
		}
		f.Add(file.Data)
		if after, ok := converted.Object(f, file.Data); ok {
			f.Add(after)
			addImages(f, after)
		}
		addImages(f, file.Data)
	}
}

// addImages adds what a linker makes of an object, where there is one for it.
func addImages(f *testing.F, object []byte) {
	f.Helper()
	directory := f.TempDir()
	in, out := filepath.Join(directory, "in.o"), filepath.Join(directory, "out")
	disk.Write(f, in, object)
	for _, mode := range []string{"-no-pie", "-pie", "-shared"} {
		cmd := exec.Command("ld", mode, "--unresolved-symbols=ignore-all", "--entry=0", "-z", "noseparate-code", "-o", out, in)
		if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
			return
		} else if err != nil {
			continue // of another machine
		}
		f.Add(disk.Read(f, out))
	}
}
