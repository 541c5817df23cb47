package replace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// accessListOf returns an access list in which the file's group may do nothing, and another group may read and write.
func accessListOf(group uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][3]uint32{{1, 6, 1<<32 - 1}, {4, 0, 1<<32 - 1}, {8, 6, group}, {0x10, 6, 1<<32 - 1}, {0x20, 0, 1<<32 - 1}} {
		b = binary.LittleEndian.AppendUint16(b, uint16(entry[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(entry[1]))
		b = binary.LittleEndian.AppendUint32(b, entry[2])
	}
	return b
}

// shape returns the mode and all attributes of a file.
func shape(t *testing.T, path string) string {
	t.Helper()
	f := expect.Value(os.Open(path))(t)
	defer f.Close()
	text := fmt.Sprint(expect.Value(f.Stat())(t).Mode())
	for _, name := range expect.Value(attributes(int(f.Fd())))(t) {
		text += fmt.Sprintf(" %s=%x", name, expect.Value(attribute(int(f.Fd()), name))(t))
	}
	return text
}

// replaceBy writes other contents to a path, made from the file at in.
func replaceBy(t *testing.T, in, path string) error {
	t.Helper()
	f := expect.Value(input.Open(in))(t)
	defer f.Close()
	return new(Writer).File(path, f, output([]elfreloc.Extent{{Data: []byte("new"), Len: 3}}))
}

// A file that is replaced, and one that is made from another, have the rights and the attributes that cp -a gives a copy. The
// directory's default access list adds none.
func TestAttributes(t *testing.T) {
	tools.Need(t, "cp")
	directory := t.TempDir()
	path := func(name string) string { return filepath.Join(directory, name) }
	disk.Write(t, path("listed"), []byte("old"))
	disk.Write(t, path("plain"), []byte("old"))
	expect.OK(t, os.Chmod(path("plain"), 0o640))
	expect.OK(t, unix.Setxattr(path("listed"), accessList, accessListOf(1234), 0))
	expect.OK(t, unix.Setxattr(path("plain"), "user.note", []byte("kept"), 0))
	expect.OK(t, unix.Setxattr(directory, "system.posix_acl_default", accessListOf(4321), 0))
	for _, name := range []string{"listed", "plain"} {
		expect.OK(t, exec.Command("cp", "-a", path(name), path(name+".copy")).Run())
		want := shape(t, path(name))
		expect.Equal(t, want, shape(t, path(name+".copy")), "cp -a")
		expect.OK(t, replaceBy(t, path(name), path(name+".made")))
		expect.OK(t, replaceBy(t, path(name), path(name)))
		for _, written := range []string{name, name + ".made"} {
			expect.Equal(t, "new", string(disk.Read(t, path(written))))
			expect.Equal(t, want, shape(t, path(written)), "%s", written)
		}
	}
	want := shape(t, path("listed"))
	expect.OK(t, new(Writer).New(path("listed"), []byte("newer")))
	expect.Equal(t, want, shape(t, path("listed")), "a new file in the place of another")
}

// A link that takes the temporary file's place gets neither the time nor the rights of the input.
func TestLinkInThePlaceOfTheTemporaryFile(t *testing.T) {
	directory := t.TempDir()
	target, victim := filepath.Join(directory, "a.o"), filepath.Join(directory, "victim")
	disk.Write(t, target, []byte("old"))
	disk.Write(t, victim, []byte("secret"))
	expect.OK(t, os.Chtimes(target, time.Time{}, time.Unix(1000, 5)))
	before := expect.Value(os.Stat(victim))(t)
	in := expect.Value(input.Open(target))(t)
	defer in.Close()
	temp := expect.Value(new(Writer).createTemp(target, target, 0o600))(t)
	defer temp.discard()
	expect.OK(t, os.Rename(temp.Name(), temp.Name()+".moved"))
	expect.OK(t, os.Symlink(victim, temp.Name()))
	expect.OK(t, temp.copyMetadata(target, in))
	after := expect.Value(os.Stat(victim))(t)
	expect.Equal(t, before.ModTime(), after.ModTime())
	expect.Equal(t, before.Mode(), after.Mode())
	expect.Equal(t, time.Unix(1000, 5), expect.Value(temp.Stat())(t).ModTime())
}

// A link that takes the input's place after it was opened does not have its target replaced.
func TestLinkInThePlaceOfTheInput(t *testing.T) {
	directory := t.TempDir()
	path, victim := filepath.Join(directory, "a.o"), filepath.Join(directory, "victim")
	disk.Write(t, path, []byte("old"))
	disk.Write(t, victim, []byte("secret"))
	in := expect.Value(input.Open(path))(t)
	defer in.Close()
	expect.OK(t, os.Rename(path, path+".moved"))
	expect.OK(t, os.Symlink(victim, path))
	temp := expect.Value(new(Writer).createTemp(path, victim, 0o600))(t)
	defer temp.discard()
	// Now it is back, so that a look at the path finds nothing wrong.
	expect.OK(t, os.Rename(path+".moved", path))
	if err := temp.replaceTarget(victim, in); !errors.Is(err, input.ErrChanged) {
		t.Error(err)
	}
	expect.Equal(t, "secret", string(disk.Read(t, victim)))
}

// Files are made where their directory is, whatever has its path by now.
func TestDirectoryThatMoves(t *testing.T) {
	directory := t.TempDir()
	path, other := filepath.Join(directory, "d"), filepath.Join(directory, "other")
	made := expect.Value(MakeDirectory(path+"/", 0o777))(t)
	defer made.Close()
	expect.OK(t, os.Mkdir(other, 0o777))
	expect.OK(t, os.Rename(path, path+".moved"))
	expect.OK(t, os.Symlink(other, path))
	disk.Write(t, filepath.Join(directory, "victim"), []byte("secret"))
	expect.OK(t, os.Symlink("../victim", filepath.Join(path+".moved", "link")))
	f := expect.Value(made.Create("a", 0o666))(t)
	expect.OK(t, f.Close())
	expect.Value(os.Lstat(filepath.Join(path+".moved", "a")))(t)
	_, err := made.Create("link", 0o666)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link is written to: %v", err)
	}
	_, err = MakeDirectory(path, 0o777)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory is made that is there: %v", err)
	}
	expect.Equal(t, 0, len(expect.Value(os.ReadDir(other))(t)))
}

