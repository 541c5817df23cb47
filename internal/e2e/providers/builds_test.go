package providers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// build is a directory with the program under the name of dtrace.
type build struct {
	tools.Command
	dtrace string
}

func newBuild(t *testing.T) build {
	t.Helper()
	tools.Need(t, "gcc")
	bin := filepath.Join(t.TempDir(), "dtrace")
	expect.OK(t, os.Symlink(converter, bin))
	return build{tools.Command{Directory: t.TempDir()}, bin}
}

func (b build) write(t *testing.T, name, text string) { write(t, b.Directory, name, text) }

// holds compares the files of the directory.
func (b build) holds(t *testing.T, want ...string) {
	t.Helper()
	entries := expect.Value(os.ReadDir(b.Directory))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	expect.Equal(t, want, got, "to be there (-) and there (+)")
}

// program makes a program of a provider file and of a source that begins with its header, with
// the object of -G.
func (b build) program(t *testing.T, provider, source string, flags ...string) (exe string) {
	t.Helper()
	b.write(t, "p.d", provider)
	b.write(t, "p.c", "#include \"p.h\"\n"+source)
	b.Must(t, b.dtrace, "-h", "-s", "p.d")
	b.Must(t, "gcc", append([]string{"-O2", "-c", "p.c", "-o", "main.o"}, flags...)...)
	b.Must(t, b.dtrace, "-G", "-s", "p.d", "main.o")
	b.Must(t, "gcc", append([]string{"main.o", "p.o", "-ldl", "-o", "prog"}, flags...)...)
	return filepath.Join(b.Directory, "prog")
}

// What configure scripts ask of a dtrace before they use it.
func TestDetection(t *testing.T) {
	b := newBuild(t)
	b.write(t, "conftest.d", "BEGIN{}\n")
	b.Must(t, b.dtrace, "-G", "-s", "conftest.d", "-o", "conftest.o")
	b.write(t, "one.d", "provider conftest{ probe fire(); };\n")
	b.write(t, "one.c", "#include \"one.h\"\nint main(void) { CONFTEST_FIRE(); return 0; }\n")
	b.Must(t, b.dtrace, "-h", "-xnolibs", "-s", "one.d")
	b.Must(t, "gcc", "-c", "one.c", "-o", "one_main.o")
	before := b.Output(t, "sha256sum", "one_main.o")
	b.Must(t, b.dtrace, "-G", "-s", "one.d", "one_main.o")
	expect.Equal(t, before, b.Output(t, "sha256sum", "one_main.o"), "the object has changed")
	b.Must(t, "gcc", "one_main.o", "one.o", "-o", "a.out")
	b.Must(t, "./a.out")
	b.write(t, "empty.d", "")
	b.Must(t, b.dtrace, "-DSTAP_SDT_V2", "-o", "empty.h", "-h", "-s", "empty.d")
	b.Must(t, b.dtrace, "-G", "-C", "-64", "-I.", "-I", "..", "-o", "empty.o", "one_main.o", "-s", "empty.d", "-fPIC", "-DPIC")
	b.holds(t, "a.out", "conftest.d", "conftest.o", "empty.d", "empty.h", "empty.o", "one.c", "one.d", "one.h", "one.o", "one_main.o")
}

