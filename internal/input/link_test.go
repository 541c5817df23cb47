package input_test

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/archives"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// linked lists the objects of a link, and the errors.
func linked(l *input.Link, files ...string) (names, errs []string) {
	for _, file := range files {
		l.Each(file, func(o *input.Object) error {
			names = append(names, filepath.Base(o.Name))
			return nil
		}, func(err error) { errs = append(errs, err.Error()) })
	}
	return names, errs
}

func TestLinkIsForOneMachine(t *testing.T) {
	directory := t.TempDir()
	amd64 := named("amd64.o", objects.Read(t, "calls.amd64-gcc12-O2.o"))
	arm64 := named("arm64.o", objects.Read(t, "calls.arm64-gcc12-O2.o"))
	text := named("a.txt", []byte("text"))
	var files []string
	for _, f := range []objects.File{amd64, arm64, text} {
		files = append(files, write(t, filepath.Join(directory, f.Name), f.Data))
	}
	lib := write(t, filepath.Join(directory, "lib.a"), archives.Regular(text, amd64, arm64, amd64))
	names, errs := linked(&input.Link{Names: patch.DefaultNames()}, append(files, lib, filepath.Join(directory, "none"))...)
	wantLines(t, names, "amd64.o", "lib.a(amd64.o)", "lib.a(amd64.o)")
	wants := []string{"arm64.o: is for EM_AARCH64, ELFCLASS64, LittleEndian, and ", "a.txt: is text, and not an object", "lib.a(arm64.o): is for EM_AARCH64", "none: no such file"}
	if len(errs) != len(wants) {
		t.Fatalf("got %q", errs)
	}
	for i, want := range wants {
		expect.Contains(t, errs[i], want)
	}
}

// Files that are named twice are one, but for hard links.
func TestDistinct(t *testing.T) {
	directory := t.TempDir()
	at := func(name string) string { return filepath.Join(directory, name) }
	for _, name := range []string{"a", "b"} {
		write(t, at(name), []byte(name))
	}
	for link, to := range map[string]string{"c": "a", "d": "c", "e": "none", "sub": "."} {
		expect.OK(t, os.Symlink(to, at(link)))
	}
	expect.OK(t, os.Link(at("a"), at("hard")))
	expect.OK(t, os.MkdirAll(at("other/sub"), 0o777))
	write(t, at("other/a"), []byte("another"))
	expect.OK(t, os.Symlink("other/sub", at("link")))
	behind := directory + "/link/../a" // which is other/a
	given := []string{behind, at("other/a"), at("a"), at("b"), at("./a"), at("c"), at("d"), at("sub/b"), at("hard"), at("e"), at("e"), at("gone/x"), at("gone/x")}
	want := []string{behind, at("a"), at("b"), at("hard"), at("e"), at("gone/x")}
	wantLines(t, expect.Value(input.Distinct(given))(t), want...)
	for other, same := range map[string]bool{"a": true, "c": true, "sub/a": true, "b": false, "hard": false, "gone": false} {
		expect.Equal(t, same, expect.Value(input.SamePath(at("a"), at(other)))(t), "a and %s", other)
	}
}
