package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// The tests compile, convert and link with the real tools, do what breaks probes in
// real builds, and look at what sdtconvert check makes of it.

var (
	converter string
	sources   = tools.Root("internal", "check", "testdata")
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestClean|TestLive|TestDead|TestMixed|TestMissing|TestDuplicate|TestChanged|TestRemoved|TestDropped|TestImportedStub|TestSemaphore`, &converter, nil)
}

// toolchain compiles for one machine.
type toolchain struct {
	name    string
	machine *toolchains.Machine
	cc      toolchains.Compiler
	cxx     bool // compiles as C++
}

// combinations are those that the suite has gcc for.
var combinations = slices.DeleteFunc([]toolchain{
	{"amd64-gcc-c", toolchains.AMD64, toolchains.GCC, false},
	{"amd64-clang-cxx", toolchains.AMD64, toolchains.Clang, true},
	{"arm-gcc-c", toolchains.ARM, toolchains.GCC, false},
	{"arm-clang-cxx", toolchains.ARM, toolchains.Clang, true},
	{"arm64-gcc-cxx", toolchains.ARM64, toolchains.GCC, true},
	{"arm64-clang-c", toolchains.ARM64, toolchains.Clang, false},
	{"i386-gcc-cxx", toolchains.I386, toolchains.GCC, true},
	{"i386-clang-c", toolchains.I386, toolchains.Clang, false},
	{"loong64-gcc-c", toolchains.LOONG64, toolchains.GCC, false},
	{"ppc64-gcc-c", toolchains.PPC64, toolchains.GCC, false},
	{"ppc64le-gcc-c", toolchains.PPC64LE, toolchains.GCC, false},
	{"riscv64-gcc-c", toolchains.RISCV64, toolchains.GCC, false},
	{"s390x-gcc-c", toolchains.S390X, toolchains.GCC, false},
}, func(tc toolchain) bool { return !tc.machine.Has(toolchains.GCC) })

// compiler returns the command of the compiler.
func (tc toolchain) compiler() []string {
	if tc.cxx {
		return tc.machine.CXX(tc.cc)
	}
	return tc.machine.CC(tc.cc)
}

// driver returns the compiler that links.
func (tc toolchain) driver() string {
	if tc.cxx {
		return tc.machine.Tool("g++")
	}
	return tc.machine.Tool("gcc")
}

func TestMachinesAreCovered(t *testing.T) {
	var all []*toolchains.Machine
	for _, tc := range combinations {
		all = append(all, tc.machine)
	}
	toolchains.Covers(t, all...)
}

// build is a directory in which a test builds with one toolchain.
type build struct {
	*testing.T
	toolchain
	directory string
}

// eachToolchain runs a test with some toolchains: the rules are the same for all.
func eachToolchain(t *testing.T, test func(b *build)) {
	for _, tc := range product.Some(t.Name(), combinations, 3) {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			test(newBuild(t, tc))
		})
	}
}

// eachNamed runs a test with the toolchains that a text is for.
func eachNamed(t *testing.T, texts map[string]string, test func(b *build, text string)) {
	for _, tc := range combinations {
		if text, ok := texts[tc.name]; ok {
			t.Run(tc.name, func(t *testing.T) { test(newBuild(t, tc), text) })
		}
	}
}

func newBuild(t *testing.T, tc toolchain) *build {
	t.Helper()
	tools.Need(t, append(tc.machine.Tools("gcc", "g++"), tc.compiler()[0], toolchains.LLVM("llvm-objcopy"))...)
	return &build{t, tc, t.TempDir()}
}

// eachLinker runs a test with some linkers, one after the other in the directory.
func (b *build) eachLinker(test func(b *build, l toolchains.Linker)) {
	for _, l := range product.Some(b.Name(), b.machine.Newest(), 2) {
		b.Run(l.Name, func(t *testing.T) {
			tools.Need(t, l.Path)
			test(&build{t, b.toolchain, b.directory}, l)
		})
	}
}

func (b *build) path(name string) string { return filepath.Join(b.directory, name) }

// run runs a tool in the directory.
func (b *build) run(words ...string) {
	b.Helper()
	tools.Command{Directory: b.directory}.Must(b.T, words[0], words[1:]...)
}

func (b *build) write(name, text string) {
	b.Helper()
	disk.Write(b, b.path(name), text)
}

// compile makes out of a source of testdata, or of one that was written.
func (b *build) compile(out, source string, flags ...string) {
	b.Helper()
	if _, err := os.Stat(b.path(source)); err != nil {
		source = filepath.Join(sources, source)
	}
	words := slices.Concat(b.compiler(), []string{"-O2", "-g", "-fPIC", "-fno-inline", "-I" + include, "-I" + sources, "-DSDT_CALLS", "-DSDT_NO_SEMAPHORES"})
	if b.cxx {
		words = append(words, "-x", "c++", "-std=c++17")
	}
	b.run(append(append(words, flags...), "-c", "-o", out, source)...)
}

// convert runs the program. Conversions make records alone unless a flag asks for notes.
func (b *build) convert(words ...string) {
	b.Helper()
	if !slices.Contains([]string{"stubs", "sites", "provider"}, words[0]) {
		words = tools.RecordsAlone(words...)
	}
	b.run(append([]string{converter}, words...)...)
}

// compiled makes the objects of the program in testdata.
func (b *build) compiled(flags ...string) {
	b.Helper()
	b.compile("fire.o", "fire.c", flags...)
	b.compile("define.o", "define.c", flags...)
}

// program makes the converted objects of the program in testdata.
func (b *build) program() {
	b.Helper()
	b.compiled()
	b.convert("fire.o", "define.o")
}

// link links with the compiler's driver.
func (b *build) link(l toolchains.Linker, out string, words ...string) {
	b.Helper()
	b.run(append([]string{b.driver(), "-B" + tools.Driver(b.T, l.Path), "-o", out}, words...)...)
}

// finding is what tests compare of a finding.
type finding struct {
	Rule, Severity, File, Section, Address, Function, Source, Probe, Message string
	Line                                                                     int
}

type report struct {
	Findings []finding
	Errors   []string
}

// check runs sdtconvert check, whose exit status has to be right.
func (b *build) check(words ...string) report {
	b.Helper()
	ran := tools.Command{Directory: b.directory}.Result(b, converter, append([]string{"check", "--format=json"}, words...)...)
	var r report
	expect.OK(b, json.Unmarshal([]byte(ran.Stdout), &r))
	isError := func(f finding) bool { return f.Severity == "error" }
	want := 0
	switch {
	case len(r.Errors) > 0:
		want = 3
	case slices.ContainsFunc(r.Findings, isError):
		want = 1
	}
	expect.Equal(b, want, ran.Status, "check %q: exit status, with %s", words, ran.Stdout)
	return r
}

// finds checks which findings there are: rule, file, function and probe of each,
// sorted.
func (b *build) finds(want []string, words ...string) []finding {
	b.Helper()
	return b.compare(want, func(f finding) string { return fmt.Sprintf("%s %s %s %s", f.Rule, f.File, f.Function, f.Probe) }, words...)
}

// findsProbes is finds without the function, which is that of the first site: linkers order sites.
func (b *build) findsProbes(want []string, words ...string) {
	b.Helper()
	b.compare(want, func(f finding) string { return f.Rule + " " + f.File + " " + f.Probe }, words...)
}

func (b *build) compare(want []string, text func(finding) string, words ...string) []finding {
	b.Helper()
	r := b.check(words...)
	got := []string{}
	for _, f := range r.Findings {
		got = append(got, text(f))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(r.Errors) > 0 {
		b.Errorf("check %s: %s\n%v\n%+v", strings.Join(words, " "), diff, r.Errors, r.Findings)
	}
	return r.Findings
}

// message checks that there is one finding, and a part of its message.
func (b *build) message(found []finding, part string) {
	b.Helper()
	if len(found) != 1 || !strings.Contains(found[0].Message, part) {
		b.Errorf("want one finding with %q: %+v", part, found)
	}
}

// clean checks that nothing is found.
func (b *build) clean(words ...string) {
	b.Helper()
	b.finds([]string{}, words...)
}

// defines reports whether a file has a symbol.
func (b *build) defines(name, symbol string) bool {
	b.Helper()
	for _, line := range strings.Split(b.output(b.machine.Tool("nm"), name), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[2] == symbol {
			return true
		}
	}
	return false
}

// names writes the names of the probes of files into names.txt, and returns the flag that requires them.
func (b *build) names(files ...string) string {
	b.Helper()
	b.write("names.txt", b.output(append([]string{converter, "list", "--names"}, files...)...))
	return "--require=@names.txt"
}

// output runs a tool in the directory, and returns its standard output.
func (b *build) output(words ...string) string {
	b.Helper()
	return tools.Command{Directory: b.directory}.Output(b.T, words[0], words[1:]...)
}