// make builds twice, and the second time nothing: no object is newer than the program.
func TestMake(t *testing.T) {
	tools.Need(t, "make")
	b := newBuild(t)
	b.write(t, "prov.d", "provider p { probe go(int); probe tested(); };\n")
	b.write(t, "test.c", "#include \"prov.h\"\nint main(void) { P_GO(1); return P_TESTED_ENABLED() ? 1 : 0; }\n")
	b.write(t, "Makefile", "DTRACE = dtrace\n%.h: %.d\n\t$(DTRACE) -h -s $<\nall: test\ntest.o: prov.h\n"+
		"prov.o: test.o prov.d\n\t$(DTRACE) -G -s prov.d test.o\ntest: test.o prov.o\n\t$(CC) -o $@ $^\n")
	b.Must(t, "make", "DTRACE="+b.dtrace)
	b.Must(t, "make", "-q", "DTRACE="+b.dtrace)
	b.Must(t, "./test")
	before := b.Output(t, "sha256sum", "prov.o", "test.o", "prov.h")
	b.Must(t, b.dtrace, "-G", "-s", "prov.d", "test.o")
	expect.OK(t, os.Remove(filepath.Join(b.Directory, "prov.h")))
	b.Must(t, b.dtrace, "-h", "-s", "prov.d")
	expect.Equal(t, before, b.Output(t, "sha256sum", "prov.o", "test.o", "prov.h"), "made again")
	b.holds(t, "Makefile", "prov.d", "prov.h", "prov.o", "test", "test.c", "test.o")
}

// Stubs are converted and listed as any others.
func TestStubs(t *testing.T) {
	b := newBuild(t)
	b.Must(t, b.dtrace, "-h", "-x", "stubs", "-s", source(t, "shop.d"))
	b.Must(t, "gcc", "-O2", "-DWORDS", "-I.", "-c", source(t, "shop.c"), "-o", "a.o")
	b.Must(t, converter, "--stapsdt", "a.o")
	b.Must(t, converter, "stubs", "-o", "stubs.o", "a.o")
	b.Must(t, "gcc", "a.o", "stubs.o", "-o", "a.out")
	b.Must(t, "./a.out")
	list := b.Output(t, converter, "list", "a.out")
	for _, want := range []string{"order-placed", "sent", "empty", "wide", "only-tested"} {
		expect.Contains(t, list, want+"\n", "%s is missing", want)
	}
	if got := forms(t, filepath.Join(b.Directory, "a.out")); len(got) != 8 {
		t.Errorf("%q", got)
	}
}

var converter string

func TestMain(m *testing.M) {
	tools.MostlyWait()
	tools.Main(m, `TestNotesAreSystemTaps|TestDOFLinks|TestLinks`, &converter, nil)
}

// write writes a file of a directory.
func write(t *testing.T, directory, name, text string) string {
	t.Helper()
	path := filepath.Join(directory, name)
	disk.Write(t, path, text)
	return path
}

// source returns a file of testdata.
func source(t *testing.T, name string) string {
	t.Helper()
	return expect.Value(filepath.Abs(filepath.Join("testdata", name)))(t)
}

// directoryWith makes a directory with the header of the program's provider.
func directoryWith(t *testing.T, flags ...string) string {
	t.Helper()
	directory := t.TempDir()
	tools.Command{Directory: directory}.Must(t, converter, append([]string{"provider", "-h", "-s", source(t, "shop.d")}, flags...)...)
	return directory
}

// strict are the warnings that are errors.
var strict = []string{"-Wall", "-Wextra", "-Wpedantic", "-Werror"}

var (
	compilers    = []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang}
	standards    = []string{"gnu89", "c99", "gnu11", "c17", "c2x"}
	cxxStandards = []string{"c++11", "gnu++14", "c++17", "c++20", "c++2b"}
)

// The header compiles without a warning, twice, alone and beside SystemTap's.
func TestStandards(t *testing.T) {
	all := product.New("compiler", "standard", "header")
	for i, flags := range [][]string{nil, {"-x", "stubs"}} {
		directory := directoryWith(t, flags...)
		for _, c := range compilers {
			for _, std := range slices.Concat(standards, cxxStandards) {
				// As go test calls the second of a name, also in runs without the first.
				name := c.Name + "/" + std + []string{"", "#01"}[i]
				all.Add(name, []string{c.Name, std, strings.Join(flags, " ")}, func(t *testing.T) {
					t.Parallel()
					checkStandard(t, c, std, directory, stubArguments(flags))
				})
			}
		}
	}
	all.Run(t)
}

