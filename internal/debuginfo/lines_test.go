package debuginfo_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

func table(t *testing.T, data []byte) (*elfreloc.Object, *debuginfo.Data, error) {
	t.Helper()
	o := objects.Open(t, data)
	m := machines.Lookup(o.ABI())
	got, err := debuginfo.New(o, m)
	return o, got, err
}

func TestWithoutDebugInformationNothingIsKnown(t *testing.T) {
	o, got, err := table(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	expect.OK(t, err)
	expect.Equal(t, "", got.Lookup(objects.Section(t, o, ".text"), 0))
}

func TestOutsideOfCodeNothingIsKnown(t *testing.T) {
	o, got, err := table(t, objects.Read(t, "calls.amd64-gcc12-g.o"))
	expect.OK(t, err)
	text := objects.Section(t, o, ".text")
	for _, c := range []struct {
		section int
		off     uint64
	}{{objects.Section(t, o, ".data"), 0}, {objects.Section(t, o, ".debug_info"), 0}, {0, 0}} {
		expect.Equal(t, "", got.Lookup(c.section, c.off), "section %d+%#x", c.section, c.off)
	}
	if s := got.Lookup(text, 0); !strings.HasPrefix(s, "calls.c:") {
		t.Errorf("the first instruction is of %q", s)
	}
}

// A table that makes no sense is an error, never a panic.
func TestBrokenDebugInformationIsAnError(t *testing.T) {
	data := objects.Read(t, "none.amd64-gcc12-g.o")
	o, _, err := table(t, data)
	expect.OK(t, err)
	info := o.Sections[objects.Section(t, o, ".debug_info")]
	failed := 0
	for off := range info.Size {
		broken := bytes.Clone(data)
		broken[info.Offset+off] ^= 0xff
		if _, got, err := table(t, broken); err != nil {
			failed++
			if got == nil || !strings.HasPrefix(err.Error(), "a.o: debug information: ") {
				t.Fatalf("byte %d: %v, table %v", off, err, got)
			}
		}
	}
	if failed == 0 {
		t.Error("no change made a difference")
	}
}

// A relocation at the end of the section or behind it, here that of .text.unlikely, changes nothing.
func TestRelocationsBehindTheEnd(t *testing.T) {
	data := objects.Read(t, "none.amd64-gcc12-g.o")
	o, want, err := table(t, data)
	expect.OK(t, err)
	line, relocs := o.Sections[objects.Section(t, o, ".debug_line")], o.Sections[objects.Section(t, o, ".rela.debug_line")]
	text := objects.Section(t, o, ".text")
	for _, at := range []uint64{line.Size - 1, line.Size + 1} {
		binary.LittleEndian.PutUint64(data[relocs.Offset+relocs.Size-24:], at)
		_, got, err := table(t, data)
		expect.OK(t, err)
		for off := range o.Sections[text].Size {
			expect.Equal(t, want.Lookup(text, off), got.Lookup(text, off), "%#x", off)
		}
	}
}

// What strip takes out of a file says the same beside it.
func TestDebugFilesSayWhatTheirImagesDo(t *testing.T) {
	tools.Need(t, "objcopy", "objdump", "eu-strip")
	for _, b := range builds[:3] {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			objects, image := b.make(t, directory)
			for _, file := range append(objects, image) {
				whole := open(t, file)
				debug := []string{file + ".objcopy", file + ".elfutils"}
				run(t, directory, "objcopy", "--only-keep-debug", file, debug[0])
				run(t, directory, "eu-strip", "-f", debug[1], "-o", file+".stripped", file)
				for _, name := range debug {
					same(t, whole, open(t, name))
				}
			}
		})
	}
}

func same(t *testing.T, whole, other *subject) {
	t.Helper()
	known := 0
	for section, places := range whole.instructions(t, "objdump") {
		for _, p := range places {
			want, got := whole.frames(p), other.frames(p)
			expect.Equal(t, want, got, "%s: %s+%#x", filepath.Base(other.path), section, p.offset)
			if got != "" {
				known++
			}
		}
	}
	if known < 20 {
		t.Errorf("%s: only %d instructions have lines", other.path, known)
	}
}

// Of split DWARF the lines are in the image, and the functions are not.
func TestSplitDWARF(t *testing.T) {
	for _, b := range []build{
		{"gcc", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -gsplit-dwarf", ""},
		{"gcc-4", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4 -gsplit-dwarf", ""},
		{"clang", toolchains.AMD64, toolchains.Clang, false, "-O2 -g -gsplit-dwarf", ""},
		{"clang-4", toolchains.AMD64, toolchains.Clang, false, "-O2 -gdwarf-4 -gsplit-dwarf", ""},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			_, file := b.make(t, t.TempDir())
			image := open(t, file)
			known := 0
			for _, places := range image.instructions(t, "objdump") {
				told := addr2line(t, "llvm-addr2line-19", file, "", places)
				for i, p := range places {
					if got := firstLine(image.frames(p)); got != " " {
						known++
						expect.Equal(t, firstLine(told[i]), got, "%#x", p.offset)
					}
				}
			}
			if known < 20 {
				t.Errorf("only %d instructions have lines", known)
			}
			expect.OK(t, image.table.Err())
		})
	}
}

// Where functions are dropped, their lines stay behind at address 0 or the like.
func TestDroppedFunctionsAnswerForNothing(t *testing.T) {
	for _, b := range builds {
		if b.name != "gcc-gc" && b.name != "gcc-gc-4" && b.name != "gcc-gc-lld" && b.name != "clang-gc-4-lld" {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			_, file := b.make(t, t.TempDir())
			image := open(t, file)
			for _, start := range []uint64{0, 1<<64 - 0x100} {
				for off := range uint64(0x100) {
					if got := image.frames(place{0, start + off}) + image.table.Lookup(0, start+off); got != "" {
						t.Fatalf("%#x is %s", start+off, got)
					}
				}
			}
		})
	}
}

// dwz moves names to another file, and old assemblers did not say where a unit
// is.
func TestNamesInAnotherFile(t *testing.T) {
	tools.Need(t, "as", "ld")
	source := expect.Value(filepath.Abs("testdata/alt.s"))(t)
	directory := t.TempDir()
	run(t, directory, "as", source, "-o", "alt.o")
	run(t, directory, "ld", "-e", "f", "alt.o", "-o", "alt")
	object, image := open(t, filepath.Join(directory, "alt.o")), open(t, filepath.Join(directory, "alt"))
	start := image.o.Sections[objects.Section(t, image.o, ".text")].Addr
	text := objects.Section(t, object.o, ".text")
	for off, want := range []string{"alt.c:7", "alt.c:8", ""} {
		expect.Equal(t, want, object.table.Lookup(text, uint64(off)), "in the object %d", off)
		expect.Equal(t, want, image.table.Lookup(0, start+uint64(off)), "in the image %d", off)
	}
	expect.Equal(t, "?? alt.c:7\n", image.frames(place{0, start}))
	expect.OK(t, image.table.Err())
}
