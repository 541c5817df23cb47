// Package objects gives tests objects to work on, and their outputs in memory.
package objects

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// File is an object in memory.
type File struct {
	Name string // without directories
	Data []byte
}

// Directory returns where the committed objects are.
func Directory() string { return tools.Root("testdata", "objs") }

// Read reads a committed object.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	return disk.Read(t, filepath.Join(Directory(), name))
}

// Committed reads all committed objects of less than limit bytes.
func Committed(t testing.TB, limit int64) []File {
	t.Helper()
	return readAll(t, filepath.Join(Directory(), "*.o"), limit)
}

// ELF reads the committed objects whose names begin with a prefix, without those that are bitcode.
func ELF(t testing.TB, prefixes ...string) []File {
	t.Helper()
	return slices.DeleteFunc(Committed(t, math.MaxInt64), func(f File) bool {
		named := func(prefix string) bool { return strings.HasPrefix(f.Name, prefix) }
		return !bytes.HasPrefix(f.Data, []byte(elf.ELFMAG)) || !slices.ContainsFunc(prefixes, named)
	})
}

// Foreign reads the ELF files that Go's own tests of debug/elf use, of less
// than limit bytes. There are none where Go is installed without its sources.
func Foreign(t testing.TB, limit int64) []File {
	t.Helper()
	root := expect.Value(exec.Command("go", "env", "GOROOT").Output())(t)
	directory := filepath.Join(strings.TrimSpace(string(root)), "src", "debug", "elf", "testdata")
	if _, err := os.Stat(directory); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return readAll(t, filepath.Join(directory, "*[!.c]"), limit)
}

// Paths returns the paths of all committed objects.
func Paths(t testing.TB) []string {
	t.Helper()
	return matching(t, filepath.Join(Directory(), "*.o"))
}

// matching returns the paths that match a pattern, of which there has to be one.
func matching(t testing.TB, pattern string) []string {
	t.Helper()
	paths := expect.Value(filepath.Glob(pattern))(t)
	if len(paths) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	return paths
}

var recipe = regexp.MustCompile(`^(\w+)\.(\w+)-(\w+)(?:-(\w+))?\.o$`)

// Recipe returns the source, the machine, the compiler and the flags of a committed object,
// from its name: SOURCE.MACHINE-COMPILER-FLAGS.o.
func Recipe(t testing.TB, path string) []string {
	t.Helper()
	match := recipe.FindStringSubmatch(filepath.Base(path))
	if match == nil {
		t.Fatalf("%s has another name than objects have", path)
	}
	return match[1:]
}

func readAll(t testing.TB, pattern string, limit int64) []File {
	t.Helper()
	var files []File
	for _, name := range matching(t, pattern) {
		data := expect.Value(readFile(name, limit))(t)
		if int64(len(data)) < limit {
			files = append(files, File{filepath.Base(name), data})
		}
	}
	return files
}

// readFile reads up to limit bytes of a file, decompressed.
func readFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !strings.HasSuffix(name, ".gz") {
		return io.ReadAll(io.LimitReader(f, limit))
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, limit))
}

// Open opens bytes as an object that is called a.o.
func Open(t testing.TB, data []byte) *elfreloc.Object {
	t.Helper()
	return expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "a.o"))(t)
}

// Section returns the index of the first section of a name.
func Section(t testing.TB, o *elfreloc.Object, name string) int {
	t.Helper()
	for i := range o.Sections {
		if o.Sections[i].Name == name {
			return i
		}
	}
	t.Fatalf("no section %s", name)
	return 0
}

// Save makes the bytes of an edited object, of which in are the old ones.
func Save(t testing.TB, e *elfreloc.Edit, in []byte) []byte {
	t.Helper()
	return expect.Value(Assemble(expect.Value(e.Save())(t), in))(t)
}

// Assemble makes the bytes of an output, as package replace writes them.
func Assemble(out *elfreloc.Output, in []byte) ([]byte, error) {
	var result []byte
	for _, x := range out.Extents {
		if x.Data != nil {
			if int64(len(x.Data)) != x.Len {
				return nil, fmt.Errorf("an extent of %d bytes holds %d", x.Len, len(x.Data))
			}
			result = append(result, x.Data...)
			continue
		}
		var src io.ReaderAt = bytes.NewReader(in)
		if x.From != nil {
			src = x.From
		}
		part, err := io.ReadAll(io.NewSectionReader(src, x.Src, x.Len))
		if err != nil || int64(len(part)) != x.Len {
			return nil, fmt.Errorf("an extent of %d bytes at %d holds %d: %v", x.Len, x.Src, len(part), err)
		}
		result = append(result, part...)
	}
	if int64(len(result)) != out.Size {
		return nil, fmt.Errorf("the extents are %d bytes, want %d", len(result), out.Size)
	}
	return result, nil
}
