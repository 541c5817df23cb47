package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
)

// FuzzList lists objects and images, with their lines and inlined functions. What
// is in the file may lead to errors, never to a panic or to a site without a
// place.
func FuzzList(f *testing.F) {
	files := objects.NewScratch(f)
	addSmall(f)
	s := &listSettings{
		lookup: lookup{source: true, inlines: true, demangle: true}, prefix: "sdt_", layouts: linkerset.Layout{}.All(),
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := files.Write(data); err != nil {
			t.Fatal(err)
		}
		s.listFile(files.Path(), func(error) {}, func(out *listing) { checkListing(t, out) })
	})
}

// addSmall adds the committed objects that are small, which fuzz faster, before and
// after their conversion, and as images.
func addSmall(f *testing.F) {
	const limit = 16 << 10
	for _, file := range objects.Committed(f, limit) {
		f.Add(file.Data)
		if after, ok := converted.Object(f, file.Data); ok {
			f.Add(after)
			addImages(f, after)
		}
		addImages(f, file.Data)
	}
}

func checkListing(t *testing.T, out *listing) {
	t.Helper()
	if len(out.Errors)+len(out.Probes) == 0 {
		t.Fatal("neither a probe nor an error")
	}
	for _, p := range out.Probes {
		if len(p.Sites) == 0 || p.Function == "" {
			t.Fatalf("a probe without sites, or without a function: %+v", p)
		}
		for _, site := range p.Sites {
			if site.Address == "" || site.Kind == "" || site.State == "" {
				t.Fatalf("%s: %+v", p.description(), site)
			}
		}
	}
}

// addImages adds what a linker makes of an object, where there is one for it.
func addImages(f *testing.F, object []byte) {
	f.Helper()
	folder := f.TempDir()
	in, out := filepath.Join(folder, "in.o"), filepath.Join(folder, "out")
	if err := os.WriteFile(in, object, 0o666); err != nil {
		f.Fatal(err)
	}
	for _, mode := range []string{"-no-pie", "-pie", "-shared"} {
		cmd := exec.Command("ld", mode, "--unresolved-symbols=ignore-all", "--entry=0", "-z", "noseparate-code", "-o", out, in)
		if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
			return
		} else if err != nil {
			continue // of another machine
		}
		data, err := os.ReadFile(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}
