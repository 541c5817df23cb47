//go:build unix

package debuginfo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func runDebugFile(t *testing.T, directory, name string, args ...string) {
	t.Helper()
	tools.Command{Directory: directory}.Must(t, name, args...)
}

func openFile(t *testing.T, path string) *elfreloc.Object {
	t.Helper()
	data := disk.Read(t, path)
	return expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), path))(t)
}

// setup makes bin/image, stripped and with a link to image.debug, which it puts
// beside it. Its directory is the root of all paths.
func setup(t *testing.T, flags ...string) (directory string) {
	t.Helper()
	tools.Need(t, "gcc", "objcopy", "strip")
	directory = expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	bin := filepath.Join(directory, "bin")
	expect.OK(t, os.Mkdir(bin, 0o777))
	disk.Write(t, filepath.Join(bin, "a.c"), "int main(void) { return 0; }\n")
	runDebugFile(t, bin, "gcc", append([]string{"-o", "image", "a.c"}, flags...)...)
	runDebugFile(t, bin, "objcopy", "--only-keep-debug", "image", "image.debug")
	runDebugFile(t, bin, "strip", "image")
	runDebugFile(t, bin, "objcopy", "--add-gnu-debuglink=image.debug", "image")
	return directory
}

func move(t *testing.T, from, to string) {
	t.Helper()
	expect.OK(t, os.MkdirAll(filepath.Dir(to), 0o777))
	expect.OK(t, os.Rename(from, to))
}

const noID, withID = "-Wl,--build-id=none", "-Wl,--build-id=0x0123456789abcdef"

func TestFind(t *testing.T) {
	for _, c := range []struct{ name, flag, place string }{
		{"beside", noID, "bin/image.debug"},
		{"in .debug", noID, "bin/.debug/image.debug"},
		{"under the root", noID, "root//bin/image.debug"},
		{"beside, with a build id", withID, "bin/image.debug"},
		{"by build id", withID, "root/.build-id/01/23456789abcdef.debug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			directory := setup(t, c.flag)
			image := filepath.Join(directory, "bin", "image")
			place := filepath.Join(directory, strings.Replace(c.place, "//", "/"+directory+"/", 1))
			move(t, filepath.Join(directory, "bin", "image.debug"), place)
			roots := []string{filepath.Join(directory, "empty"), filepath.Join(directory, "root")}
			expect.Equal(t, place, expect.Value(find(openFile(t, image), image, roots))(t))
			// By the image's other name, the real one leads there too.
			link := filepath.Join(directory, "link")
			expect.OK(t, os.Symlink(image, link))
			expect.Equal(t, place, expect.Value(find(openFile(t, image), link, roots))(t), "by a symbolic link")
			expect.OK(t, os.Remove(place))
			expect.Equal(t, "", expect.Value(find(openFile(t, image), image, roots))(t), "without it")
		})
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, flag string
		place      string
		change     func(t *testing.T, path string)
		want       string // "" for no error
	}{
		{"another checksum", noID, "bin/image.debug", add("more"), "image.debug: CRC-32 0x"},
		{"another checksum, and the same build id", withID, "bin/image.debug", add("more"), "image.debug: CRC-32 0x"},
		{"another build id beside the image", withID, "bin/image.debug", rebuildBeside, "image.debug: build id feed, want 0123456789abcdef"},
		{"no ELF file", noID, "bin/image.debug", write("text"), "image.debug: not an ELF file"},
		{"nothing", noID, "bin/image.debug", write(""), "image.debug: not an ELF file"},
		{"another build id", withID, "root/.build-id/01/23456789abcdef.debug", rebuild, ".debug: build id feed, want 0123456789abcdef"},
		{"a directory", noID, "bin/image.debug", remake(syscall.Mkdir), ""},
		{"a pipe", noID, "bin/image.debug", remake(syscall.Mkfifo), ""},
		{"an object", noID, "bin/image.debug", func(t *testing.T, path string) {
			runDebugFile(t, filepath.Dir(path), "gcc", "-c", "-o", path, filepath.Join(filepath.Dir(path), "a.c"))
		}, "image.debug: a ET_REL for "},
	} {
		t.Run(c.name, func(t *testing.T) {
			directory := setup(t, c.flag)
			image, place := filepath.Join(directory, "bin", "image"), filepath.Join(directory, c.place)
			move(t, filepath.Join(directory, "bin", "image.debug"), place)
			c.change(t, place)
			got, err := find(openFile(t, image), image, []string{filepath.Join(directory, "root")})
			if got != "" || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}

func add(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		write(string(disk.Read(t, path))+text)(t, path)
	}
}

func write(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		disk.Write(t, path, text)
	}
}

