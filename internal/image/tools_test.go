package image_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/image"
)

// need skips a test without which a tool is missing. In CI every tool is there,
// and its absence is a fault: a test that never runs protects nothing.
func need(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("no " + tool)
			}
			t.Skip("no " + tool)
		}
	}
}

// run runs a command, which has to succeed within a minute.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func source(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// driver is the folder in which a compiler finds the linker as ld.
func driver(t testing.TB, linker string) string {
	t.Helper()
	path, err := exec.LookPath(linker)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(path, filepath.Join(folder, "ld")); err != nil {
		t.Fatal(err)
	}
	return folder + "/"
}

func openFile(t testing.TB, path string) *elfreloc.Object {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	o, err := elfreloc.Open(f, info.Size(), path)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func open(t testing.TB, path string) image.Image {
	t.Helper()
	im, err := openErr(openFile(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func openErr(o *elfreloc.Object) (image.Image, error) {
	return image.Open(o, machines.Lookup(o.Machine, o.Layout.Class))
}

// library builds libwords.so, in a folder of its own.
func library(t *testing.T, flags ...string) string {
	t.Helper()
	need(t, "gcc")
	path := filepath.Join(t.TempDir(), "libwords.so")
	run(t, "gcc", append([]string{"-O", "-fPIC", "-shared", "-o", path, source(t, "words.c"), "-Wl,--build-id"}, flags...)...)
	return path
}
