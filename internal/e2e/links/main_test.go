package links

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var (
	sources   = objects.Directory()
	files     shared.Files // what the tests make
	converter string
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestForeign|TestArm$|TestI386|TestMerge$|TestGC$|TestSemaphores|TestStubs$|TestRandomRegisters`, &converter, func(directory string) error {
		files.Directory = directory
		return nil
	})
}

// machine is what programs are built for and run on.
type machine struct {
	*toolchains.Machine
	linkers []toolchains.Linker
	exact   bool // a linked site is where its twin's is
	brief   bool // each linker links in each mode, but in one layout: others show what differs
}

// briefly are the machines whose tests are brief.
var briefly = []*toolchains.Machine{toolchains.ARM, toolchains.LOONG64, toolchains.PPC64, toolchains.PPC64LE, toolchains.S390X}

// of returns a machine with the linkers that its programs are linked with: all for the
// native one, for others the newest.
func of(m *toolchains.Machine) *machine {
	linkers := m.Newest()
	if m.Native() {
		linkers = m.Linkers()
	}
	return &machine{Machine: m, linkers: linkers, exact: !m.Relaxes, brief: slices.Contains(briefly, m)}
}

var (
	amd64, arm     = of(toolchains.AMD64), of(toolchains.ARM)
	arm64, i386    = of(toolchains.ARM64), of(toolchains.I386)
	loong64        = of(toolchains.LOONG64)
	ppc64, ppc64le = of(toolchains.PPC64), of(toolchains.PPC64LE)
	riscv64, s390x = of(toolchains.RISCV64), of(toolchains.S390X)
)

// x86 reports whether instructions are those of x86, of either class.
func (m *machine) x86() bool { return m.Machine == toolchains.AMD64 || m.Machine == toolchains.I386 }

// objdump returns that of binutils, or LLVM's where there are no binutils.
func (m *machine) objdump() string {
	if m.Has(toolchains.GCC) {
		return m.Tool("objdump")
	}
	return toolchains.LLVM("llvm-objdump")
}

// addr2line returns that of the machine, which knows its relocations, or the native one.
func (m *machine) addr2line() string {
	if m.Has(toolchains.GCC) {
		return m.Tool("addr2line")
	}
	return "addr2line"
}

// driver returns the compiler that links, clang where there is no gcc.
func (m *machine) driver() []string {
	if m.Has(toolchains.GCC) {
		return m.CXX(toolchains.GCC)
	}
	return m.CXX(toolchains.Clang)
}

// foreign are the machines whose programs run under an emulator.
var foreign = func() (all []*machine) {
	for _, m := range toolchains.Foreign() {
		all = append(all, of(m))
	}
	return all
}()

// need is tools.Need for the tools that every test of a machine takes.
func (m *machine) need(t *testing.T) {
	t.Helper()
	m.Need(t)
	tools.Need(t, m.objdump(), m.addr2line())
}

// compiler is a C and a C++ compiler with flags for both.
type compiler struct {
	machine *machine
	cc      toolchains.Compiler
	flags   []string
	calls   []string // more of them, for calls.c alone
}

func (c compiler) String() string {
	words := append([]string{c.machine.Name, c.cc.Name}, c.flags...)
	return strings.Join(append(words, c.calls...), " ")
}

// compilerDimensions are the dimensions of a compiler's values.
var compilerDimensions = []string{"machine", "compiler", "flags", "flags of calls"}

// dimensions returns those of a product of compilers and more.
func dimensions(more ...string) []string { return slices.Concat(compilerDimensions, more) }

// values returns one of each of compilerDimensions.
func (c compiler) values() []string {
	return []string{c.machine.Name, c.cc.Name, strings.Join(c.flags, " "), strings.Join(c.calls, " ")}
}

// with returns the compiler with more flags.
func (c compiler) with(flags ...string) compiler {
	c.flags = append(append([]string{}, c.flags...), flags...)
	return c
}

// here leaves out what is compiled for machines that the suite has no C library for.
func here(all ...compiler) []compiler {
	return slices.DeleteFunc(all, func(c compiler) bool { return !c.machine.Has(toolchains.GCC) })
}

func (c compiler) need(t *testing.T) {
	t.Helper()
	c.machine.need(t)
	tools.Need(t, c.machine.CC(c.cc)[0], c.machine.CXX(c.cc)[0])
}

// parallel is need for a test that runs beside others, and takes more tools.
func (c compiler) parallel(t *testing.T, more ...string) {
	t.Helper()
	t.Parallel()
	c.need(t)
	tools.Need(t, more...)
}

// object compiles a source of testdata/objs or of this package's testdata.
func (c compiler) object(t *testing.T, source string, flags ...string) string {
	t.Helper()
	path := filepath.Join(sources, source)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join("testdata", source)
	}
	return c.compile(t, path, flags...)
}

// compile compiles any source.
func (c compiler) compile(t *testing.T, path string, flags ...string) string {
	t.Helper()
	args := c.machine.CC(c.cc)
	if filepath.Ext(path) == ".cc" {
		args = c.machine.CXX(c.cc)
	}
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ".o"
	return expect.Value(files.Run(base, args[0], slices.Concat(args[1:], c.flags, flags, []string{"-c", path})...))(t)
}

// generate runs the program, which writes a file, once for all tests that give it these words.
func generate(t *testing.T, base string, words ...string) string {
	t.Helper()
	return expect.Value(files.Run(base, converter, words...))(t)
}

// convert converts a copy of an object, to records alone unless flags ask for notes.
func convert(t *testing.T, object string, flags ...string) string {
	t.Helper()
	return generate(t, filepath.Base(object), append(tools.RecordsAlone(flags...), object)...)
}

func convertAll(t *testing.T, objects []string, flags ...string) []string {
	t.Helper()
	var converted []string
	for _, o := range objects {
		converted = append(converted, convert(t, o, flags...))
	}
	return converted
}

// program is the test program's objects.
type program struct {
	machine *machine
	probed  []string // converted, but in the twin
	probes  string   // the probe objects
	show    string   // that shows the records of one layout
	idle    string   // the same for the twin, which has none
	stubs   string   // what only the twin has
	starter string   // main, where the probed main is in a library
}

// compileProgram compiles the test program for an image that holds main, or for
// a library that does not.
func compileProgram(t *testing.T, c compiler, l layout, library bool) program {
	t.Helper()
	var rename []string
	if library {
		rename = []string{"-Dmain=program_main"}
	}
	base := compiler{machine: c.machine, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
	return program{
		machine: c.machine,
		probed: []string{
			c.object(t, "program.c", rename...), c.with(c.calls...).object(t, "calls.c"),
			c.object(t, "comdat.cc"), c.object(t, "program2.cc"),
		},
		probes: base.object(t, "probes.c"),
		show:   base.object(t, "show.c", "-DLAYOUT="+l.show),
		idle:   base.object(t, "show.c", "-DLAYOUT="+pairs.show),
		// Hidden, so that every linker calls them directly.
		stubs:   base.with(c.ofSameSet()...).object(t, "stubs.c", "-fvisibility=hidden"),
		starter: base.object(t, "main.c"),
	}
}

// twin and converted are the objects of the two programs.
func (p program) twin() []string {
	return append(slices.Clone(p.probed), p.probes, p.idle, p.stubs)
}

func (p program) converted(t *testing.T, flags ...string) []string {
	t.Helper()
	return append(convertAll(t, p.probed, flags...), p.probes, p.show)
}

// link links an image with a linker, through g++. The result is shared by the
// tests that link the same objects with the same flags.
func link(m *machine, ld toolchains.Linker, base string, flags []string, objects ...string) (string, error) {
	dir, err := files.Driver(ld.Path)
	if err != nil {
		return "", err
	}
	driver := m.driver()
	return files.Run(base, driver[0], slices.Concat(driver[1:], []string{"-B" + dir}, flags, m.LinkFlags, objects)...)
}

// merge links objects to one object, with -r.
func merge(ld toolchains.Linker, flags []string, objects ...string) (string, error) {
	return files.Run("merged.o", ld.Path, slices.Concat([]string{"-r"}, flags, objects)...)
}

// outcome is what a program printed, and the records that show.c showed.
type outcome struct {
	stdout  string
	records []string
}

// run runs a program, with preloaded libraries where there are any.
func run(m *machine, path string, preload ...string) (outcome, error) {
	args := m.Command(path)
	env := []string{"LINKTEST_SHOW=1"}
	if preload != nil {
		env = append(env, "LD_PRELOAD="+strings.Join(preload, ":"))
	}
	stdout, stderr, err := tools.Command{Env: env}.Apart(args[0], args[1:]...)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{stdout: stdout}
	for _, match := range shown.FindAllStringSubmatch(stderr, -1) {
		id := strings.ReplaceAll(match[3], "-", "__")
		if match[2] != "sdt" {
			id = match[2] + "___" + id
		}
		o.records = append(o.records, match[1]+" "+id+" "+match[4])
	}
	slices.Sort(o.records)
	return o, nil
}

var shown = regexp.MustCompile(`(?m)^record (\w+) (\S+) (\S+) (0x[0-9a-f]+)$`)

// expected returns what the test program prints.
func expected(t *testing.T) string {
	t.Helper()
	return string(disk.Read(t, filepath.Join(sources, "program.expect")))
}

// linkAndRun links a program that has to run, and opens it.
func linkAndRun(t *testing.T, m *machine, ld toolchains.Linker, base string, flags []string, objects ...string) *image {
	t.Helper()
	exe := expect.Value(link(m, ld, base, flags, objects...))(t)
	expect.Value(run(m, exe))(t)
	return openImage(t, exe)
}

// checkRun runs a converted program and compares the records that it sees with
// those of the images on disk.
func checkRun(t *testing.T, m *machine, path, want string, im *image, sites []site) {
	t.Helper()
	o := expect.Value(run(m, path))(t)
	expect.Equal(t, want, o.stdout, "%s prints", path)
	var records []string
	for _, s := range sites {
		records = append(records, fmt.Sprintf("%s %s %#x", s.kind, s.id, s.addr-im.header(t)))
	}
	slices.Sort(records)
	if !slices.Equal(o.records, records) {
		t.Errorf("%s sees the records\n%s\nnot\n%s", path, strings.Join(o.records, "\n"), strings.Join(records, "\n"))
	}
}
