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
	"math/big"
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
	return expect.Value(Assemble(expect.Value(e.Output())(t), in))(t)
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

// Scratch is a file for objects that tests make up, so many of them that each is
// written to one and the same.
type Scratch struct{ file *os.File }

// NewScratch makes a file that goes with the test.
func NewScratch(t testing.TB) *Scratch {
	t.Helper()
	file := expect.Value(os.Create(filepath.Join(t.TempDir(), "scratch.o")))(t)
	t.Cleanup(func() { file.Close() })
	return &Scratch{file}
}

// Path returns where the file is.
func (s *Scratch) Path() string { return s.file.Name() }

// Write makes the file hold data and nothing else.
func (s *Scratch) Write(data []byte) error {
	if _, err := s.file.WriteAt(data, 0); err != nil {
		return err
	}
	return s.file.Truncate(int64(len(data)))
}

// OfEachMachine are small committed objects of each machine, one of them with groups, two
// with marked nops.
var OfEachMachine = []string{
	"comdat.amd64-gcc12-Os.o",
	"existing.amd64-gcc12-O2.o",
	"existing.thumb-clang19-O2.o",
	"existing.arm64-gcc12-O2.o",
	"existing.i386-gcc12-O2.o",
	"existing.loong64-clang19-O2.o",
	"existing.ppc64-gcc12-O2.o",
	"existing.ppc64le-gcc12-O2.o",
	"existing.riscv64-gcc12-O2.o",
	"existing.s390x-gcc12-O2.o",
	"nops.amd64-gcc12-O2.o",
	"nops.riscv64-gcc12-O2.o",
}

// Tables lists the byte ranges of a sound object's tables.
func Tables(t testing.TB, data []byte) [][2]int {
	t.Helper()
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "tables.o"))(t)
	// The file's header with e_shoff in it, and the size of a section's.
	header, shoff, section := 52, 32, 40
	at := int(o.Encoding.Order.Uint32(data[shoff:]))
	if o.Encoding.Class == elf.ELFCLASS64 {
		header, shoff, section = 64, 40, 64
		at = int(o.Encoding.Order.Uint64(data[shoff:]))
	}
	ranges := [][2]int{{0, header}, {at, at + section*len(o.Sections)}}
	for _, sec := range o.Sections {
		switch sec.Type {
		case elf.SHT_SYMTAB, elf.SHT_REL, elf.SHT_RELA, elf.SHT_GROUP:
			ranges = append(ranges, [2]int{int(sec.Offset), int(sec.Offset + sec.Size)})
		}
	}
	return ranges
}

// CREL is SHT_CREL, LLVM's compact relocations.
const CREL elf.SectionType = 0x40000014

// DecodeCREL decodes a sound SHT_CREL section by its description alone, with integers
// of any size: the flags and the difference of offsets are one ULEB128.
func DecodeCREL(class elf.Class, data []byte) []elfreloc.Relocation {
	leb := func(signed bool) *big.Int {
		v, shift := new(big.Int), uint(0)
		for {
			b := data[0]
			data = data[1:]
			v.Or(v, new(big.Int).Lsh(big.NewInt(int64(b&0x7f)), shift))
			if shift += 7; b < 0x80 {
				if signed && b&0x40 != 0 {
					v.Sub(v, new(big.Int).Lsh(big.NewInt(1), shift))
				}
				return v
			}
		}
	}
	wrap := func(v *big.Int, bits uint) uint64 {
		return new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1))).Uint64()
	}
	word := uint(64)
	if class == elf.ELFCLASS32 {
		word = 32
	}
	header := leb(false).Uint64()
	flags := uint(2 + header>>2&1)
	var out []elfreloc.Relocation
	off, sym, typ, addend := new(big.Int), new(big.Int), new(big.Int), new(big.Int)
	for range header >> 3 {
		first := leb(false)
		off.Add(off, new(big.Int).Lsh(new(big.Int).Rsh(first, flags), uint(header&3)))
		for i, sum := range []*big.Int{sym, typ, addend}[:flags] {
			if first.Bit(i) != 0 {
				sum.Add(sum, leb(true))
			}
		}
		r := elfreloc.Relocation{
			Offset: wrap(off, word), Sym: uint32(wrap(sym, 32)), Type: uint32(wrap(typ, 32)),
			Addend: int64(wrap(addend, word)), Implicit: flags == 2,
		}
		if word == 32 {
			r.Addend = int64(int32(r.Addend))
		}
		out = append(out, r)
	}
	return out
}