// In a directory that others may change, Create follows no link and takes no file that has another name.
func TestCreateInDirectoriesOfOthers(t *testing.T) {
	own := t.TempDir()
	expect.OK(t, os.Chmod(own, 0o755))
	shared := filepath.Join(own, "shared")
	expect.OK(t, os.Mkdir(shared, 0o700))
	expect.OK(t, os.Chmod(shared, 0o777))
	victim := filepath.Join(own, "victim")
	disk.Write(t, victim, []byte("secret"))
	for _, directory := range []string{own, shared} {
		expect.OK(t, os.Symlink(victim, filepath.Join(directory, "symbolic")))
		expect.OK(t, os.Link(victim, filepath.Join(directory, "hard")))
		expect.OK(t, unix.Mkfifo(filepath.Join(directory, "pipe"), 0o666))
		disk.Write(t, filepath.Join(directory, "plain"), []byte("old"))
	}
	for _, name := range []string{"symbolic", "hard", "pipe"} {
		if f, err := Create(filepath.Join(shared, name), 0o666); err == nil {
			f.Close()
			t.Errorf("%s is written to", name)
		}
	}
	expect.Equal(t, "secret", string(disk.Read(t, victim)))
	for _, path := range []string{filepath.Join(shared, "new"), filepath.Join(shared, "plain"), filepath.Join(own, "new"), filepath.Join(own, "plain"), filepath.Join(own, "symbolic"), "/dev/null"} {
		f := expect.Value(Create(path, 0o666))(t)
		expect.Value(f.WriteString("x"))(t)
		expect.OK(t, f.Close())
	}
	for _, path := range []string{filepath.Join(shared, "plain"), filepath.Join(own, "plain"), victim} {
		expect.Equal(t, "x", string(disk.Read(t, path)), "%s", path)
	}
}
