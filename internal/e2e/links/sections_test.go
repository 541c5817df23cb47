package links

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
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

// many is an assembly file with a function in each of very many sections, some
// of them probed, and a main that calls those.
type many struct {
	sections, every int
}

func (n many) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	function := func(section, name, body string) {
		fmt.Fprintf(w, ".section %s,\"ax\",@progbits\n.globl %s\n.type %s,@function\n%s:\n%s\tret\n.size %s, .-%s\n",
			section, name, name, name, body, name, name)
	}
	var main strings.Builder
	for i := range n.sections {
		name, body := fmt.Sprintf("f%d", i), ""
		if i%n.every == 0 {
			body = "\tsub $8, %rsp\n\tcall __dtrace_probe_many\n\tadd $8, %rsp\n"
			fmt.Fprintf(&main, "\tcall %s\n", name)
		}
		function(".text."+name, name, body)
	}
	function(".text.main", "main", "\tsub $8, %rsp\n"+main.String()+"\txor %eax, %eax\n\tadd $8, %rsp\n")
	fmt.Fprintln(w, ".section .note.GNU-stack,\"\",@progbits")
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// object assembles the file.
func (n many) object(t *testing.T, c compiler) string {
	t.Helper()
	source := files.Must(t, "many.s", []string{fmt.Sprint(n)}, n.write)
	return c.compile(t, source)
}

// TestManySections converts an object whose section numbers do not fit in 16
// bits, and one where conversion makes that happen.
func TestManySections(t *testing.T) {
	cases := []struct {
		name string
		many
		before bool // extended section numbers before conversion
	}{
		{"far beyond", many{66000, 500}, true},
		{"crossing", many{65230, 3300}, false},
	}
	for _, tc := range cases {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
			t.Run(tc.name+"/"+cc.Name, func(t *testing.T) {
				t.Parallel()
				c := compiler{machine: amd64, cc: cc}
				c.need(t)
				tools.Need(t, "readelf")
				o := tc.object(t, c)
				checkExtended(t, o, tc.before)
				converted := convert(t, o)
				checkExtended(t, converted, true)
				sameFile(t, convert(t, converted), converted)
				linkMany(t, o, converted)
			})
		}
	}
}

// checkExtended looks for a table of extended section indexes, and for faults.
func checkExtended(t *testing.T, object string, want bool) {
	t.Helper()
	out := expect.Value(exec.Command("readelf", "-hSsrW", object).CombinedOutput())(t, "readelf %s", object)
	expect.Equal(t, want, strings.Contains(string(out), ".symtab_shndx"), "%s has a .symtab_shndx", filepath.Base(object))
	for line := range strings.Lines(string(out)) {
		if findsFault(line) {
			t.Errorf("readelf says %q", line)
		}
	}
}

func linkMany(t *testing.T, before, after string) {
	c := compiler{machine: amd64, cc: toolchains.GCC}
	stub, probe := c.object(t, "many.c", "-DSTUB"), c.object(t, "many.c")
	for _, ld := range product.Some(t.Name(), amd64.linkers, 1) {
		t.Run(ld.Name, func(t *testing.T) {
			tools.Need(t, ld.Path)
			twin, err := link(amd64, ld, "many", []string{"-pie"}, before, stub)
			unconverted(t, err)
			got := expect.Value(link(amd64, ld, "many", []string{"-pie"}, after, probe))(t)
			checkImage(t, amd64, pairs, got, twinSites(t, amd64, openImage(t, twin)))
			tools.Must(t, got)
		})
	}
}

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
