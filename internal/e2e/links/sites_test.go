package links

import (
	"fmt"
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

// assembledSites returns the records of objects that stay as they are.
func assembledSites(t *testing.T, c compiler, objects []string, flags ...string) string {
	t.Helper()
	return c.compile(t, generate(t, "sites.s", slices.Concat([]string{"sites", "--asm"}, flags, objects)...))
}

// nameable are flags that leave every static function and every cold part in a
// section with a global function.
var nameable = []string{"-fno-function-sections", "-fno-reorder-functions", "-fno-reorder-blocks-and-partition"}

// siteCombinations returns the ways in which sources of sites are linked.
func siteCombinations() []combination {
	gcc := amd64Compiler(toolchains.GCC, append([]string{"-O2"}, nameable...)...)
	clang := amd64Compiler(toolchains.Clang, "-Os", "-fno-function-sections")
	all := every([]compiler{gcc, clang}, layouts, []mode{modeExe, modePIE, modeStatic})
	for _, c := range []compiler{
		crossCompiler(arm, toolchains.GCC, append([]string{"-O2", "-marm"}, nameable...)...),
		crossCompiler(arm, toolchains.Clang, "-Os", "-fno-function-sections"),
		crossCompiler(arm64, toolchains.GCC, append([]string{"-O2"}, nameable...)...),
		crossCompiler(arm64, toolchains.Clang, "-Os", "-fno-function-sections"),
		{machine: i386, cc: toolchains.GCC, flags: append([]string{"-O2", "-fno-pic", "-fno-pie"}, nameable...)},
		crossCompiler(i386, toolchains.Clang, "-Os", "-fno-function-sections"),
		crossCompiler(loong64, toolchains.GCC, append([]string{"-O2", "-mno-relax"}, nameable...)...),
		crossCompiler(ppc64le, toolchains.GCC, append([]string{"-O2"}, nameable...)...),
		crossCompiler(ppc64le, toolchains.Clang, "-Os", "-fno-function-sections", "-mcpu=pwr10"),
		crossCompiler(riscv64, toolchains.GCC, append([]string{"-O2", "-mno-relax"}, nameable...)...),
		crossCompiler(riscv64, toolchains.Clang, "-Os", "-mno-relax", "-fno-function-sections"),
		crossCompiler(s390x, toolchains.GCC, append([]string{"-O2"}, nameable...)...),
		crossCompiler(s390x, toolchains.Clang, "-Os", "-fno-function-sections"),
	} {
		all = append(all, every([]compiler{c}, layouts, []mode{modeExe})...)
	}
	return all
}

// TestSites links objects that stay as they are with their records, which are of
// the calls that objdump finds and the same as those of a conversion, and which the
// program sees too. Its stubs are a compiler's, each at an address of its own, by
// which objdump tells them apart.
func TestSites(t *testing.T) {
	all := product.New(combinationDimensions...)
	for _, c := range siteCombinations() {
		all.Add(c.String(), c.values(), func(t *testing.T) {
			c.compiler.parallel(t, c.linker.Path)
			p := compileProgram(t, c.compiler, c.layout, c.mode.library)
			_, err := c.mode.link(p, c.linker, nil, p.twin())
			unconverted(t, err)
			converted := expect.Value(c.mode.link(p, c.linker, nil, p.converted(t, c.layout.flags()...)))(t)
			sites := assembledSites(t, c.compiler, p.probed, c.layout.flags()...)
			objects := append(slices.Clone(p.probed), p.show, p.probes, p.stubs, sites)
			got := expect.Value(c.mode.link(p, c.linker, nil, objects))(t)
			im := openImage(t, got.image)
			records := im.records(t, c.layout)
			checkRun(t, c.compiler.machine, got.exe, expected(t), im, records)
			compareSites(t, c.compiler.machine, behindConditions(t, c.compiler.machine, im, records), twinSites(t, c.compiler.machine, im))
			if diff := cmp.Diff(whoCalls(t, converted.image, "disabled"), whoCalls(t, got.image, "unconverted")); diff != "" {
				t.Errorf("a conversion lists (-), the source (+): %s", diff)
			}
		})
	}
	all.Run(t)
}

// behindConditions moves the records of conditional jumps to where a conversion
// puts them, behind the inverted jump.
func behindConditions(t *testing.T, m *machine, im *image, records []site) []site {
	t.Helper()
	for i := range records {
		skip, code := uint64(0), im.bytes(t, records[i].addr, 2)
		switch {
		case m.x86() && code[0] == 0x0f && code[1]&0xf0 == 0x80: // jcc
			skip = 2
		case m.Machine == toolchains.S390X && records[i].kind == "probe" && code[0] == 0xc0 && code[1]&0xf == 4 && code[1] != 0xf4: // brcl
			skip = 4
		}
		records[i].addr += skip
		records[i].offset += skip
	}
	return records
}

// whoCalls lists function, probe and kind of all sites, which are in a state.
func whoCalls(t *testing.T, image, state string) []string {
	t.Helper()
	var all []string
	for _, l := range list(t, image) {
		kind, _, _ := strings.Cut(l.Kind, "-")
		if kind != "isenabled" {
			kind = "probe"
		}
		expect.Equal(t, state, l.State, "%s: %+v", image, l)
		all = append(all, strings.Join([]string{l.Function, l.Provider, l.Name, kind}, " "))
	}
	slices.Sort(all)
	if len(all) == 0 {
		t.Errorf("%s: no sites", image)
	}
	return all
}

// TestStatics links probe objects that are static in C++: a record names the one that
// its site's function has, by the names that nm has at its address.
func TestStatics(t *testing.T) {
	all := product.New("machine", "compiler", "linker", "layout")
	all.Singly = true // TestSites and TestForeign have the pairs
	for _, m := range append([]*machine{amd64}, foreign...) {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
			for _, ld := range m.linkers {
				for _, l := range []layout{pairs, relative32} {
					if !l.linkedBy(ld) {
						continue
					}
					all.Add(strings.Join([]string{m.Name, cc.Name, ld.Name, l.name}, "/"), []string{m.Name, cc.Name, ld.Name, l.name}, func(t *testing.T) {
						t.Parallel()
						c := crossCompiler(m, cc, "-O2")
						c.need(t)
						tools.Need(t, ld.Path)
						first, second := c.object(t, "statics.cc"), c.object(t, "statics.cc", "-DSECOND")
						objects := convertAll(t, []string{first, second}, "--layout="+l.name, "--stapsdt")
						checkStatics(t, linkAndRun(t, m, ld, "statics", []string{"-pie", "-Wl,--gc-sections"}, objects...), l)
					})
				}
			}
		}
	}
	all.Run(t)
}