// remake makes another thing of a path.
func remake(what func(path string, mode uint32) error) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		expect.OK(t, os.Remove(path))
		expect.OK(t, what(path, 0o700))
	}
}

func rebuild(t *testing.T, path string) {
	directory := filepath.Join(filepath.Dir(path), "..", "..", "..", "bin")
	runDebugFile(t, directory, "gcc", "-Wl,--build-id=0xfeed", "-o", path, "a.c")
}

func rebuildBeside(t *testing.T, path string) {
	runDebugFile(t, filepath.Dir(path), "gcc", "-Wl,--build-id=0xfeed", "-o", path, "a.c")
}

// The names in .gnu_debuglink are anybody's.
func TestHostileLinks(t *testing.T) {
	directory := setup(t, noID)
	image := filepath.Join(directory, "bin", "image")
	data := disk.Read(t, image)
	for name, want := range map[string]string{
		"../../image": `"../../image" is not a plain file name`,
		"/etc/passwd": `"/etc/passwd" is not a plain file name`,
		"..":          `".." is not a plain file name`,
		"":            `"" is not a plain file name`,
		"image":       "", // the image itself
		"nowhere":     "",
	} {
		link := make([]byte, len("image.debug"))
		copy(link, name)
		changed := bytes.Replace(data, []byte("image.debug"), link, 1)
		o := expect.Value(elfreloc.Open(bytes.NewReader(changed), int64(len(changed)), "a"))(t)
		got, err := find(o, image, nil)
		if got != "" || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", name, got, err, want)
		}
	}
}

// find returns where the debug file of an image is, "" when there is none.
func find(image *elfreloc.Object, path string, roots []string) (string, error) {
	f, err := debuginfo.OpenDebugFile(image, path, roots)
	if f == nil {
		return "", err
	}
	return f.Path, f.Close()
}

// The names of a process with another root lead to what is below that, also by links.
func TestDebugFilesBelowARoot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are read on Linux alone")
	}
	for _, flag := range []string{noID, withID} {
		directory := setup(t, flag)
		o := openFile(t, filepath.Join(directory, "bin", "image"))
		below := func(want string) {
			t.Helper()
			f, err := debuginfo.OpenDebugFileBelow(directory, o, "/bin/image", nil)
			switch {
			case want != "" && f == nil:
				t.Errorf("no %s: %v", want, err)
			case f != nil:
				expect.Equal(t, want, f.Path)
				expect.OK(t, f.Close())
			}
		}
		below("/bin/image.debug")
		move(t, filepath.Join(directory, "bin", "image.debug"), filepath.Join(directory, "kept", "image.debug"))
		below("")
		// The link is absolute: the path of the process.
		expect.OK(t, os.Symlink("/kept/image.debug", filepath.Join(directory, "bin", "image.debug")))
		below("/bin/image.debug")
		expect.OK(t, os.Remove(filepath.Join(directory, "bin", "image.debug")))
		expect.OK(t, os.Symlink(filepath.Join(directory, "kept", "image.debug"), filepath.Join(directory, "bin", "image.debug")))
		below("")
	}
}

// A debug file with a hole is not summed: its checksum would take as long as its size says.
func TestDebugFileWithAHole(t *testing.T) {
	directory := setup(t, noID)
	expect.OK(t, os.Truncate(filepath.Join(directory, "bin", "image.debug"), 1<<42))
	image := filepath.Join(directory, "bin", "image")
	_, err := find(openFile(t, image), image, nil)
	expect.Error(t, err, "are a hole")
}
