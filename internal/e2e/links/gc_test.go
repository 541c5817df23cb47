package links

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

func sameFile(t *testing.T, a, b string) {
	t.Helper()
	x := disk.Read(t, a)
	y := disk.Read(t, b)
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// TestGC drops dead functions. lld drops their records too; other linkers keep
// both, because the program refers to __start_ and __stop_. None may keep a
// record whose function is gone, nor lose one of a live function.
func TestGC(t *testing.T) {
	all := product.New(combinationDimensions...)
	for _, c := range every([]compiler{
		amd64Compiler(toolchains.GCC, "-O2", "-ffunction-sections"),
		amd64Compiler(toolchains.Clang, "-Os", "-ffunction-sections"),
		crossCompiler(arm, toolchains.GCC, "-O2", "-ffunction-sections"),
		crossCompiler(arm64, toolchains.GCC, "-O2", "-ffunction-sections"),
		crossCompiler(i386, toolchains.GCC, "-O2", "-ffunction-sections"),
		crossCompiler(loong64, toolchains.GCC, "-O2", "-ffunction-sections"),
		crossCompiler(ppc64, toolchains.GCC, "-O2", "-ffunction-sections"),
		crossCompiler(ppc64le, toolchains.Clang, "-O2", "-ffunction-sections"),
		crossCompiler(riscv64, toolchains.Clang, "-O2", "-ffunction-sections"),
		crossCompiler(s390x, toolchains.Clang, "-O2", "-ffunction-sections"),
	}, layouts, []mode{modeExe, modePIE}) {
		all.Add(c.String(), c.values(), func(t *testing.T) {
			c.compiler.parallel(t)
			checkGC(t, c)
		})
	}
	all.Run(t)
}

func checkGC(t *testing.T, c combination) {
	tools.Need(t, c.linker.Path)
	m := c.compiler.machine
	p := compileProgram(t, c.compiler, c.layout, false)
	gc := []string{"-Wl,--gc-sections"}
	twin := func(flags []string) []site {
		l, err := c.mode.link(p, c.linker, flags, p.twin())
		unconverted(t, err)
		return l.examine(t, m)
	}
	every, live := twin(nil), twin(gc)
	got := expect.Value(c.mode.link(p, c.linker, gc, p.converted(t, c.layout.flags()...)))(t)
	im := openImage(t, got.image)
	sites := im.records(t, c.layout)
	checkCode(t, m, im, sites)
	checkNames(t, im)
	if missing, _ := differences(m, sites, live); missing != nil {
		t.Errorf("no records of live %s", strings.Join(missing, ", "))
	}
	if _, extra := differences(m, sites, every); extra != nil {
		t.Errorf("records too many of %s", strings.Join(extra, ", "))
	}
	checkDead(t, c.linker, im, sites, live)
	checkRun(t, m, got.exe, expected(t), im, sites)
}

// checkDead looks at the function that no one calls.
func checkDead(t *testing.T, ld toolchains.Linker, im *image, sites, live []site) {
	t.Helper()
	const dead = "program_dead"
	isDead := func(s site) bool { return s.function == dead }
	if slices.ContainsFunc(live, isDead) && !(ld.Family == "mold" && im.file.Section(".opd") != nil) { // of which it keeps all
		t.Errorf("the twin keeps %s", dead)
	}
	recorded := slices.ContainsFunc(sites, isDead)
	kept := slices.ContainsFunc(im.symbols, symbolIs(dead))
	expect.Equal(t, kept, recorded, "%s is kept", dead)
	if ld.Family == "lld" && kept {
		t.Errorf("%s keeps %s", ld.Name, dead)
	}
}

// TestICF folds identical functions: two that differ in a probe are not, though
// their code has become the same.
func TestICF(t *testing.T) {
	all := product.New(dimensions("linker", "garbage")...)
	for _, c := range []compiler{
		amd64Compiler(toolchains.GCC, "-O2", "-ffunction-sections"),
		amd64Compiler(toolchains.Clang, "-Os", "-ffunction-sections"),
	} {
		for _, ld := range amd64.linkers {
			for _, gc := range []string{"-Wl,--no-gc-sections", "-Wl,--gc-sections"} {
				all.Add(c.String()+"/"+ld.Name+"/"+gc, append(c.values(), ld.Name, gc), func(t *testing.T) {
					c.parallel(t, ld.Path)
					checkICF(t, c, ld, gc)
				})
			}
		}
	}
	all.Run(t)
}

func checkICF(t *testing.T, c compiler, ld toolchains.Linker, gc string) {
	p := compileProgram(t, c, pairs, false)
	icf := []string{"-Wl,--icf=all", gc}
	_, err := modePIE.link(p, ld, icf, p.twin())
	unconverted(t, err)
	// The stubs themselves fold, so only the twin without folding knows names.
	twin, err := modePIE.link(p, ld, []string{gc}, p.twin())
	unconverted(t, err)
	want := twin.examine(t, amd64)
	got := expect.Value(modePIE.link(p, ld, icf, p.converted(t)))(t)
	im := openImage(t, got.image)
	sites := im.records(t, pairs)
	if missing, _ := differences(amd64, sites, want); missing != nil {
		t.Errorf("no records of %s", strings.Join(missing, ", "))
	}
	places := map[uint64]bool{}
	for _, s := range sites {
		if places[s.addr] {
			t.Errorf("two records of one site, %s", s)
		}
		places[s.addr] = true
	}
	checkCode(t, amd64, im, sites)
	checkRun(t, amd64, got.exe, expected(t), im, sites)
}

// twoLoads is a function of a section of its own, whose one call gets the stub's address
// from two loads.
const twoLoads = `
.section .text.%[1]s, "ax", @progbits
.globl %[1]s
.type %[1]s, @function
%[1]s:
	push %%rbx
	test %%edi, %%edi
	je 1f
	movq __dtrace_probe_gc___one@GOTPCREL(%%rip), %%rbx
	jmp 2f
1:	movq __dtrace_probe_gc___one@GOTPCREL(%%rip), %%rbx
2:	call *%%rbx
	pop %%rbx
	ret
.size %[1]s, . - %[1]s
`

// TestGCOfLoads drops dead functions that load stubs' addresses more often than they call
// them. Each load keeps the record of a call in its own function: what it kept elsewhere
// would keep that function too.
func TestGCOfLoads(t *testing.T) {
	source := filepath.Join(t.TempDir(), "loads.s")
	text := ".globl sdt_gc___one\n.data\nsdt_gc___one: .quad 0\n"
	for _, name := range []string{"before", "live", "after"} {
		text += fmt.Sprintf(twoLoads, name)
	}
	disk.Write(t, source, text)
	o := compiler{machine: amd64, cc: toolchains.GCC}.compile(t, source)
	for _, flags := range [][]string{{"--no-stapsdt"}, {"--stapsdt"}, {"--layout", "relative"}} {
		converted := convert(t, o, flags...)
		for _, ld := range amd64.linkers {
			if ld.Family == "mold" || ld.Family == "gold" { // which keep all records
				continue
			}
			tools.Need(t, ld.Path)
			out := filepath.Join(t.TempDir(), "program")
			tools.Must(t, ld.Path, "--gc-sections", "-e", "live", "-o", out, converted)
			sites := list(t, out)
			if len(sites) != 1 || sites[0].Function != "live" {
				t.Errorf("%s %q: got %+v, want one site, in live", ld.Name, flags, sites)
			}
			for _, name := range []string{"before", "after"} {
				if slices.ContainsFunc(openImage(t, out).symbols, symbolIs(name)) {
					t.Errorf("%s %q: %s is kept", ld.Name, flags, name)
				}
			}
		}
	}
}
