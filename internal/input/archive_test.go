package input_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/archives"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

func named(name string, data []byte) objects.File { return objects.File{Name: name, Data: data} }

// contents reads all of a source.
func contents(t testing.TB, src *input.Source) []byte {
	t.Helper()
	b := make([]byte, src.Size)
	if n, err := src.ReadAt(b, 0); n < len(b) {
		t.Fatalf("%s: %d of %d bytes: %v", src.Name, n, len(b), err)
	}
	return b
}

// openArchive opens an archive of these bytes.
func openArchive(t testing.TB, data []byte) *input.Archive {
	t.Helper()
	return expect.Value(open(t, write(t, filepath.Join(t.TempDir(), "lib.a"), data)).Archive(input.Options{}))(t)
}

// ofSizes makes members of these sizes, each with bytes of its own.
func ofSizes(sizes ...int) []objects.File {
	var files []objects.File
	for i, size := range sizes {
		data := numbered(size + i)[i:]
		files = append(files, named(fmt.Sprintf("%d.txt", i), data))
	}
	return files
}

func TestEachGoesThroughAFileOrItsMembers(t *testing.T) {
	directory := t.TempDir()
	files := append(ofSizes(3, 0, 20<<10, 1, 100<<10), named("calls.o", objects.Read(t, "calls.amd64-gcc12-O2.o")))
	for path, want := range map[string][]objects.File{
		write(t, filepath.Join(directory, "lib.a"), archives.Regular(files...)): files,
		write(t, filepath.Join(directory, "a.txt"), files[2].Data):              {files[2]},
		write(t, filepath.Join(directory, "none.a"), archives.Regular()):        nil,
	} {
		var got []objects.File
		err := input.Each(path, input.Options{}, func(src *input.Source) error {
			name := path + "(" + files[len(got)].Name + ")"
			if src.Member == nil {
				name = path
			}
			expect.Equal(t, name, src.Name)
			got = append(got, named(src.Name, contents(t, src)))
			return nil
		})
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %d of %d: %v", path, len(got), len(want), err)
			continue
		}
		for i := range got {
			if !bytes.Equal(got[i].Data, want[i].Data) {
				t.Errorf("%s has other bytes", got[i].Name)
			}
		}
	}
}

func TestTheFirstErrorEndsEach(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "lib.a"), archives.Regular(ofSizes(1, 2, 3)...))
	stop, calls := errors.New("stop"), 0
	err := input.Each(path, input.Options{}, func(src *input.Source) error {
		calls++
		if calls == 2 {
			return stop
		}
		return nil
	})
	if err != stop || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	var sizes []int
	for i := range 600 {
		sizes = append(sizes, i)
	}
	sizes = append(sizes, 3<<20, 3<<20, 3<<20, 9<<20, 1, 1)
	files := ofSizes(sizes...)
	var members []int
	at := 0
	err := openArchive(t, archives.Regular(files...)).Batches(func(batch []*input.Source) error {
		total := int64(0)
		for _, src := range batch {
			total += src.Size
			if !bytes.Equal(contents(t, src), files[at].Data) {
				t.Errorf("%s has other bytes", src.Name)
			}
			at++
		}
		if len(batch) == 0 || len(batch) > 256 || total > 8<<20 && len(batch) > 1 {
			t.Errorf("a batch of %d members with %d bytes", len(batch), total)
		}
		members = append(members, len(batch))
		return nil
	})
	if err != nil || at != len(files) {
		t.Errorf("%d of %d members: %v", at, len(files), err)
	}
	if len(members) > 8 {
		t.Errorf("small members come one by one: %v", members)
	}
}