// wantStatics is where the probe object of each function of statics.cc is. Of a lambda,
// which compilers name differently, only that is told which function has it.
var wantStatics = []string{
	"_Z14statics_inlinei: _ZZ14statics_inlineiE16sdt_st___inlined",
	"_Z16statics_templateIiEvT_: _ZZ16statics_templateIiEvT_E18sdt_st___templated",
	"_Z16statics_templateIlEvT_: _ZZ16statics_templateIlEvT_E18sdt_st___templated",
	"_ZN8statics14openEi: _ZN8statics113sdt_st___openE",
	"lambda of first: lambda of first",
	"lambda of second: lambda of second",
	"made: made",
	"space: space", // of each file
	"space: space",
	"statics_first: _ZZ13statics_firstE17sdt_st___function",
	"statics_second: _ZZ14statics_secondE17sdt_st___function",
}

// shortStatic shortens the names that compilers choose.
func shortStatic(name string) string {
	for _, short := range []struct{ prefix, to string }{
		{"_ZZ13statics_firstEN", "lambda of first"}, {"_ZZZ13statics_firstEN", "lambda of first"},
		{"_ZZ14statics_secondEN", "lambda of second"}, {"_ZZZ14statics_secondEN", "lambda of second"},
		{"_ZN13statics_classC", "made"}, {"_ZZN13statics_classC", "made"},
		{"_ZN8statics1L", "space"},
	} {
		if strings.HasPrefix(name, short.prefix) {
			return short.to
		}
	}
	return name
}

