package links

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

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

// address is one with as many bits as the machine has.
func (m *machine) address(a uint64) uint64 {
	if m.Machine == toolchains.I386 || m.Machine == toolchains.ARM {
		return uint64(uint32(a))
	}
	return a
}

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