func TestMembersEndWhereTheyEnd(t *testing.T) {
	for _, size := range []int{100, 20 << 10} {
		a := openArchive(t, archives.Regular(ofSizes(size, 100)...))
		var src *input.Source
		err := a.Each(func(s *input.Source) error {
			if src != nil {
				return nil
			}
			src = s
			b := make([]byte, 200)
			if n, err := s.ReadAt(b, int64(size-50)); n != 50 || err == nil {
				t.Errorf("%d bytes over the end: %v", n, err)
			}
			if n, err := s.ReadAt(b, int64(size+1)); n != 0 || err == nil {
				t.Errorf("%d bytes behind the end: %v", n, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestCutOffArchives(t *testing.T) {
	whole := archives.Regular(ofSizes(100, 20<<10, 100)...)
	for _, n := range []int{9, 70, len(whole) / 2, len(whole) - 10} {
		path := write(t, filepath.Join(t.TempDir(), "lib.a"), whole[:n])
		err := input.Each(path, input.Options{}, func(src *input.Source) error { contents(t, src); return nil })
		if err == nil || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	// And one that is cut off while it is open, and too large to be read at once.
	path := write(t, filepath.Join(t.TempDir(), "lib.a"), archives.Regular(ofSizes(200<<10, 100, 100)...))
	err := input.Each(path, input.Options{}, func(src *input.Source) error {
		expect.OK(t, os.Truncate(path, 10<<10))
		_, err := src.ReadAt(make([]byte, src.Size), 0)
		return err
	})
	if err == nil {
		t.Error("an archive that is cut off is accepted")
	}
}

// thinDirectory holds files, and a thin archive that lists some paths.
func thinDirectory(t *testing.T, archive []byte, files ...objects.File) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "directory")
	expect.OK(t, os.Mkdir(directory, 0o777))
	for _, f := range files {
		write(t, filepath.Join(directory, f.Name), f.Data)
	}
	return write(t, filepath.Join(directory, "thin.a"), archive)
}

// each lists the members of a thin archive: what they hold, or why they cannot be read.
func each(t *testing.T, path string, o input.Options) (got []string) {
	t.Helper()
	err := input.Each(path, o, func(src *input.Source) error {
		text := ""
		if err := src.Err(); err != nil {
			text = err.Error()
			if _, typeErr := src.Type(); typeErr != err {
				t.Errorf("%s: its type is known: %v", src.Name, typeErr)
			}
		} else {
			text = src.Name + ": " + string(contents(t, src))
		}
		got = append(got, strings.ReplaceAll(text, filepath.Dir(path)+string(filepath.Separator), ""))
		return nil
	})
	expect.OK(t, err)
	return got
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	expect.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
}

func TestThinArchivesNameFiles(t *testing.T) {
	a, b := named("a.txt", []byte("one")), named("b.txt", []byte("two and more"))
	gone := named("gone.txt", nil)
	path := thinDirectory(t, archives.Thin(a, gone, b, a), a, named("b.txt", []byte("other")))
	wantLines(t, each(t, path, input.Options{}), "thin.a(a.txt): one",
		"thin.a(gone.txt): open gone.txt: no such file or directory", "thin.a(b.txt): other", "thin.a(a.txt): one")
}

func TestThinArchivesStayInTheirDirectory(t *testing.T) {
	a := named("a.txt", []byte("one"))
	outside := named("../outside.txt", []byte("two"))
	link := named("link.txt", []byte("two"))
	path := thinDirectory(t, archives.Thin(a, outside, link), a, outside)
	expect.OK(t, os.Symlink("../outside.txt", filepath.Join(filepath.Dir(path), link.Name)))
	got := each(t, path, input.Options{})
	for i, name := range map[int]string{1: outside.Name, 2: link.Name} {
		if !strings.HasPrefix(got[i], "thin.a("+name+"): "+archive.ErrOutside.Error()) || !strings.HasSuffix(got[i], "; --follow-thin takes it") {
			t.Errorf("got %s", got[i])
		}
	}
	wantLines(t, each(t, path, input.Options{FollowThin: true}), "thin.a(a.txt): one", "thin.a(../outside.txt): two", "thin.a(link.txt): two")
}

// Members of another archive, which GNU ar names by their places in it, are not read.
func TestThinArchivesNameMembersOfOthers(t *testing.T) {
	const names = "other1.a/\n"
	thin := "!<thin>\n" + archives.Member("//", len(names)) + names + archives.Member("/0:8", 3)
	got := each(t, thinDirectory(t, []byte(thin)), input.Options{})
	wantLines(t, got, "thin.a(other1.a): is a member of the archive other1.a, which is not read here; make the archive anew with ar, of files alone")
}

// A member that is loaded has the bytes that it has without, and so has the next one, which gets the same memory.
func TestLoadedMembers(t *testing.T) {
	files := ofSizes(100, 9000, 20_001, 1<<20+1)
	at := 0
	expect.OK(t, openArchive(t, archives.Regular(files...)).Each(func(src *input.Source) error {
		want := string(files[at].Data)
		expect.Equal(t, want, string(contents(t, src)), "%s", src.Name)
		src.Load()
		expect.Equal(t, want, string(contents(t, src)), "%s, loaded", src.Name)
		src.Unload()
		at++
		return nil
	}))
	expect.Equal(t, len(files), at)
}
