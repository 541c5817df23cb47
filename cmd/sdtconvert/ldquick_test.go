package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// checkQuick compares what is found out of a file at a glance with what reading it as
// an object says. It reports whether the glance was enough.
func checkQuick(t *testing.T, path string) bool {
	t.Helper()
	names := patch.DefaultNames()
	needles := append(names.Needles(), []byte("sdt_"))
	f, err := input.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	typ, sure := withoutNames(f, needles)
	if !sure {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), path)
	if err != nil {
		return true // a linker is to complain
	}
	if o.Type != typ {
		t.Errorf("%s: is of type %v, and not %v", path, o.Type, typ)
	}
	if o.Type.String() != "ET_REL" {
		return true
	}
	if found, err := o.NamesContain(needles); err == nil && found {
		t.Errorf("%s: holds names of probes", path)
	}
	if late, err := input.FindLateCode(o, names); err == nil && late.Compiler != "" {
		t.Errorf("%s: holds code of %s", path, late.Compiler)
	}
	return true
}

func TestQuick(t *testing.T) {
	enough := 0
	for _, path := range corpus(t) {
		if checkQuick(t, path) {
			enough++
		}
	}
	// The test objects are about probes, all but a few.
	folder := t.TempDir()
	for _, file := range objects.Foreign(t, 1<<20) {
		path := filepath.Join(folder, "foreign.o")
		if err := os.WriteFile(path, file.Data, 0o666); err != nil {
			t.Fatal(err)
		}
		if checkQuick(t, path) {
			enough++
		}
	}
	if enough == 0 {
		t.Error("a glance was never enough")
	}
}

func FuzzQuick(f *testing.F) {
	for _, file := range append(objects.Committed(f, 8<<10), objects.Foreign(f, 8<<10)...) {
		f.Add(file.Data)
	}
	path := filepath.Join(f.TempDir(), "fuzz.o")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		checkQuick(t, path)
	})
}
