package convert

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/testkit/archives"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

func named(t testing.TB, name, object string) objects.File {
	t.Helper()
	return objects.File{Name: name, Data: objects.Read(t, object)}
}

// converter is one that works as the command does without flags.
func converter() *Converter {
	return New(Options{Patch: patch.Options{FixedLayout: true}, Jobs: 2}, &replace.Writer{})
}

// An archive that was cut off, or whose headers lie, is left as it is.
func TestBrokenArchivesAreLeftAlone(t *testing.T) {
	files := []objects.File{
		named(t, "calls.o", "calls.amd64-gcc12-O2.o"), {Name: "odd.txt", Data: []byte("odd")},
		named(t, "a_name_of_more_than_15.o", "forms.amd64-gcc12-as.o"),
	}
	whole := archives.Regular(files...)
	path := filepath.Join(t.TempDir(), "lib.a")
	check := func(what string, data []byte) {
		t.Helper()
		disk.Write(t, path, data)
		r := converter().File(path, path)
		if !bytes.Equal(disk.Read(t, path), data) {
			t.Fatalf("%s: the archive has changed", what)
		}
		if text := r.Messages.String(); !r.Failed || !strings.HasPrefix(text, "sdtconvert: "+path) || strings.Count(text, "\n") != 1 {
			t.Fatalf("%s: failed is %v, and the message %q", what, r.Failed, text)
		}
	}
	for n := 9; n < len(whole); n += 211 {
		check(fmt.Sprintf("%d bytes", n), whole[:n])
	}
	at := bytes.LastIndex(whole, []byte("calls.o/"))
	for _, size := range []string{"9999999999", "-1", "1", "0x10", "", "10 10"} {
		data := bytes.Clone(whole)
		copy(data[at+48:at+58], fmt.Sprintf("%-10s", size))
		check("size "+size, data)
	}
	for _, count := range []string{"\xff\xff\xff\xff", "\x00\x00\xff\xff", "\x00\x01\x00\x00"} {
		data := bytes.Clone(whole)
		copy(data[68:], count)
		check(fmt.Sprintf("%x symbols", count), data)
	}
}

// Thin archives with the same members may be converted at the same time.
func TestThinArchivesAtTheSameTime(t *testing.T) {
	directory := t.TempDir()
	object := objects.Read(t, "forms.amd64-gcc12-as.o")
	var files []objects.File
	for i := range 64 {
		files = append(files, objects.File{Name: fmt.Sprintf("%d.o", i), Data: object})
	}
	paths := make([]string, 4)
	thin := archives.Thin(files...)
	for i := range paths {
		paths[i] = filepath.Join(directory, fmt.Sprintf("%d.a", i))
		files = append(files, objects.File{Name: filepath.Base(paths[i]), Data: thin})
	}
	for _, f := range files {
		disk.Write(t, filepath.Join(directory, f.Name), f.Data)
	}
	c := converter()
	parallel.InOrder(len(paths), len(paths), func(i int) *Result { return c.File(paths[i], paths[i]) }, func(_ int, r *Result) {
		if r.Failed {
			t.Error(r.Messages.String())
		}
	})
	files = files[:64]
	size := int64(len(disk.Read(t, filepath.Join(directory, files[0].Name))))
	for _, path := range paths {
		data := disk.Read(t, path)
		a := expect.Value(archive.Open(bytes.NewReader(data), int64(len(data)), path))(t)
		members := 0
		for m, err := range a.Members() {
			expect.OK(t, err)
			if members++; m.Size != size {
				t.Errorf("%s: %s has %d bytes, want %d", path, m.Name, m.Size, size)
			}
		}
		expect.Equal(t, len(files), members)
	}
}

// FuzzArchive converts archives, in their place. Those that cannot be converted stay
// as they are, and so do those that were converted. A thin archive may name the files
// beside it.
func FuzzArchive(f *testing.F) {
	const limit = 4 << 10
	var small []objects.File
	for _, file := range objects.Committed(f, limit) {
		if strings.Contains(file.Name, "amd64-gcc12") {
			small = append(small, file)
		}
	}
	text := objects.File{Name: "odd.txt", Data: []byte("odd")}
	for i := range small {
		both := []objects.File{text, small[i], small[(i+1)%len(small)]}
		f.Add(archives.Regular(both...), byte(i))
	}
	beside := objects.File{Name: "beside.o", Data: objects.Read(f, "comdat.amd64-gcc12-O2.o")}
	f.Add(archives.Thin(beside, beside, objects.File{Name: "lib.a"}), byte(0))
	f.Add(archives.Thin(beside, objects.File{Name: "../beside.o"}), byte(0))
	directory := f.TempDir()
	path := filepath.Join(directory, "lib.a")
	f.Fuzz(func(t *testing.T, data []byte, flags byte) {
		if !bytes.HasPrefix(data, []byte("!<")) {
			return
		}
		for _, file := range []objects.File{{Name: "lib.a", Data: data}, beside} {
			disk.Write(t, filepath.Join(directory, file.Name), file.Data)
		}
		c := converter()
		c.Patch = fuzzOptions(flags)
		r := c.File(path, path)
		got := disk.Read(t, path)
		if r.Failed {
			if !bytes.Equal(got, data) {
				t.Fatalf("%s has changed the archive", r.Messages.String())
			}
			return
		}
		if r := c.File(path, path); r.Failed {
			t.Fatalf("the output cannot be converted again: %s", r.Messages.String())
		}
		if !bytes.Equal(disk.Read(t, path), got) {
			t.Fatal("a second conversion changes the output")
		}
		checkMembers(t, path)
	})
}

// checkMembers demands that no member that is an object has an undefined stub.
func checkMembers(t *testing.T, path string) {
	t.Helper()
	in := expect.Value(input.Open(path))(t)
	defer in.Close()
	expect.OK(t, in.Each(input.Options{FollowThin: false}, func(src *input.Source) error {
		opts := patch.Options{FixedLayout: true}
		s, err := src.Relocatable(opts.StubTexts())
		if err != nil {
			return nil
		}
		if _, err := s.Symbols(); err == nil { // those that name no stub are not read
			wantNoStubs(t, s, opts)
		}
		return nil
	}))
}
