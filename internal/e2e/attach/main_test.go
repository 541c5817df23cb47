package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.MostlyWait()
	tools.Main(m, `TestLinks|TestNotesAlone|TestDTraceLinks`, &converter, nil)
}

// compiler is a C and a C++ compiler for a machine. What both make g++ links.
type compiler struct {
	machine *toolchains.Machine
	cc      toolchains.Compiler
}

var (
	gcc           = compiler{toolchains.AMD64, toolchains.GCC}
	clang         = compiler{toolchains.AMD64, toolchains.Clang}
	arm, armClang = compiler{toolchains.ARM, toolchains.GCC}, compiler{toolchains.ARM, toolchains.Clang}
	arm64         = compiler{toolchains.ARM64, toolchains.GCC}
	i386          = compiler{toolchains.I386, toolchains.GCC}
	ppc64         = compiler{toolchains.PPC64, toolchains.GCC}
	ppc64le       = compiler{toolchains.PPC64LE, toolchains.GCC}
	riscv64       = compiler{toolchains.RISCV64, toolchains.GCC}
	s390x         = compiler{toolchains.S390X, toolchains.GCC}
	linkers       = toolchains.AMD64.Newest()
)

func (c compiler) driver() string { return c.machine.Tool("g++") }

// program is the test program's objects.
type program struct {
	compiler
	dir    string
	probed []string // app.c, cxx.cc, cxx2.cc
	main   string
	rest   string // the probe objects
	stubs  string // what only the twin has
}

func (c compiler) compile(t *testing.T, dir, source string, flags ...string) string {
	t.Helper()
	name, command := filepath.Base(source), c.machine.CC(c.cc)
	if strings.HasSuffix(name, ".cc") {
		command = c.machine.CXX(c.cc)
	}
	out := filepath.Join(dir, strings.TrimSuffix(name, filepath.Ext(name))+".o")
	// Tracepoints are calls, as the twin's stubs print.
	args := append(command[1:], "-O2", "-fPIC", "-ffunction-sections", "-I"+include, "-DSDT_CALLS", "-DSDT_NO_SEMAPHORES")
	tools.Must(t, command[0], append(append(args, flags...), "-c", "-o", out, filepath.Join("testdata", source))...)
	return out
}

// compileProgram compiles the test program.
func compileProgram(t *testing.T, c compiler, flags ...string) program {
	t.Helper()
	tools.Need(t, c.machine.CC(c.cc)[0], c.machine.CXX(c.cc)[0], c.driver(), "readelf")
	p := program{compiler: c, dir: t.TempDir()}
	for _, source := range []string{"app.c", "cxx.cc", "cxx2.cc"} {
		p.probed = append(p.probed, c.compile(t, p.dir, source, flags...))
	}
	p.main = c.compile(t, p.dir, "main.c", "-g")
	p.rest, p.stubs = c.compile(t, p.dir, "objects.c"), c.compile(t, p.dir, "stubs.c")
	return p
}

// convert returns converted copies of the objects with probes.
func (p program) convert(t *testing.T, flags ...string) []string {
	t.Helper()
	return p.convertWith(t, append([]string{"--stapsdt"}, flags...)...)
}

// convertWith is convert with nothing but the given flags.
func (p program) convertWith(t *testing.T, flags ...string) []string {
	t.Helper()
	dir := filepath.Join(p.dir, "converted"+strings.ReplaceAll(strings.Join(flags, ""), "/", "_"))
	if _, err := os.Stat(dir); err != nil {
		args := append([]string{"convert", "--output-dir", dir}, flags...)
		tools.Must(t, converter, append(args, p.probed...)...)
	}
	var out []string
	for _, o := range p.probed {
		out = append(out, filepath.Join(dir, filepath.Base(o)))
	}
	return out
}

// linker returns the directory in which a compiler driver finds a linker as ld.
func linker(t *testing.T, l toolchains.Linker) string {
	t.Helper()
	tools.Need(t, l.Path)
	return tools.Driver(t, l.Path)
}

// image links objects, with the flags of a mode, to an image of the given name.
func (p program) image(t *testing.T, name string, flags []string, objects ...string) string {
	t.Helper()
	return expect.Value(p.tryImage(t, name, flags, objects...))(t)
}

// tryImage is image where the linker may fail.
func (p program) tryImage(t *testing.T, name string, flags []string, objects ...string) (string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	_, err := tools.Try(p.driver(), append(append(append([]string{}, flags...), objects...), "-o", out)...)
	return out, err
}

// executable links the converted program the usual way.
func (p program) executable(t *testing.T, flags ...string) string {
	t.Helper()
	return p.image(t, "program", []string{"-pie"}, append(p.convert(t, flags...), p.main, p.rest)...)
}

// library links the converted probes to a shared library, and a program with it.
func (p program) library(t *testing.T) (exe, lib string) {
	t.Helper()
	lib = p.image(t, "libprobed.so", []string{"-shared", "-Wl,-z,defs"}, append(p.convert(t), p.rest)...)
	return p.image(t, "program", []string{"-pie", "-Wl,-rpath," + filepath.Dir(lib)}, p.main, lib), lib
}

// calls returns the lines that the twin's stubs print when the probes are run n
// times.
func (p program) calls(t *testing.T, n int) []string {
	t.Helper()
	return p.twinUnder(t, n)
}

// twinUnder is calls for a machine that is emulated.
func (p program) twinUnder(t *testing.T, n int, emulator ...string) []string {
	t.Helper()
	twin := p.image(t, "twin", []string{"-static"}, append(append([]string{}, p.probed...), p.main, p.rest, p.stubs)...)
	out := tools.Must(t, "sh", "-c", fmt.Sprintf("yes | head -n %d | %s %s", n, strings.Join(emulator, " "), twin))
	return strings.Split(strings.TrimSpace(strings.TrimPrefix(out, "ready\n")), "\n")
}
