// Package seeds gives the fuzz tests of what reads objects and images something to
// begin with.
package seeds

import (
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
)

// Few prepares a fuzz test for inputs of kilobytes, and reports whether this process wants seeds: only the one that hands them out does, not
// its workers. Without a limit, the smallest form of each input that is new is searched for a minute, in which nothing else runs.
func Few(f *testing.F) bool {
	f.Helper()
	const minimize, worker = "test.fuzzminimizetime", "test.fuzzworker"
	isSet := false
	flag.Visit(func(given *flag.Flag) { isSet = isSet || given.Name == minimize })
	if !isSet {
		if err := flag.Set(minimize, "10x"); err != nil {
			f.Fatal(err)
		}
	}
	return flag.Lookup(worker).Value.String() != "true"
}

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
	if !Few(f) {
		return
	}
	const limit = 4 << 10
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
