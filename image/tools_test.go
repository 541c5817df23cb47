package image_test

import (
	"path/filepath"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func source(t testing.TB, name string) string {
	t.Helper()
	return expect.Value(filepath.Abs(filepath.Join("testdata", name)))(t)
}

func open(t testing.TB, path string) image.Image {
	t.Helper()
	return expect.Value(openErr(tools.OpenELF(t, path)))(t)
}

func openErr(o *elfreloc.Object) (image.Image, error) {
	return image.Open(o, machines.Lookup(o.ABI()))
}

// library builds libwords.so, in a directory of its own.
func library(t *testing.T, flags ...string) string {
	t.Helper()
	tools.Need(t, "gcc")
	path := filepath.Join(t.TempDir(), "libwords.so")
	tools.Output(t, "gcc", append([]string{"-O", "-fPIC", "-shared", "-o", path, source(t, "words.c"), "-Wl,--build-id"}, flags...)...)
	return path
}
