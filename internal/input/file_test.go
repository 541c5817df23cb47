package input_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/archives"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// numbered makes bytes that are not the same anywhere near each other.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	disk.Write(t, path, data)
	return path
}

func open(t testing.TB, path string) *input.File {
	t.Helper()
	f := expect.Value(input.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestSourceReadsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 200 << 10} {
		data := numbered(size)
		f := open(t, write(t, path, data))
		expect.Equal(t, int64(size), f.Size(), "%d bytes", size)
		src := f.Source()
		for _, prepare := range []func(){func() {}, func() { expect.Value(src.Type())(t) }, src.Load} { // reads, and keeps
			prepare()
			for _, off := range []int{0, 1, size / 2, size - 100, size - 1} {
				if off < 0 || off >= size {
					continue
				}
				b := make([]byte, 300)
				n, err := src.ReadAt(b, int64(off))
				if want := data[off:min(size, off+len(b))]; !bytes.Equal(b[:n], want) || (err == io.EOF) != (n < len(b)) {
					t.Fatalf("at %d of %d: %d bytes, %v", off, size, n, err)
				}
			}
		}
		expect.OK(t, f.CheckUnchanged())
		expect.OK(t, f.Close())
		if _, err := f.Source().ReadAt(make([]byte, 1), 0); size > 0 && !errors.Is(err, os.ErrClosed) {
			t.Errorf("%d bytes, closed: %v", size, err)
		}
	}
}

// changes are what may happen to a file that is open.
var changes = map[string]func(t *testing.T, path string){
	"shorter": func(t *testing.T, path string) {
		expect.OK(t, os.Truncate(path, 100<<10))
	},
	"longer": func(t *testing.T, path string) {
		expect.OK(t, os.Truncate(path, 300<<10))
	},
	"another": func(t *testing.T, path string) {
		write(t, path+".new", numbered(200<<10))
		expect.OK(t, os.Rename(path+".new", path))
	},
	"of another time": func(t *testing.T, path string) {
		expect.OK(t, os.Chtimes(path, time.Time{}, time.Unix(1_000_000_000, 1)))
	},
}

func TestChangedFile(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "file"), numbered(200<<10))
			f := open(t, path)
			expect.OK(t, f.CheckUnchanged())
			change(t, path)
			err := f.CheckUnchanged()
			if want := "convert " + path + ": " + input.ErrChanged.Error(); !errors.Is(err, input.ErrChanged) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	path := write(t, filepath.Join(t.TempDir(), "file"), numbered(100))
	f := open(t, path)
	expect.OK(t, os.Remove(path))
	if err := f.CheckUnchanged(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A file that is cut off while it is open gives no bytes that it does not have.
func TestCutOffFile(t *testing.T) {
	data := numbered(200 << 10)
	path := write(t, filepath.Join(t.TempDir(), "file"), data)
	src := open(t, path).Source()
	changes["shorter"](t, path)
	if n, err := src.ReadAt(make([]byte, 100), 100<<10-50); n != 50 || err != io.EOF {
		t.Errorf("ReadAt: %d, %v", n, err)
	}
}

func wantNoFile(t *testing.T, path, why string) {
	t.Helper()
	f, err := input.Open(path)
	if err == nil {
		f.Close()
		t.Fatalf("%s is opened", path)
	}
	if want := "open " + path + ": " + why; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	wantNoFile(t, t.TempDir(), "is a directory")
	wantNoFile(t, os.DevNull, "is not a regular file")
	wantNoFile(t, filepath.Join(t.TempDir(), "none"), "no such file or directory")
}

// ident returns what the first bytes of a file say.
func ident(t *testing.T, data []byte) (input.Target, elf.Type, bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	disk.Write(t, path, data)
	f := expect.Value(input.Open(path))(t)
	defer f.Close()
	return f.Source().Ident()
}

func TestIdent(t *testing.T) {
	targets := map[input.Target]bool{}
	for _, file := range append(objects.Committed(t, 1<<20), objects.Foreign(t, 1<<20)...) {
		f, err := elf.NewFile(bytes.NewReader(file.Data))
		if err != nil {
			continue // made to be broken
		}
		want := input.Target{Class: f.Class, Data: f.Data, Machine: f.Machine}
		if target, typ, ok := ident(t, file.Data); !ok || target != want || typ != f.Type {
			t.Errorf("%s: %v of type %v, %v; want %v of type %v", file.Name, target, typ, ok, want, f.Type)
		}
		targets[want] = true
	}
	if len(targets) < 4 {
		t.Errorf("objects for %v alone", targets)
	}
}

func TestIdentOfOthers(t *testing.T) {
	whole := objects.Read(t, "calls.amd64-gcc12-O2.o")[:20]
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(whole)
		b[at] = to
		return b
	}
	if _, _, ok := ident(t, whole); !ok {
		t.Error("the first 20 bytes are not enough")
	}
	for what, data := range map[string][]byte{
		"nothing": nil, "text": []byte("INPUT(/lib/libc.so.6 and more)\n"), "too little": whole[:19], "no magic number": changed(0, 'E'),
		"no byte order": changed(elf.EI_DATA, 3), "another version": changed(elf.EI_VERSION, 2),
	} {
		if target, typ, ok := ident(t, data); ok || target != (input.Target{}) || typ != 0 {
			t.Errorf("%s: %v of type %v, %v", what, target, typ, ok)
		}
	}
}

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
	names, errs := linked(&input.Link{StubTexts: patch.DefaultNames().StubTexts()}, append(files, lib, filepath.Join(directory, "none"))...)
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

// TestScripts opens scripts that start programs, as libtool makes them.
func TestScripts(t *testing.T) {
	directory := t.TempDir()
	for _, path := range []string{"shop", "store", "run", ".libs/shop", ".libs/lt-store"} {
		path = filepath.Join(directory, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		disk.Write(t, path, "#! /bin/sh\n# shop - temporary wrapper script for .libs/shop\n")
	}
	for name, want := range map[string]string{
		"shop":  "is a script of libtool, which starts " + filepath.Join(directory, ".libs/shop") + "; give that file",
		"store": "is a script of libtool, which starts " + filepath.Join(directory, ".libs/lt-store") + "; give that file",
		"run":   "run: is a script; give the file of the program that it starts",
	} {
		f := expect.Value(input.Open(filepath.Join(directory, name)))(t)
		_, err := f.Source().Image()
		expect.Error(t, err, want)
		f.Close()
	}
}