func checkStandard(t *testing.T, c toolchains.Compiler, std, directory string, arguments []string) {
	t.Helper()
	command := toolchains.AMD64.CC(c)
	if strings.Contains(std, "++") {
		command = append(toolchains.AMD64.CXX(c), "-xc++")
	}
	tools.Need(t, command[0])
	for _, mode := range [][]string{{"-O0", "-DBEFORE"}, {"-O2", "-DAFTER"}, {"-O2", "-fPIC"}} {
		words := slices.Concat(command[1:], []string{"-std=" + std}, strict, mode, arguments, []string{"-I" + directory, "-c", source(t, "shop.c"), "-o", filepath.Join(t.TempDir(), "a.o")})
		tools.Must(t, command[0], words...)
	}
}

// stubArguments keeps the program to what is a word.
func stubArguments(flags []string) []string {
	if flags == nil {
		return nil
	}
	return []string{"-DWORDS"}
}

var (
	noteLine = regexp.MustCompile(`(?m)(?:^|\s)    (Provider|Name|Arguments): ?(.*)$`)
	place    = regexp.MustCompile(`@\S*`)
)

// forms returns the notes of a file: provider, name, and size and sign of each argument,
// sorted.
func forms(t testing.TB, path string) (all []string) {
	t.Helper()
	note := ""
	for _, m := range noteLine.FindAllStringSubmatch(tools.Output(t, "readelf", "-nW", path), -1) {
		note += m[2] + " "
		if m[1] == "Arguments" {
			all = append(all, place.ReplaceAllString(strings.TrimSpace(note), "@"))
			note = ""
		}
	}
	slices.Sort(all)
	return all
}

// The notes say what those of SystemTap's header say for the same source, but that a number in floating
// point is one: no tracer reads an argument of such a note.
func TestNotesAreSystemTaps(t *testing.T) {
	tools.Need(t, "/usr/bin/dtrace", "readelf")
	ours, theirs := directoryWith(t), t.TempDir()
	tools.Command{Directory: theirs}.Must(t, "/usr/bin/dtrace", "-h", "-s", source(t, "shop.d"), "-o", "shop.h")
	for _, c := range compilers {
		for _, command := range [][]string{toolchains.AMD64.CC(c), append(toolchains.AMD64.CXX(c), "-xc++")} {
			for _, level := range []string{"-O0", "-O2"} {
				t.Run(strings.Join(command, "")+level, func(t *testing.T) {
					tools.Need(t, command[0])
					var got [2][]string
					for i, directory := range []string{ours, theirs} {
						out := filepath.Join(t.TempDir(), "a.o")
						tools.Must(t, command[0], slices.Concat(command[1:], []string{level, "-I" + directory, "-c", source(t, "shop.c"), "-o", out})...)
						got[i] = forms(t, out)
					}
					for i := range got[1] {
						got[1][i] = strings.ReplaceAll(got[1][i], "f@", "@")
					}
					if diff := cmp.Diff(got[1], got[0]); diff != "" || len(got[0]) < 8 {
						t.Errorf("%d notes: %s", len(got[0]), diff)
					}
				})
			}
		}
	}
}

// macrosOf returns the macros that fire a probe, of a header.
func macrosOf(text string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#define (P_\w+)\(`).FindAllStringSubmatch(text, -1) {
		if !strings.HasSuffix(m[1], "_ENABLED") {
			names = append(names, m[1])
		}
	}
	return names
}

func (b build) read(t *testing.T, name string) string {
	t.Helper()
	return string(disk.Read(t, filepath.Join(b.Directory, name)))
}

