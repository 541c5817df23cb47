package debuginfo_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/testkit/disk"
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

// calledDifferently calls one function by two declarations, each in its block.
const calledDifferently = `
#define CALL1(a) do { extern void one(int) __asm__("away"); one(a); } while (0)
#define CALL2(a, b) do { extern void two(int, int) __asm__("away"); two(a, b); } while (0)
void f(int n) { CALL1(n); CALL2(n, 3); CALL1(n + 1); }
int g(int n) { if (n > 3) { CALL2(n, n); CALL2(n, n + 1); } return n; }
`

// GCC describes each call, which objdump finds by its relocation.
func TestCalls(t *testing.T) {
	for _, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, m.Tool("gcc"), m.Tool("objdump"))
			for _, flags := range []string{"-O0", "-O2 -fno-inline", "-O2 -gdwarf-4", "-Os -fno-optimize-sibling-calls"} {
				directory := t.TempDir()
				source, object := filepath.Join(directory, "a.c"), filepath.Join(directory, "a.o")
				disk.Write(t, source, calledDifferently)
				tools.Must(t, m.Tool("gcc"), append(strings.Fields(flags), "-g", "-c", "-o", object, source)...)
				o := objects.Open(t, disk.Read(t, object))
				machine := machines.Lookup(o.ABI())
				table := expect.Value(debuginfo.New(o, machine))(t)
				calls := expect.Value(table.Calls(func(name string) bool { return name == "away" }))(t)
				expect.Equal(t, "[away] [1 2]", fmt.Sprint(calls.Functions(), calls.Numbers("away")))
				text := slices.IndexFunc(o.Sections, func(s elfreloc.Section) bool { return s.Name == ".text" })
				got := []int{}
				for _, at := range relocationsOf(t, m, object, "away") {
					n, exact, ok := calls.Parameters("away", text, at)
					if !ok || !exact {
						t.Errorf("%s: %#x: %d, %v, %v", flags, at, n, exact, ok)
					}
					got = append(got, n)
				}
				expect.Equal(t, "[1 2 1 2 2]", fmt.Sprint(got), "%s", flags)
			}
		})
	}
}

// relocationsOf returns where code refers to a symbol, as objdump lists it, sorted.
func relocationsOf(t *testing.T, m *toolchains.Machine, object, symbol string) (offsets []uint64) {
	t.Helper()
	for _, line := range strings.Split(tools.Output(t, m.Tool("objdump"), "-r", "-j", ".text", object), "\n") {
		var at uint64
		if _, err := fmt.Sscanf(line, "%x R_", &at); err == nil && strings.Contains(line, symbol) {
			offsets = append(offsets, at)
		}
	}
	slices.Sort(offsets)
	return slices.Compact(offsets)
}
