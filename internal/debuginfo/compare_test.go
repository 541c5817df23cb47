package debuginfo_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

func compare(t *testing.T, b build, s *subject) {
	t.Helper()
	known := 0
	for section, places := range s.instructions(t, b.machine.Tool("objdump")) {
		for i, told := range b.tell(t, s, section, places) {
			p := places[i]
			got := s.frames(p)
			if got == "" && slices.ContainsFunc(told, func(a string) bool { return strings.HasSuffix(a, " ?\n") }) {
				continue
			}
			known++
			if !slices.ContainsFunc(told, func(a string) bool { return b.same(s, got, a) }) {
				t.Errorf("%s %s+%#x is\n%swant one of\n%s", filepath.Base(s.path), section, p.offset, got, strings.Join(told, "\n"))
			}
		}
	}
	if known < 20 {
		t.Errorf("%s: only %d instructions have lines", s.path, known)
	}
}

// tell asks the tools. Only that of binutils knows what an offset of a section
// of an object is, though it is not right about all of it.
func (b build) tell(t *testing.T, s *subject, section string, places []place) [][]string {
	t.Helper()
	askable := []string{b.machine.Tool("addr2line"), "eu-addr2line", "llvm-addr2line-19"}
	if s.o.Type == elf.ET_REL {
		askable = askable[:1]
	} else {
		section = ""
	}
	told := make([][]string, len(places))
	for _, tool := range askable {
		for i, answer := range addr2line(t, tool, s.path, section, places) {
			told[i] = append(told[i], answer)
		}
	}
	return told
}

var (
	file     = regexp.MustCompile(`(?m) .*:`)
	outmost  = regexp.MustCompile(`(?m)^\S+( [^\n]*\n)\z`) // the path may have blanks
	nameless = regexp.MustCompile(`(?m)^_Z\S+( [^\n]*\n)\z`)
)

// same compares what the table says with what a tool does, but for these:
//
//   - What DWARF gives no linkage name, tools name by its symbol; and so they do
//     with what lies between functions.
//   - In objects binutils 2.40 finds the wrong file of DWARF 5, none of 64-bit
//     DWARF 5, and too few functions of C++.
func (b build) same(s *subject, got, told string) bool {
	if strings.HasPrefix(got, "?? ") || nameless.MatchString(told) && !nameless.MatchString(got) {
		got, told = outmost.ReplaceAllString(got, "?$1"), outmost.ReplaceAllString(told, "?$1")
	}
	if s.o.Type == elf.ET_REL && b.cxx {
		got, told = firstLine(got), firstLine(told)
	}
	if s.o.Type == elf.ET_REL {
		if strings.HasSuffix(told, " ?\n") && strings.Contains(b.flags, "-gdwarf64") {
			return true
		}
		got, told = file.ReplaceAllString(got, " "), file.ReplaceAllString(told, " ")
	}
	return got == told
}

// firstLine returns where the innermost frame is.
func firstLine(frames string) string {
	_, rest, _ := strings.Cut(frames, " ")
	line, _, _ := strings.Cut(rest, "\n")
	return " " + line
}

// compareFunctions compares an object with the image that it was linked into, by
// functions of the same name and size. Where linkers relax code there are none.
func compareFunctions(t *testing.T, object, image *subject) {
	t.Helper()
	linked := functions(t, image)
	for name, f := range functions(t, object) {
		g, ok := linked[name]
		if !ok || g.Size != f.Size {
			continue
		}
		for off := range f.Size {
			got, want := object.frames(place{f.Section, f.Value + off}), image.frames(place{0, g.Value + off})
			expect.Equal(t, want, got, "%s: %s+%#x", filepath.Base(object.path), name, off)
		}
	}
}

