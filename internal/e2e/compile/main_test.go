package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string // the program
	launcher  string // it, under the name by which it runs a compiler
	sources   = tools.Root("internal", "e2e", "compile", "testdata")
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestRandomCompilations|TestMake|TestSignals$`, &converter, func(directory string) error {
		launcher = filepath.Join(directory, "sdtconvert-cc")
		return os.Symlink(converter, launcher)
	})
}

// build is a directory with the sources, and commands that run there.
type build struct {
	tools.Command
	t *testing.T
}

func newBuild(t *testing.T) *build {
	t.Helper()
	return newBuildIn(t, t.TempDir())
}

// parallelBuild is newBuild for a test that runs beside others and takes gcc, and more tools.
func parallelBuild(t *testing.T, more ...string) *build {
	t.Helper()
	t.Parallel()
	tools.Need(t, append(more, "gcc")...)
	return newBuild(t)
}

func newBuildIn(t *testing.T, directory string) *build {
	t.Helper()
	expect.OK(t, os.CopyFS(directory, os.DirFS(sources)))
	return &build{tools.Command{Directory: directory}, t}
}

// must runs a program, which has to succeed.
func (b *build) must(program string, args ...string) string {
	b.t.Helper()
	return b.Must(b.t, program, args...)
}

func (b *build) path(name string) string { return filepath.Join(b.Directory, name) }

func (b *build) read(name string) string {
	b.t.Helper()
	return string(disk.Read(b.t, b.path(name)))
}

func (b *build) write(name, text string) {
	b.t.Helper()
	expect.OK(b.t, os.WriteFile(b.path(name), []byte(text), 0o777))
}

func (b *build) remove(names ...string) {
	b.t.Helper()
	for _, name := range names {
		expect.OK(b.t, os.RemoveAll(b.path(name)))
	}
}

func (b *build) exists(name string) bool {
	_, err := os.Lstat(b.path(name))
	return err == nil
}

// converted returns the object that a compiler makes of a source by itself, converted with
// flags.
func (b *build) converted(source string, compiler []string, flags ...string) string {
	b.t.Helper()
	object := filepath.Join(b.t.TempDir(), "object.o")
	args := append(compiler[1:len(compiler):len(compiler)], "-c", source, "-o", object)
	b.must(compiler[0], args...)
	b.must(converter, append(flags, object)...)
	return string(disk.Read(b.t, object))
}

// same checks that an object of the build is the one that converted returns.
func (b *build) same(object, want string) {
	b.t.Helper()
	if b.read(object) != want {
		b.t.Errorf("%s is not what the compiler makes and sdtconvert converts", object)
	}
}

// The lines of docs/builds.md, for each build system.

const program = `
#include "head.h"
#include <stdio.h>

struct probe { void *object; unsigned long address; };
extern struct probe __start_sdt_instances_set[], __stop_sdt_instances_set[];
int guard(int);
int probe(int);

int main(int argc, char **argv)
{
	__dtrace_probe_app___go(argc);
	printf("%d records\n", (int)(__stop_sdt_instances_set - __start_sdt_instances_set));
	return guard(probe(0)) != 1;
}
`

// programBuild is a directory with a program of three sources, and the object that its link
// lacks.
func programBuild(t *testing.T) *build {
	t.Helper()
	b := newBuild(t)
	b.write("main.c", program)
	b.must(converter, "stubs", "-o", "probes.o", b.stubbed())
	return b
}

// stubbed makes an object with all probes of the program.
func (b *build) stubbed() string {
	b.t.Helper()
	b.must("gcc", "-r", "-o", "all.o", "main.c", "guard.c", "probe.c")
	b.must(converter, "all.o")
	return "all.o"
}

// records checks that a program prints how many records it has.
func (b *build) records(program string) {
	b.t.Helper()
	if out := b.must(b.path(program)); out != "4 records\n" {
		b.t.Errorf("%s prints %q", program, out)
	}
}

const makefile = `
OBJECTS = main.o guard.o probe.o
program: $(OBJECTS)
	$(CC) $(LDFLAGS) -o $@ $(OBJECTS) probes.o
%.o: %.c
	$(CC) $(CFLAGS) -MMD -c -o $@ $<
