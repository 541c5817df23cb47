package links

import (
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// merging is a program of which some objects are merged by `ld -r` first.
type merging struct {
	program program
	merge   toolchains.Linker
	final   toolchains.Linker
	mode    mode
	c       bool // merge the C objects alone: no COMDAT groups
}

// values returns the dimensions of a product that it stands for.
func (g merging) values() []string {
	return []string{g.merge.Name, g.final.Name, map[bool]string{false: "all", true: "c"}[g.c], g.mode.name}
}

// objects merges what is to be merged.
func (g merging) objects(t *testing.T, probed []string, beside ...string) ([]string, error) {
	t.Helper()
	split := len(probed)
	if g.c {
		split = 2
	}
	merged, err := merge(g.merge, nil, probed[:split]...)
	return append(append([]string{merged}, probed[split:]...), beside...), err
}

// twin links the unconverted program, or skips the test.
func (g merging) twin(t *testing.T) []site {
	t.Helper()
	p := g.program
	objects, err := g.objects(t, p.probed, p.probes, p.idle, p.stubs)
	unconverted(t, err)
	l, err := g.mode.link(p, g.final, nil, objects)
	unconverted(t, err)
	return l.examine(t, p.machine)
}

// check links objects that are the converted program's and compares.
func (g merging) check(t *testing.T, l layout, want []site, objects []string) {
	t.Helper()
	got := expect.Value(g.mode.link(g.program, g.final, nil, objects))(t)
	m := g.program.machine
	got.check(t, m, l, want)
}

// mergings makes all pairs of a machine's linkers. mold 1.10's -r of COMDAT
// groups merges the records of different groups, a documented limit.
func mergings(t *testing.T, c compiler, l layout, md mode) []merging {
	t.Helper()
	p := compileProgram(t, c, l, md.library)
	var all []merging
	for _, r := range c.machine.linkers {
		for _, f := range c.machine.linkers {
			for _, onlyC := range []bool{false, true} {
				if apart := r.Can(toolchains.GroupsWithR); !apart && !onlyC || apart && onlyC && md.library {
					continue
				}
				all = append(all, merging{p, r, f, md, onlyC})
			}
		}
	}
	return all
}

// TestMerge converts, merges with one linker and links with another; and, the other way round, converts
// what one linker has merged. Of RISC-V and LoongArch, distances are differences of symbols.
func TestMerge(t *testing.T) {
	all := product.New(dimensions("layout", "merging linker", "linker", "objects", "mode")...)
	for i, c := range here(amd64Compiler(toolchains.GCC, "-O2"), amd64Compiler(toolchains.Clang, "-Os", "-ffunction-sections"), crossCompiler(i386, toolchains.GCC, "-O2"),
		crossCompiler(loong64, toolchains.GCC, "-O2"), crossCompiler(riscv64, toolchains.Clang, "-O2")) {
		c.need(t)
		for _, l := range layouts {
			for _, md := range []mode{modePIE, modeShared} {
				isPairs := l.name == pairs.name
				if i == 1 && !isPairs || i > 1 && isPairs || md.library && !isPairs {
					continue
				}
				for _, g := range mergings(t, c, l, md) {
					add := all.Add
					switch {
					case i == 0 && isPairs && g.merge.Name == "mold" && g.final.Name == "bfd": // the one linker that writes relocations behind symbols
						add = all.Always
					case c.machine == riscv64 && l.name == relative32.name && g.merge.Name == "bfd" && g.final.Name == "bfd": // the two symbols of a distance are of different sections
						add = all.Always
					}
					add(c.String()+"/"+l.name+"/"+strings.Join(g.values(), "-"), append(append(c.values(), l.name), g.values()...), func(t *testing.T) {
						t.Parallel()
						checkMergeBothWays(t, g, l)
					})
				}
			}
		}
	}
	all.Run(t)
}

func checkMergeBothWays(t *testing.T, g merging, l layout) {
	tools.Need(t, g.merge.Path, g.final.Path)
	want := g.twin(t)
	p := g.program
	first := convertAll(t, p.probed, l.flags()...)
	objects := expect.Value(g.objects(t, first, p.probes, p.show))(t)
	g.check(t, l, want, objects)

	objects = expect.Value(g.objects(t, p.probed))(t)
	g.check(t, l, want, append(convertAll(t, objects, l.flags()...), p.probes, p.show))
}

// TestConvertAgain merges converted objects with others that are not, and
// converts the result: the old sites stay, the new ones come.
func TestConvertAgain(t *testing.T) {
	all := product.New(dimensions("layout", "linker")...)
	all.Singly = true // TestMerge has the pairs
	for _, c := range here(amd64Compiler(toolchains.GCC, "-O2"), crossCompiler(arm, toolchains.GCC, "-O2"), crossCompiler(arm64, toolchains.GCC, "-O2"), crossCompiler(i386, toolchains.GCC, "-O2"), crossCompiler(loong64, toolchains.GCC, "-O2"), crossCompiler(ppc64, toolchains.GCC, "-O2"), crossCompiler(ppc64le, toolchains.Clang, "-O2"), crossCompiler(riscv64, toolchains.Clang, "-O2"), crossCompiler(s390x, toolchains.Clang, "-Os")) {
		for _, l := range layouts {
			for _, ld := range c.machine.linkers {
				if !ld.Can(toolchains.GroupsWithR) || !l.linkedBy(ld) {
					continue
				}
				all.Add(c.String()+"/"+l.name+"/"+ld.Name, append(c.values(), l.name, ld.Name), func(t *testing.T) {
					c.parallel(t)
					convertAgain(t, c, l, ld)
				})
			}
		}
	}
	all.Run(t)
}

func convertAgain(t *testing.T, c compiler, l layout, ld toolchains.Linker) {
	tools.Need(t, ld.Path)
	p := compileProgram(t, c, l, false)
	g := merging{program: p, merge: ld, final: ld, mode: modePIE}
	want := g.twin(t)
	mixed := slices.Clone(p.probed)
	for i := 0; i < len(mixed); i += 2 {
		mixed[i] = convert(t, mixed[i], l.flags()...)
	}
	again := convertAll(t, expect.Value(g.objects(t, mixed))(t), l.flags()...)
	g.check(t, l, want, append(slices.Clone(again), p.probes, p.show))
	for i, o := range convertAll(t, again, l.flags()...) {
		sameFile(t, o, again[i])
	}
}

// crelFlag has clang write relocations as SHT_CREL.
const crelFlag = "-Wa,--crel,--allow-experimental-crel"

// crelCompilers make SHT_CREL, for the one linker that reads it: GNU ld 2.40, lld 14 and
// mold 1.10 refuse it or pass it over.
func crelCompilers() []compiler {
	var all []compiler
	for _, m := range toolchains.Machines {
		switch m {
		case toolchains.ARM: // clang's addends of branches are wrong there, so its code is refused
			continue
		case toolchains.PPC64: // lld does not know version 1 of the ABI
			continue
		}
		with := of(m)
		with.linkers = []toolchains.Linker{m.Linker("lld")}
		flags := []string{"-O2", "-fPIC", "-ffunction-sections", crelFlag}
		all = append(all, compiler{machine: with, cc: toolchains.Clang, flags: flags})
	}
	return all
}

// crelLinked returns those whose objects lld links: versions 19 and 21 leave the fields of
// SHT_CREL on s390x as they are, and say nothing, in unconverted objects too; 23 does not.
func crelLinked() []compiler {
	return slices.DeleteFunc(crelCompilers(), func(c compiler) bool { return c.machine.Machine == toolchains.S390X })
}

// crelTest returns a test of objects that lld has to take: that it would not link the twin
// is no reason to pass it over.
func crelTest(c compiler, test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		c.parallel(t, toolchains.LLVM("ld.lld"))
		t.Cleanup(func() {
			if t.Skipped() {
				t.Error("the twin does not link or run")
			}
		})
		test(t)
	}
}

// TestCREL links objects of SHT_CREL in every mode, and without what is dead or double.
func TestCREL(t *testing.T) {
	all := product.New(combinationDimensions...)
	all.Singly = true // what follows the reading of relocations, TestSites and TestForeign show in pairs
	for _, c := range crelLinked() {
		for _, l := range layouts {
			ld := c.machine.linkers[0]
			for _, md := range modes {
				if md.cannot(c.machine, ld) != "" {
					continue
				}
				way := combination{c, l, ld, md}
				all.Add(way.String(), way.values(), crelTest(c, way.check))
			}
			gc := combination{c, l, ld, modePIE}
			all.Add(gc.String()+"/gc", append(c.values(), l.name, ld.Name, "gc"), crelTest(c, func(t *testing.T) { checkGC(t, gc) }))
		}
	}
	all.Run(t)
	c := crelLinked()[0]
	t.Run("icf", crelTest(c, func(t *testing.T) { checkICF(t, c, c.machine.linkers[0], "-Wl,--gc-sections") }))
}