func functions(t *testing.T, s *subject) map[string]elfreloc.Symbol {
	t.Helper()
	syms := expect.Value(s.o.Symbols())(t)
	found := make(map[string]elfreloc.Symbol)
	for i := range syms.Len() {
		if sym := syms.At(i); sym.Type == elf.STT_FUNC && sym.Defined() {
			sym.Value &^= machines.Conventions(s.o.ABI()).Mode
			found[sym.Name] = sym
		}
	}
	return found
}

func run(t testing.TB, directory, tool string, args ...string) string {
	t.Helper()
	return runWith(t, directory, "", tool, args...)
}

func runWith(t testing.TB, directory, stdin, tool string, args ...string) string {
	t.Helper()
	// eu-addr2line fails for each address that it does not know.
	c := tools.Command{Directory: directory, Stdin: stdin, Env: []string{"LC_ALL=C", "DEBUGINFOD_URLS="}, AnyStatus: tool == "eu-addr2line"}
	return c.Output(t, tool, args...)
}

// subject is a file whose lines are looked up.
type subject struct {
	path  string
	o     *elfreloc.Object
	table *debuginfo.Data
}

func open(t testing.TB, path string) *subject {
	t.Helper()
	data := disk.Read(t, path)
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), filepath.Base(path)))(t)
	table := expect.Value(debuginfo.New(o, machines.Lookup(o.ABI())))(t)
	return &subject{path, o, table}
}

// place is an instruction: an address, or an offset of a section.
type place struct {
	section int // 0 in images
	offset  uint64
}

var (
	sectionTitle = regexp.MustCompile(`^Disassembly of section (.*):$`)
	instruction  = regexp.MustCompile(`^\s*([0-9a-f]+):\t`)
)

// instructions returns all of a file, by section.
func (s *subject) instructions(t testing.TB, objdump string) map[string][]place {
	t.Helper()
	found := make(map[string][]place)
	section, index := "", 0
	for line := range strings.Lines(run(t, "", objdump, "-dw", s.path)) {
		if m := sectionTitle.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			if section = m[1]; s.o.Type == elf.ET_REL {
				index = objects.Section(t, s.o, section)
			}
		} else if m := instruction.FindStringSubmatch(line); m != nil {
			offset := expect.Value(strconv.ParseUint(m[1], 16, 64))(t)
			found[section] = append(found[section], place{index, offset})
		}
	}
	return found
}

var remark = regexp.MustCompile(` \((discriminator [0-9]+|inlined by)\)`)

// addr2line returns what a tool says of places: of each a frame on a line, as
// "function file:line", "?" for what it does not know.
func addr2line(t testing.TB, tool, file, section string, places []place) []string {
	t.Helper()
	args := []string{"-a", "-i", "-f", "-e", file}
	if section != "" {
		args = append(args, "-j", section)
	}
	var stdin strings.Builder
	for _, p := range places {
		fmt.Fprintf(&stdin, "%#x\n", p.offset)
	}
	var all []string
	var frames, function string
	for line := range strings.Lines(runWith(t, "", stdin.String(), tool, args...)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "0x"):
			all = append(all, "")
			frames, function = "", ""
		case function == "":
			function, _, _ = strings.Cut(line, " inlined at ")
		default:
			frames = function + " " + source(remark.ReplaceAllString(line, "")) + "\n"
			all[len(all)-1] += frames
			function = ""
		}
	}
	if len(all) != len(places) {
		t.Fatalf("%s answered %d of %d", tool, len(all), len(places))
	}
	return all
}

// source makes file:line the same from each tool, and "?" when it is not
// known.
func source(s string) string {
	file, line, ok := strings.Cut(s, ":")
	if !ok || strings.HasPrefix(file, "?") || line == "0" || strings.HasPrefix(line, "?") {
		return "?"
	}
	line, _, _ = strings.Cut(line, ":") // a column
	return path.Clean(file) + ":" + line
}