-include $(OBJECTS:.o=.d)
`

// Converted objects go through sdtconvert ld as they are, and the program is the one that a
// link of unconverted objects makes.
func TestLink(t *testing.T) {
	b := parallelBuild(t)
	b.write("main.c", program)
	b.write("linker", "#!/bin/sh\necho \"$@\" >words\nexec ld \"$@\"\n")
	wrapper := filepath.Join(t.TempDir(), "ld")
	expect.OK(t, os.Symlink(converter, wrapper))
	link := func(name string) {
		linked := *b
		linked.Env = []string{"SDTCONVERT_LD=" + b.path("linker")}
		linked.must("gcc", "-B"+filepath.Dir(wrapper), "-o", name, "main.o", "guard.o", "probe.o")
		b.records(name)
	}
	b.must("gcc", "-c", "main.c", "guard.c", "probe.c")
	link("late")
	expect.Contains(t, b.read("words"), "guard.o", "the linker's words")
	b.must(converter, "cc", "--", "gcc", "-c", "main.c", "guard.c", "probe.c")
	link("early")
	expect.Contains(t, b.read("words"), " main.o guard.o probe.o ", "a copy is linked")
	if b.read("late") != b.read("early") {
		t.Error("the programs are different")
	}
}

// A compiler that links sources at once leaves no program with unconverted tracepoints, but for one that it links through the
// wrapper, or that has none.
func TestCompileAndLink(t *testing.T) {
	b := parallelBuild(t)
	b.write("plain.c", "int main(void) { return 0; }\n")
	b.write("one.c", "#include <sdt.h>\nint main(void) { DTRACE_PROBE(app___one); return 0; }\n")
	wrapper := filepath.Join(t.TempDir(), "ld")
	expect.OK(t, os.Symlink(converter, wrapper))
	include := "-I" + tools.Root("include")
	for _, output := range []string{"program", "a.out"} {
		args := []string{"cc", "--", "gcc", include, "one.c", "-o", output}
		if output == "a.out" {
			args = args[:len(args)-2]
		}
		out, err := b.Try(converter, args...)
		if err == nil || !strings.Contains(out, output+": holds tracepoints that were not converted") || b.exists(output) {
			t.Errorf("%s: %v, %s", output, err, out)
		}
	}
	b.write("program", "old\n")
	b.must(converter, "cc", "--", "gcc", include, "-fsyntax-only", "one.c", "-o", "program")
	expect.Equal(t, "old\n", b.read("program"))
	b.must(converter, "cc", "--", "gcc", include, "plain.c", "-o", "program")
	b.must(converter, "cc", "--", "gcc", include, "-B"+filepath.Dir(wrapper), "one.c", "-o", "program")
	expect.Contains(t, b.must(converter, "list", "program"), "one")
	b.must(converter, "cc", "--", "gcc", include, "-c", "one.c")
	b.must(converter, "cc", "--", "gcc", "one.o", "-o", "program", "-Wl,--unresolved-symbols=ignore-all")
	// Nor does one that links objects alone, or makes a file that does not show tracepoints.
	b.must("gcc", include, "-c", "one.c")
	b.remove("program")
	for _, words := range [][]string{{"one.o"}, {include, "one.c", "-static", "-nostdlib", "-Wl,-e,main,--oformat=binary"}} {
		out, err := b.Try(converter, append([]string{"cc", "--", "gcc", "-o", "program"}, words...)...)
		if err == nil || !strings.Contains(out, "unconverted tracepoints") && !strings.Contains(out, "tracepoints that were not converted") || b.exists("program") {
			t.Errorf("%s: %v, %s", words, err, out)
		}
	}
	b.write("header.h", "int declared;\n")
	b.must(converter, "cc", "--", "gcc", "header.h", "-o", "header.h.gch")
}

// Versions of compilers and compilers for other machines, and a compiler in the current
// directory.
func TestCompilers(t *testing.T) {
	t.Parallel()
	b := newBuild(t)
	for _, m := range toolchains.Machines {
		for _, c := range m.Compilers() {
			if c != toolchains.GCC && !m.Native() {
				continue
			}
			words := m.CC(c)
			tools.Need(t, words[0])
			b.remove("probe.o")
			b.must(converter, append(append([]string{"cc", "--"}, words...), "-O2", "-c", "probe.c")...)
			b.same("probe.o", b.converted("probe.c", append(words[:len(words):len(words)], "-O2")))
		}
	}
	tools.Need(t, "gcc")
	b.write("own", "#!/bin/sh\nexec gcc \"$@\"\n")
	b.remove("probe.o")
	b.Env = []string{"PATH=:" + os.Getenv("PATH")}
	b.must(converter, "cc", "--", "own", "-O2", "-c", "probe.c")
	b.same("probe.o", b.converted("probe.c", []string{"gcc", "-O2"}))
}

// Assemblers, relocatable links and compilers of D name objects in other ways than gcc -c.
func TestOtherOutputs(t *testing.T) {
	b := parallelBuild(t, "as", "ld", "ldc2", "nm")
	b.must("gcc", "-O2", "-S", "guard.c", "-o", "guard.s")
	b.must("gcc", "-O2", "-c", "probe.c", "-o", "part.o")
	b.write("d.d", `extern(C) void __dtrace_probe_app___go(int); extern(C) void fire() { __dtrace_probe_app___go(1); }`)
	for _, line := range []string{
		"as guard.s -o x.o", "as guard.s", "ld -r part.o -o x.o",
		"ldc2 -c -of=x.o d.d", "ldc2 -c -od=sub d.d",
	} {
		b.remove("x.o", "a.out", "sub/d.o")
		b.must(converter, append([]string{"cc", "--"}, strings.Fields(line)...)...)
		names, found := "", false
		for _, object := range []string{"x.o", "a.out", "sub/d.o"} {
			if b.exists(object) {
				found = true
				names += b.must("nm", object)
			}
		}
		if !found || strings.Contains(names, "__dtrace") || !strings.Contains(names, "sdt_app___go") {
			t.Errorf("%s: %s", line, names)
		}
	}
}

// Objects whose machine code the link generates stay as they are, with a warning unless the
// link is known to convert.
func TestObjectsForTheLink(t *testing.T) {
	t.Parallel()
	clang := toolchains.LLVM("clang")
	tools.Need(t, "gcc", clang)
	b := newBuild(t)
	wrappers := t.TempDir()
	expect.OK(t, os.Symlink(converter, filepath.Join(wrappers, "ld")))
	for _, c := range []struct {
		line string
		want string // "" for no warning
	}{
		{"gcc -flto -c guard.c", "guard.o: is GCC link-time optimisation code that holds probes, and left as it is; link it"},
		{clang + " -flto -c guard.c", "guard.o: is LLVM bitcode that holds probes, and left as it is; link it"},
		{"gcc -flto -ffat-lto-objects -c guard.c", "guard.o: its intermediate code for link-time optimisation stays unconverted"},
		{"gcc -flto -B" + wrappers + " -c guard.c", ""},
		{"gcc -flto -ffat-lto-objects -B " + wrappers + " -c guard.c", ""},
	} {
		out := b.must(converter, append([]string{"cc", "--"}, strings.Fields(c.line)...)...)
		if c.want == "" && out != "" || strings.Count(out, "\n") > 1 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %s", c.line, out)
		}
	}
}

// With -v, each object has a line.
func TestVerbose(t *testing.T) {
	b := parallelBuild(t)
	b.write("none.c", "int none;\n")
	for line, want := range map[string]string{
		"gcc -c guard.c":            "guard.o: .text+",
		"gcc -c none.c":             "sdtconvert: none.o: has nothing to convert\n",
		"gcc -S guard.c":            "sdtconvert: converts nothing: the command line names no object\n",
		"gcc -flto -c guard.c":      "link-time optimisation code",
		"gcc -c none.c -o x.o -###": "sdtconvert: converts nothing: the command line names no object\n",
		"gcc none.c -shared -o x.o": "sdtconvert: x.o: not a relocatable object, and left as it is\n",
		"true -c none.c":            "sdtconvert: none.o: not written by this compilation, and left as it is\n",
	} {
		expect.Contains(t, b.must(converter, append([]string{"cc", "-v", "--"}, strings.Fields(line)...)...), want, "%s", line)
	}
}