func checkStatics(t *testing.T, im *image, l layout) {
	t.Helper()
	var got []string
	for start, end := im.bounds(t, l.section["probe"]); start < end; start += l.size(im) {
		probe, at := l.read(t, im, start)
		s := site{kind: "probe", addr: at.value}
		im.locate(t, &s)
		names := []string{probe.symbol}
		if probe.symbol == "" {
			names = im.at(probe.value)
		}
		i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "sdt_st___") })
		if i < 0 {
			t.Errorf("a record of %q at %v", names, s)
			continue
		}
		got = append(got, fmt.Sprintf("%s: %s", shortStatic(s.function), shortStatic(names[i])))
	}
	slices.Sort(got)
	expect.Equal(t, wantStatics, got)
}

// entries has functions of each kind that compilers put a call of a profiler into.
const entries = `
int __attribute__((weak, noinline)) w(int x) { return x + 1; }
__attribute__((cold, noinline)) static int c(int x) { return x * 3; }
static __attribute__((noinline)) int l(int x) { return x > 2 ? c(x) : w(x); }
int g(int x) { return l(x) + l(x + 1); }
`

const entriesMain = `int g(int); int main(void) { return g(2) != 12; }`

// The calls of a profiler at the entries of functions, with the profiler as a stub, are converted on each
// machine; where the profiler takes off the stack what is pushed for it, they are refused.
func TestFunctionEntries(t *testing.T) {
	for _, c := range product.Few(t.Name(), []struct {
		symbol  string
		machine *toolchains.Machine
		flags   string
	}{
		{"__gnu_mcount_nc", toolchains.ARM, "-pg"}, // refused
		{"__fentry__", toolchains.AMD64, "-pg -mfentry"},
		{"mcount", toolchains.AMD64, "-pg"},
		{"_mcount", toolchains.ARM64, "-pg"},
		{"__fentry__", toolchains.S390X, "-pg -mfentry"},
		{"_mcount", toolchains.RISCV64, "-pg"},
		{"_mcount", toolchains.PPC64LE, "-pg -mprofile-kernel"},
		{"_mcount", toolchains.PPC64, "-pg"},
		{"mcount", toolchains.I386, "-pg"},
	}) {
		t.Run(c.machine.Name+c.flags, func(t *testing.T) {
			c.machine.Need(t)
			t.Chdir(t.TempDir())
			disk.Write(t, "entries.c", entries)
			disk.Write(t, "main.c", entriesMain)
			disk.Write(t, "probe.c", "int sdt_"+c.symbol+";\n")
			cc := c.machine.CC(toolchains.GCC)
			gcc := func(args ...string) { tools.Must(t, cc[0], slices.Concat(cc[1:], args)...) }
			gcc(append(strings.Fields(c.flags), "-O2", "-ffunction-sections", "-c", "entries.c")...)
			convert := []string{"--symbol", c.symbol, "--layout", "pairs", "-v", "entries.o"}
			if c.machine == toolchains.ARM {
				before := disk.Read(t, "entries.o")
				tools.Refuses(t, "takes off the stack what code pushes before its call; do not give it with --symbol", converter, convert...)
				expect.Equal(t, string(before), string(disk.Read(t, "entries.o")), "the refused object")
				return
			}
			sites := strings.Count(tools.Must(t, converter, convert...), ": call ")
			expect.Equal(t, 4, sites, "converted calls")
			gcc("-static", "-o", "program", "entries.o", "main.c", "probe.c")
			run := c.machine.Command("./program")
			tools.Must(t, run[0], run[1:]...)
			listing := tools.Must(t, converter, "list", "-v", "program")
			expect.Equal(t, sites, strings.Count(listing, "  disabled"), "listed sites: %s", listing)
		})
	}
}
