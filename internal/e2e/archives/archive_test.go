package archives

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// converter is the program under test.
var converter string

func TestMain(m *testing.M) {
	tools.Main(m, `TestConverted|TestThin`, &converter, nil)
}

// maker is an archiver and how it is told to make an archive.
type maker struct {
	tool string
	args []string
	env  string
	thin bool
}

func (m maker) String() string {
	return strings.TrimSpace(m.env + " " + m.tool + " " + strings.Join(m.args, " "))
}

// wide makes LLVM's ar write an index of 64 bits.
const wide = "SYM64_THRESHOLD=100"

// All but the first two take no dates from files.
var makers = []maker{
	{tool: "ar", args: []string{"qcSU"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=darwin", "qcSU"}},
	{tool: "ar", args: []string{"qcsD"}},
	{tool: "ar", args: []string{"qcSD"}},
	{tool: "ar", args: []string{"qcsDT"}, thin: true},
	{tool: "ar", args: []string{"qcSDT"}, thin: true},
	{tool: toolchains.OldLLVM("llvm-ar"), args: []string{"--format=gnu", "qcsD"}},
	{tool: toolchains.OldLLVM("llvm-ar"), args: []string{"--format=bsd", "qcsD"}},
	{tool: toolchains.OldLLVM("llvm-ar"), args: []string{"--format=darwin", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=bsd", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=darwin", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "--thin", "qcsD"}, thin: true},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "qcsD"}, env: wide},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=darwin", "qcsD"}, env: wide},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "--thin", "qcsD"}, env: wide, thin: true},
}

// make makes an archive of files in their directory.
func (m maker) make(t *testing.T, directory, archive string, files ...string) {
	t.Helper()
	c := tools.Command{Directory: directory}
	if m.env != "" {
		c.Env = []string{m.env}
	}
	c.Must(t, m.tool, append(append(m.args[:len(m.args):len(m.args)], archive), files...)...)
}

// members are the files of the archives: with short names and long ones, with probes
// and without, and twice the same.
var members = []struct{ name, object string }{
	{"plain.o", "plain"},
	{"calls.o", "calls.amd64-gcc12-O2.o"},
	{"odd.txt", ""},
	{"calls_in_functions_of_their_own.o", "calls.amd64-clang19-sections.o"},
	{"comdat.o", "comdat.amd64-gcc12-g.o"},
	{"fifteen_chars.o", "existing.amd64-gcc12-O2.o"},
	{"sub/sixteen_chars_.o", "existing.amd64-clang19-static.o"},
	{"empty", ""},
}

// newDirectory writes the members into a new directory, and returns their names with one
// of them twice.
func newDirectory(t *testing.T) (directory string, names []string) {
	t.Helper()
	directory = t.TempDir()
	expect.OK(t, os.Mkdir(filepath.Join(directory, "sub"), 0o777))
	for i, m := range members {
		var data []byte
		switch {
		case m.name == "plain.o":
			data = plain(t)
		case m.object != "":
			data = objects.Read(t, m.object)
		case m.name != "empty":
			data = []byte("odd")
		}
		path := filepath.Join(directory, m.name)
		expect.OK(t, os.WriteFile(path, data, 0o640))
		date := time.Unix(1_000_000_000+int64(i), 0)
		expect.OK(t, os.Chtimes(path, date, date))
		names = append(names, m.name)
	}
	return directory, append(names, "calls.o")
}

// plain returns an object without probes that defines symbols of every kind.
func plain(t *testing.T) []byte {
	t.Helper()
	directory := t.TempDir()
	source, object := filepath.Join(directory, "plain.s"), filepath.Join(directory, "plain.o")
	text := ".globl f, a\nf: call u\nlocal: ret\n.weak w, wu\nw: ret\n.quad wu\n.comm common,4\n.data\n.type q,@gnu_unique_object\nq: .long 1\n.set a, 5\n"
	disk.Write(t, source, text)
	tools.Must(t, "as", "-o", object, source)
	return disk.Read(t, object)
}