// frames returns what the table says of a place, in the form of addr2line.
func (s *subject) frames(p place) string {
	var b strings.Builder
	for _, f := range s.table.Inlines(p.section, p.offset) {
		function, at := f.Function, "?"
		if function == "" {
			function = "??"
		}
		if f.Line != 0 {
			at = path.Clean(f.File) + ":" + strconv.Itoa(f.Line)
		}
		fmt.Fprintf(&b, "%s %s\n", function, at)
	}
	return b.String()
}

// build is one way to make a program of testdata.
type build struct {
	name     string
	machine  *toolchains.Machine
	compiler toolchains.Compiler
	cxx      bool
	flags    string
	link     string
}

// builds are those that the suite has gcc for.
var builds = slices.DeleteFunc([]build{
	{"gcc-O0", toolchains.AMD64, toolchains.GCC, false, "-O0 -gdwarf-5", ""},
	{"gcc-O2", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-5", ""},
	{"gcc-O2-4", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4", ""},
	{"gcc-O2-3", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-3 -gstrict-dwarf", "-no-pie"},
	{"gcc-O2-2", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-2 -gstrict-dwarf", ""},
	{"gcc-O2-64", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-5 -gdwarf64", ""},
	{"gcc-gc", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"gcc-gc-4", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4 -ffunction-sections", "-Wl,--gc-sections"},
	{"gcc-gc-lld", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -ffunction-sections", "-B" + toolchains.LLVMPrograms() + " -fuse-ld=lld -Wl,--gc-sections"},
	{"gcc-shared", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -fPIC", "-shared"},
	{"gcc-static", toolchains.AMD64, toolchains.GCC, false, "-O2 -g", "-static -nostdlib -Wl,-e,main"},
	{"gcc-emit-relocs", toolchains.AMD64, toolchains.GCC, false, "-O2 -g", "-Wl,-q"},
	{"gcc-lto", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -flto -ffat-lto-objects", "-O2 -g -flto"},
	{"gcc-types", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -fdebug-types-section", ""},
	{"gcc-zlib-gnu", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4 -gz=zlib-gnu", "-gz=zlib-gnu"},
	{"clang-zstd", toolchains.AMD64, toolchains.Clang, false, "-O2 -g -gz=zstd", "-fuse-ld=lld -gz=zstd"},
	{"gcc-gold-icf", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4 -ffunction-sections", "-fuse-ld=gold -Wl,--gc-sections,--icf=all"},
	{"clang-mold", toolchains.AMD64, toolchains.Clang, false, "-O2 -g -ffunction-sections", "-fuse-ld=mold -Wl,--gc-sections"},
	{"gcc-z", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -gz=zlib", "-gz=zlib"},
	{"clang-64", toolchains.AMD64, toolchains.Clang, false, "-O2 -gdwarf-5 -gdwarf64", ""},
	{"clang-O0", toolchains.AMD64, toolchains.Clang, false, "-O0 -g", ""},
	{"clang-O2", toolchains.AMD64, toolchains.Clang, false, "-O2 -g", ""},
	{"clang-gc", toolchains.AMD64, toolchains.Clang, false, "-O2 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"clang-gc-4-lld", toolchains.AMD64, toolchains.Clang, false, "-O2 -gdwarf-4 -ffunction-sections", "-fuse-ld=lld -Wl,--gc-sections"},
	{"old-clang-gc-lld", toolchains.AMD64, toolchains.OldClang, false, "-O2 -gdwarf-5 -ffunction-sections", "-B" + toolchains.LLVMPrograms() + " -fuse-ld=lld -Wl,--gc-sections"},
	{"g++-O2", toolchains.AMD64, toolchains.GCC, true, "-O2 -g", ""},
	{"g++-O0-gc", toolchains.AMD64, toolchains.GCC, true, "-O0 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"clang++-O1-lld", toolchains.AMD64, toolchains.Clang, true, "-O1 -g", "-fuse-ld=lld -Wl,--gc-sections"},
	{"old-clang++-O2-4", toolchains.AMD64, toolchains.OldClang, true, "-O2 -gdwarf-4", ""},
	{"arm-gcc", toolchains.ARM, toolchains.GCC, false, "-O2 -g", ""},
	{"arm64-gcc", toolchains.ARM64, toolchains.GCC, false, "-O2 -g", ""},
	{"arm64-g++", toolchains.ARM64, toolchains.GCC, true, "-O2 -g", ""},
	{"arm64be-gcc", toolchains.ARM64, toolchains.GCC, false, "-O2 -g -mbig-endian", "-mbig-endian -nostdlib -shared"},
	{"i386-gcc", toolchains.I386, toolchains.GCC, false, "-O2 -g -fPIC", "-nostdlib -shared"},
	{"i386-gcc-4", toolchains.I386, toolchains.GCC, false, "-O2 -gdwarf-4 -fPIC", "-nostdlib -shared"},
	{"ppc64-gcc", toolchains.PPC64, toolchains.GCC, false, "-O2 -g", "-nostdlib -shared"},
	{"ppc64le-gcc", toolchains.PPC64LE, toolchains.GCC, false, "-O2 -g", ""},
	{"ppc64-gcc-3-64", toolchains.PPC64, toolchains.GCC, false, "-O2 -gdwarf-3 -gdwarf64", "-nostdlib -shared"},
	{"loong64-gcc", toolchains.LOONG64, toolchains.GCC, false, "-O2 -g", ""},
	{"loong64-gcc-norelax", toolchains.LOONG64, toolchains.GCC, false, "-O2 -g -mno-relax", ""},
	{"riscv64-gcc", toolchains.RISCV64, toolchains.GCC, false, "-O2 -g", ""},
	{"riscv64-gcc-O0", toolchains.RISCV64, toolchains.GCC, false, "-O0 -g", ""},
	{"riscv64-gcc-norelax", toolchains.RISCV64, toolchains.GCC, false, "-O2 -g -mno-relax", ""},
	{"s390x-gcc", toolchains.S390X, toolchains.GCC, false, "-O2 -g", ""},
}, func(b build) bool { return !b.machine.Has(toolchains.GCC) })

// make compiles and links, and returns the objects and the image.
func (b build) make(t *testing.T, directory string) (objects []string, image string) {
	t.Helper()
	compiler := b.machine.CC(b.compiler)[0]
	if b.cxx {
		compiler = b.machine.CXX(b.compiler)[0]
	}
	tools.Need(t, append(b.machine.Tools("objdump", "addr2line"), compiler, "eu-addr2line", "llvm-addr2line-19")...)
	sources := expect.Value(filepath.Abs("testdata"))(t)
	suffix := ".c"
	if b.cxx {
		suffix = ".cc"
	}
	for _, name := range []string{"main", "lib"} {
		object := filepath.Join(directory, name+".o")
		args := append(strings.Fields(b.flags), "-c", filepath.Join(sources, name+suffix), "-o", object)
		run(t, directory, compiler, args...)
		objects = append(objects, object)
	}
	image = filepath.Join(directory, "image")
	run(t, directory, compiler, append(append(strings.Fields(b.link), objects...), "-o", image)...)
	return objects, image
}

func TestMachinesAreCovered(t *testing.T) {
	var all []*toolchains.Machine
	for _, b := range builds {
		all = append(all, b.machine)
	}
	toolchains.Covers(t, all...)
}

// What objdump shows as code has the lines and inlined functions that at least
// one of three tools tells: they do not always agree, nor do they with DWARF.
// The objects say the same as the image.
func TestImagesAgreeWithAddr2line(t *testing.T) {
	for _, b := range product.Few(t.Name(), builds) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			objects, file := b.make(t, t.TempDir())
			image := open(t, file)
			compare(t, b, image)
			for _, object := range objects {
				o := open(t, object)
				compare(t, b, o)
				compareFunctions(t, o, image)
			}
		})
	}
}
