package links

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
)

// relaxed has clang 19 write relocations by which linkers delete code, as gcc 14 does.
var relaxed = []string{"-Xclang", "-target-feature", "-Xclang", "+relax"}

// Images that need no C library, which Debian 12 has none of for loong64.
var freestanding = []mode{
	{name: "static", flags: []string{"-static"}},
	{name: "static-pie", flags: []string{"-static-pie"}},
	{name: "gc", flags: []string{"-static", "-Wl,--gc-sections"}},
	{name: "-r", flags: []string{"-static-pie"}},
}

// TestFreestanding links programs by clang and lld alone, and compares each with its twin:
// what is printed, and the calls that LLVM's objdump finds.
func TestFreestanding(t *testing.T) {
	lld := loong64.Linker("lld")
	for i, c := range []compiler{
		crossCompiler(loong64, toolchains.Clang, "-O0"),
		crossCompiler(loong64, toolchains.Clang, "-Os", "-ffunction-sections"),
		crossCompiler(loong64, toolchains.Clang, "-O2", "-mcmodel=medium"),
		crossCompiler(loong64, toolchains.Clang, append([]string{"-O2", "-ffunction-sections"}, relaxed...)...),
	} {
		for j, l := range layouts {
			for k, md := range freestanding {
				if (i+j+k)%len(layouts) != 0 {
					continue // each compiler in each mode, and in each layout
				}
				way := combination{c, l, lld, md}
				t.Run(way.String(), func(t *testing.T) {
					c.parallel(t, lld.Path)
					checkFreestanding(t, way)
				})
			}
		}
	}
}

func checkFreestanding(t *testing.T, c combination) {
	m := c.compiler.machine
	headers := []string{"-isystem", filepath.Join("testdata", "freestanding"), "-fno-stack-protector"}
	compile, base := c.compiler.with(headers...), crossCompiler(m, toolchains.Clang, append([]string{"-O2"}, headers...)...)
	probed := []string{compile.object(t, "program.c"), compile.object(t, "calls.c")}
	beside := []string{base.object(t, "freestanding.c", "-ffreestanding"), base.object(t, "probes.c")}
	show := func(l layout) string { return base.object(t, "show.c", "-DLAYOUT="+l.show) }

	twin := linkFreestanding(t, c, slices.Concat(probed, beside, []string{show(pairs), base.object(t, "stubs.c", "-fvisibility=hidden")}))
	want, err := run(m, twin)
	if err != nil || !strings.Contains(want.stdout, "total: ") {
		t.Fatalf("unconverted: %v, %q", err, want.stdout)
	}
	converted := convertAll(t, probed, c.layout.flags()...)
	exe := linkFreestanding(t, c, slices.Concat(converted, beside, []string{show(c.layout)}))
	sites := checkImage(t, m, c.layout, exe, twinSites(t, m, openImage(t, twin)))
	checkRun(t, m, exe, want.stdout, openImage(t, exe), sites)
}

// linkFreestanding links objects, of which the first two are one where -r makes them so.
func linkFreestanding(t *testing.T, c combination, objects []string) string {
	t.Helper()
	m := c.compiler.machine
	if c.mode.name == "-r" {
		merged := expect.Value(merge(c.linker, []string{"-m", m.Emulation}, objects[:2]...))(t)
		objects = append([]string{merged}, objects[2:]...)
	}
	clang := m.CC(toolchains.Clang)
	driver := expect.Value(files.Driver(c.linker.Path))(t)
	args := slices.Concat(clang[1:], []string{"-nostdlib", "-B" + driver}, c.mode.flags, m.LinkFlags, objects)
	return expect.Value(files.Run("program", clang[0], args...))(t)
}