// run runs the program in a directory, which has to succeed without a word.
func run(t *testing.T, directory string, args ...string) {
	t.Helper()
	if args[0] != "stubs" {
		args = append([]string{"--layout=pairs"}, args...)
	}
	if out := (tools.Command{Directory: directory}).Must(t, converter, args...); out != "" {
		t.Fatalf("sdtconvert %q says %s", args, out)
	}
}

// convertFiles converts the members that are objects, and leaves their dates.
func convertFiles(t *testing.T, directory string, flags ...string) {
	t.Helper()
	for _, m := range members {
		if m.object == "" {
			continue
		}
		path := filepath.Join(directory, m.name)
		info := expect.Value(os.Stat(path))(t)
		run(t, directory, append(flags[:len(flags):len(flags)], m.name)...)
		expect.OK(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
}

func read(t *testing.T, directory, name string) []byte {
	t.Helper()
	return disk.Read(t, filepath.Join(directory, name))
}

func same(t *testing.T, directory, a, b string) {
	t.Helper()
	x, y := read(t, directory, a), read(t, directory, b)
	if bytes.Equal(x, y) {
		return
	}
	at := 0
	for at < min(len(x), len(y)) && x[at] == y[at] {
		at++
	}
	t.Errorf("%s has %d bytes, %s %d, and they differ at %#x", a, len(x), b, len(y), at)
}

// A converted archive is, byte for byte, what its archiver makes of its converted
// members, and what ranlib makes of itself.
func TestConvertedArchiveIsThatOfConvertedMembers(t *testing.T) {
	for _, m := range product.Few(t.Name(), makers) {
		for _, flags := range [][]string{nil, {"--stapsdt"}, {"--layout", "relative"}} {
			t.Run(fmt.Sprint(m, flags), func(t *testing.T) {
				t.Parallel()
				tools.Need(t, m.tool, "as", "ranlib")
				directory, names := newDirectory(t)
				m.make(t, directory, "lib.a", names...)
				before := read(t, directory, "lib.a")
				if m.thin {
					convertThin(t, directory, names, flags)
					return
				}
				run(t, directory, append(flags, "-o", "to.a", "lib.a")...)
				if !bytes.Equal(read(t, directory, "lib.a"), before) {
					t.Error("-o has changed the input")
				}
				run(t, directory, append(flags, "lib.a")...)
				same(t, directory, "lib.a", "to.a")
				convertFiles(t, directory, flags...)
				m.make(t, directory, "collected.a", names...)
				same(t, directory, "lib.a", "collected.a")
				if bytes.Equal(before, read(t, directory, "lib.a")) {
					t.Error("nothing was converted")
				}
				if m.tool == "ar" && m.args[0] == "qcsD" {
					disk.Write(t, filepath.Join(directory, "ranlib.a"), read(t, directory, "lib.a"))
					tools.Must(t, "ranlib", "-D", filepath.Join(directory, "ranlib.a"))
					same(t, directory, "lib.a", "ranlib.a")
				}
			})
		}
	}
}

// convertThin converts the thin archive lib.a: the files that it names become what they would by themselves, it has
// their sizes, and its index stays as it is.
func convertThin(t *testing.T, directory string, names, flags []string) {
	t.Helper()
	alone := filepath.Join(t.TempDir(), "alone")
	tools.Must(t, "cp", "-r", directory, alone)
	index := nmIndex(t, directory)
	run(t, directory, append(flags, "lib.a")...)
	convertFiles(t, alone, flags...)
	var all strings.Builder
	for _, name := range names {
		if !bytes.Equal(read(t, directory, name), read(t, alone, name)) {
			t.Errorf("%s is not as converted by itself", name)
		}
		all.Write(read(t, directory, name))
	}
	if tools.Output(t, "ar", "p", filepath.Join(directory, "lib.a")) != all.String() {
		t.Error("ar p does not print the members")
	}
	expect.Equal(t, index, nmIndex(t, directory))
}

// nmIndex returns the index of lib.a, as nm prints it.
func nmIndex(t *testing.T, directory string) string {
	t.Helper()
	index, _, _ := strings.Cut(tools.Output(t, "nm", "-s", filepath.Join(directory, "lib.a")), "\n\n")
	return index
}

// Written to another file, a thin archive becomes the regular one that ar makes of
// its converted members, which stay as they are.
func TestThinArchiveBecomesRegular(t *testing.T) {
	for _, m := range product.Few(t.Name(), makers) {
		if !m.thin || m.env == wide {
			continue
		}
		for _, flags := range [][]string{nil, {"--stapsdt"}} {
			t.Run(fmt.Sprint(m, flags), func(t *testing.T) {
				t.Parallel()
				tools.Need(t, m.tool, "as", "ar")
				directory, names := newDirectory(t)
				m.make(t, directory, "thin.a", names...)
				before := read(t, directory, "calls.o")
				run(t, directory, append(flags, "-o", "regular.a", "thin.a")...)
				if !bytes.Equal(read(t, directory, "calls.o"), before) {
					t.Error("-o has changed a member")
				}
				for _, name := range names { // ar takes modes from files that llvm-ar does not look at
					expect.OK(t, os.Chmod(filepath.Join(directory, name), 0o644))
				}
				convertFiles(t, directory, flags...)
				op := "qcsD"
				if strings.Contains(m.args[len(m.args)-1], "S") {
					op = "qcSD"
				}
				maker{tool: "ar", args: []string{op}}.make(t, directory, "collected.a", names...)
				same(t, directory, "regular.a", "collected.a")
			})
		}
	}
}

// The C libraries of all machines and the C++ library have members of every kind.
// A function that some of them call, and none but one define, stands for a stub.
func TestLibrariesOfTheSystem(t *testing.T) {
	libraries := []struct {
		machine       *toolchains.Machine
		library, stub string
	}{
		{toolchains.AMD64, "libc.a", "abort"}, {toolchains.AMD64, "libstdc++.a", "free"},
		{toolchains.ARM, "libc.a", "abort"}, {toolchains.ARM64, "libc.a", "memset"}, {toolchains.I386, "libc.a", "abort"}, {toolchains.LOONG64, "libc.a", "abort"}, {toolchains.PPC64, "libc.a", "abort"}, {toolchains.PPC64LE, "libc.a", "abort"}, {toolchains.RISCV64, "libc.a", "abort"}, {toolchains.S390X, "libc.a", "abort"},
	}
	all := product.New("library", "flag")
	var covered []*toolchains.Machine
	for _, c := range libraries {
		if !c.machine.Has(toolchains.GCC) {
			continue // there is no C library of it in this suite
		}
		covered = append(covered, c.machine)
		for _, flag := range []string{"", "--stapsdt"} {
			flags := append([]string{"--symbol", c.stub}, strings.Fields(flag)...)
			if flag != "" && c.machine != toolchains.AMD64 && !product.All() {
				continue
			}
			name := c.machine.Tool(c.library)
			all.Add(name+" "+strings.Join(flags, " "), []string{name, flag}, func(t *testing.T) {
				t.Parallel()
				tools.Need(t, c.machine.Tools("gcc", "g++", "ar")...)
				path := strings.TrimSpace(tools.Output(t, c.machine.Tool("gcc"), "-print-file-name="+c.library))
				checkLibrary(t, path, c.machine.Tool("ar"), flags)
			})
		}
	}
	toolchains.Covers(t, covered...)
	all.Run(t)
}

// checkLibrary converts a library, and its members by themselves, which are collected
// again.
func checkLibrary(t *testing.T, path, ar string, flags []string) {
	t.Helper()
	directory := t.TempDir()
	objects := filepath.Join(directory, "objects")
	expect.OK(t, os.Mkdir(objects, 0o777))
	tools.Must(t, converter, append(flags[:len(flags):len(flags)], "-o", filepath.Join(directory, "lib.a"), path)...)
	names := strings.Fields(tools.Output(t, ar, "t", path))
	for _, args := range [][]string{
		append([]string{ar, "x", path}, names...),
		append(append([]string{converter}, flags...), names...),
		append([]string{"chmod", "0644"}, names...),
		append([]string{ar, "qcsD", "../collected.a"}, names...),
	} {
		tools.Command{Directory: objects}.Must(t, args[0], args[1:]...)
	}
	same(t, directory, "lib.a", "collected.a")
	if before, err := os.ReadFile(path); err != nil || string(before) == string(read(t, directory, "lib.a")) {
		t.Errorf("%v: nothing was converted", err)
	}
}

// parts are the files that archives are made of: the path of each, and what it defines.
// Files with the same base name differ.
var parts = []string{
	"a.o", "sub/a.o", "a name with blanks.o", "fifteen_chars.o", "sixteen_chars_.o",
	"sub/a_name_that_no_header_has_room_for.o", "sub dir/odd(1).o", "größe.o", "x", "../b.o", "sub/../c.o", "notes.txt",
}

// definitions is how many functions the parts define, each several of them. That all are
// weak lets every choice of parts link.
const definitions = 6

// partSource returns the source of a part: each function that it defines says which part
// it is of, and has a probe. Every third part has none.
func partSource(part int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "void __dtrace_probe_shop___p%d(int);\nint __dtrace_isenabled_shop___p%[1]d(void);\n", part)
	for _, d := range []int{part % definitions, (part*5 + 1) % definitions} {
		fire := ""
		if part%3 != 2 {
			fire = fmt.Sprintf("if (__dtrace_isenabled_shop___p%d()) return 0; __dtrace_probe_shop___p%[1]d(%d);", part, d)
		}
		fmt.Fprintf(&b, "__attribute__((weak)) int f%d(void) { %s return %d; }\n", d, fire, 'A'+part)
	}
	return b.String()
}

// mainSource prints which part each function is of. It needs no C library.
func mainSource() string {
	var b strings.Builder
	for i := range definitions {
		fmt.Fprintf(&b, "int f%d(void);\n", i)
	}
	b.WriteString("void _start(void)\n{\n\tchar s[] = { ")
	for i := range definitions {
		fmt.Fprintf(&b, "f%d(), ", i)
	}
	b.WriteString(`'\n' };
	long n;
	__asm__ volatile("syscall" : "=a"(n) : "0"(1L), "D"(1L), "S"(s), "d"(sizeof s) : "rcx", "r11", "memory");
	__asm__ volatile("syscall" : : "a"(231L), "D"(0L));
	__builtin_unreachable();
}
`)
	return b.String()
}

// shelf is a directory with all that sequences start from: every part as it was compiled in
// plain, and converted in converted; main.o, fallback.o, which defines every function, and
// probes.o, which defines what converted and unconverted parts need.
type shelf struct{ directory string }

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t.TempDir()}
	gcc := toolchains.AMD64.Tool("gcc")
	compile := func(source, object string) {
		text := filepath.Join(s.directory, "source.c")
		disk.Write(t, text, source)
		tools.Must(t, gcc, "-O1", "-fno-pic", "-fno-stack-protector", "-ffunction-sections", "-c", "-o", object, text)
	}
	var all []string
	for i, name := range parts {
		path := filepath.Join(s.directory, "plain", "work", name)
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
		if name == "notes.txt" {
			disk.Write(t, path, "no object\n")
			continue
		}
		compile(partSource(i), path)
		all = append(all, path)
	}
	tools.Must(t, "cp", "-r", s.path("plain"), s.path("converted"))
	probes := []string{"stubs", "-o", s.path("probes.o")}
	for _, path := range all {
		other := strings.Replace(path, s.path("plain"), s.path("converted"), 1)
		run(t, s.directory, other)
		probes = append(probes, path, other)
	}
	run(t, s.directory, probes...)
	compile(mainSource(), s.path("main.o"))
	fallback := ""
	for i := range definitions {
		fallback += fmt.Sprintf("__attribute__((weak)) int f%d(void) { return '-'; }\n", i)
	}
	compile(fallback, s.path("fallback.o"))
	tools.Must(t, "ar", "qcs", s.path("fallback.a"), s.path("fallback.o"))
	return s
}

func (s *shelf) path(name string) string { return filepath.Join(s.directory, name) }
