package links

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
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
			if diff := cmp.Diff(whoCalls(t, converted.image, "disabled"), whoCalls(t, got.image, "live")); diff != "" {
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

// TestSitesKeepPromises links with a linker that refuses an object which promises
// less than the others.
func TestSitesKeepPromises(t *testing.T) {
	c := amd64Compiler(toolchains.GCC, append([]string{"-O2", "-fcf-protection=full"}, nameable...)...)
	c.need(t)
	calls := c.object(t, "calls.c")
	for _, flags := range [][]string{nil, {"--layout", "freebsd"}} {
		objects := []string{calls, makeStubs(t, []string{calls}), assembledSites(t, c, []string{calls}, flags...)}
		if _, err := link(amd64, amd64.Linker("bfd"), "lib.so", []string{"-shared", "-nostdlib", "-Wl,-z,cet-report=error", "-Wl,--fatal-warnings"}, objects...); err != nil {
			t.Error(err)
		}
	}
}