// Macros, headers of the project and of the system, and -D, -U, -I, -H and their forms of -x.
func TestMacros(t *testing.T) {
	b := newBuild(t)
	expect.OK(t, os.Mkdir(filepath.Join(b.Directory, "inc"), 0o777))
	b.write(t, "inc/t.h", "#pragma once\n#include <sys/types.h>\n#define T pid_t *\n")
	b.write(t, "-p.d", `#include "t.h"
#include <t.h>
#define PROBE(n, ...) probe n(__VA_ARGS__)
#define JOIN(a, b) a##__##b
#pragma D attributes Evolving/Evolving/Common provider p provider
provider p { /* it's */
	PROBE(JOIN(a, b), T, int) ; // it's
#if A == 2 && !defined(B) && defined C && !defined(D)
	PROBE(c);
#endif
	probe linux(size_t unix);
};
`)
	out := b.Must(t, b.dtrace, "-hs", "-p.d", "-C", "-Iinc", "-DA=1", "-UA", "-D", "A=2", "-D B", "-x", "undef=B", "-xdefine=C", "-xundef=D", "-H", "-o", "p.h")
	if !regexp.MustCompile(`(?m)^\. inc/t.h$`).MatchString(out) {
		t.Errorf("-H shows %s", out)
	}
	expect.Equal(t, []string{"P_A_B", "P_C", "P_LINUX"}, macrosOf(b.read(t, "p.h")))
}

// A compiler that writes dependencies writes them not over the provider file.
func TestDependencies(t *testing.T) {
	b := newBuild(t)
	b.write(t, "p.d", "provider p { probe a(); };\n")
	for _, env := range []string{"CC=gcc -MMD", "CC=gcc -MD -MP -MF p.d", "CPP=gcc -E -MMD"} {
		b.Env = []string{env, "CFLAGS=-MMD"}
		b.Must(t, b.dtrace, "-C", "-h", "-s", "p.d")
		if text := b.read(t, "p.d"); text != "provider p { probe a(); };\n" {
			t.Fatalf("%s: %s", env, text)
		}
	}
	b.holds(t, "p.d", "p.h")
}

// Faults are told with the lines of the original, those of the compiler and those of D.
func TestPlaces(t *testing.T) {
	b := newBuild(t)
	b.write(t, "x.d", "#include \"d.h\"\n")
	b.write(t, "d.h", "\n\nprovider q { probe x(); probe x(); };\n")
	b.write(t, "e.d", "#define M(x) x\n/* a\n b */\n#error no\n")
	b.write(t, "f.d", "#define T int\n#include <sys/types.h>\nprovider f {\n\tprobe a(T);\n\tprobe a(T);\n\tprobe (T);\n};\n")
	for name, want := range map[string]string{
		"x.d": "^sdtconvert: d.h:3:31: probe x is declared twice, first at d.h:3:20; remove one\n$",
		"e.d": "(?s)^e.d:4:2: error: #error no\n.*sdtconvert: e.d: -C: cc -E: exit status 1\n$",
		"f.d": "^sdtconvert: f.d:6:8: a probe has a name, and here is \"\\(\"\n$",
	} {
		out, err := b.Try(b.dtrace, "-C", "-h", "-s", name, "-o", "out.h")
		if err == nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: %v, %s, want %s", name, err, out, want)
		}
	}
	disk.Absent(t, filepath.Join(b.Directory, "out.h"))
}

// A signal that ends the program ends the compiler and what that runs.
func TestCompilerIsEnded(t *testing.T) {
	b := newBuild(t)
	b.write(t, "p.d", "provider p { probe a(); };\n")
	b.write(t, "cpp", "#!/bin/sh\ntest $1 = -dumpmachine && exit 1\nsleep 1000 & echo $! >child.tmp; mv child.tmp child; wait\n")
	expect.OK(t, os.Chmod(filepath.Join(b.Directory, "cpp"), 0o777))
	cmd := exec.Command(b.dtrace, "-C", "-h", "-s", "p.d", "-x", "cpppath=./cpp")
	cmd.Dir = b.Directory
	expect.OK(t, cmd.Start())
	child := ""
	expect.Soon(t, func() bool {
		text, err := os.ReadFile(filepath.Join(b.Directory, "child"))
		child = strings.TrimSpace(string(text))
		return err == nil
	}, "the compiler has started")
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err == nil {
		t.Error("ended well")
	}
	expect.Soon(t, func() bool {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, "the compiler's child has ended")
	b.holds(t, "child", "cpp", "p.d")
}
