package links

import (
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var hit = regexp.MustCompile(`(?m)^hit (\w+) (\w+) (0x[0-9a-f]+)$`)

// results returns the lines that do not come of stubs.
func results(said string) string {
	var out strings.Builder
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "result ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// checkReturns compares records with the calls of the twin: each record has the place of
// a call or a jump through registers, and each call returns to right behind a record's.
func checkReturns(t *testing.T, twin *image, said string, records []site) {
	t.Helper()
	ends, functions := map[string]bool{}, map[string]elf.Symbol{}
	for _, f := range twin.funcs {
		functions[f.Name] = f
	}
	for _, s := range records {
		f := functions[s.function]
		at := f.Value + s.offset
		code := append(twin.bytes(t, at, int(min(f.Size-s.offset, 5))), 0, 0)
		n := registerLength(code)
		if n == 0 {
			t.Errorf("%s: the twin has % x there", s, code)
		}
		ends[fmt.Sprint(s.kind, s.id, at+n)] = true
	}
	hits := hit.FindAllStringSubmatch(said, -1)
	if len(hits) == 0 {
		t.Fatal("the twin calls no stub")
	}
	for _, m := range hits {
		to := twin.header(t) + expect.Value(strconv.ParseUint(m[3], 0, 64))(t)
		names, _ := twin.around(to - 1)
		if slices.Contains(names, "main") || slices.Contains(names, "registers_enter") {
			continue // from a tail call
		}
		if !ends[fmt.Sprint(m[1], m[2], to)] {
			t.Errorf("no record of the call that returns to %#x, in %v", to, names)
		}
	}
}

// registerLength returns the length of a call or a jump through registers, 0 for another
// instruction.
func registerLength(code []byte) uint64 {
	if code[0]&0xf0 == 0x40 { // REX
		if n := registerLength(code[1:]); n != 0 {
			return n + 1
		}
		return 0
	}
	if code[0] == 0x67 && code[1] == 0xe8 { // addr32 call, which linkers make of one through the GOT
		return 6
	}
	switch modrm := code[1]; {
	case code[0] != 0xff || modrm&0x38 != 0x10 && modrm&0x38 != 0x20:
		return 0
	case modrm == 0x15 || modrm == 0x25: // *disp32(%rip)
		return 6
	case modrm&0xc0 == 0xc0: // *%reg
		return 2
	case modrm&0xc7 == 0x04: // *(base,index)
		return 3
	case modrm&0xc7 == 0x44: // *disp8(base,index)
		return 4
	}
	return 0
}

// randomProgram writes functions at random that call stubs in the ways that have compilers
// load their addresses into registers: in loops, switches, on several ways to one call, with
// much to compute before, and on landing pads.
type randomProgram struct {
	*rand.Rand
	strings.Builder
	cxx   bool
	nine  bool // calls have up to nine arguments
	depth int
}

func (p *randomProgram) expression() string {
	v := func() string { return fmt.Sprintf("v[%d]", p.IntN(4)) }
	switch p.IntN(6) {
	case 0:
		return strconv.Itoa(p.IntN(1000))
	case 1:
		return fmt.Sprintf("registers_work(%s)", v())
	case 2:
		return fmt.Sprintf("(%s * 3 + (int)(d * %s))", v(), v())
	case 3:
		return "(a + i)"
	}
	return fmt.Sprintf("(%s %s %s)", v(), []string{"+", "-", "^", "&"}[p.IntN(4)], v())
}

func (p *randomProgram) call() {
	if p.nine && p.IntN(4) == 0 {
		fmt.Fprintf(p, "__dtrace_probe_registers___nine(%s, v[1], %s, i, v[2], %s, a, v[3], v[0]);\n", p.expression(), p.expression(), p.expression())
		return
	}
	switch p.IntN(4) {
	case 0:
		p.WriteString("__dtrace_probe_registers___none();\n")
	case 1:
		fmt.Fprintf(p, "__dtrace_probe_registers___two(%s, %s);\n", p.expression(), p.expression())
	default:
		fmt.Fprintf(p, "__dtrace_probe_registers___one(%s);\n", p.expression())
	}
}

func (p *randomProgram) block() {
	p.depth++
	p.WriteString("{\n")
	for range 1 + p.IntN(3) {
		p.statement()
	}
	p.WriteString("}\n")
	p.depth--
}

func (p *randomProgram) statement() {
	kinds := 9
	if p.depth > 1 {
		kinds = 4
	}
	switch k := p.IntN(kinds); k {
	case 0, 1:
		p.call()
	case 2:
		fmt.Fprintf(p, "v[%d] = %s;\n", p.IntN(4), p.expression())
	case 3:
		fmt.Fprintf(p, "if (__dtrace_isenabled_registers___one()) __dtrace_probe_registers___one(%s);\n", p.expression())
	case 4:
		fmt.Fprintf(p, "for (int i = 0; i < (a & 3) + %d; i++) ", p.IntN(3))
		p.block()
	case 5:
		fmt.Fprintf(p, "if (%s > %s) ", p.expression(), p.expression())
		p.block()
		p.WriteString("else ")
		p.block()
	case 6:
		fmt.Fprintf(p, "switch (%s & 7) {\n", p.expression())
		for i := range 4 + p.IntN(3) {
			fmt.Fprintf(p, "case %d: ", i)
			p.block()
			if p.IntN(3) > 0 {
				p.WriteString("break;\n")
			}
		}
		p.WriteString("}\n")
	case 7:
		fmt.Fprintf(p, "d = d * 1.5 + %s;\n", p.expression())
	case 8:
		if !p.cxx {
			p.call()
			return
		}
		p.WriteString("try { held h; registers_throw(" + p.expression() + "); ")
		p.block()
		p.WriteString("} catch (int thrown) { v[0] += thrown; ")
		p.block()
		p.WriteString("}\n")
	}
}

const randomHead = `
#include <stdio.h>
#ifdef __cplusplus
extern "C" {
#endif
void __dtrace_probe_registers___one(unsigned long);
void __dtrace_probe_registers___two(unsigned long, unsigned long);
void __dtrace_probe_registers___none(void);
void __dtrace_probe_registers___nine(long, int, long, int, long, int, long, int, long);
int __dtrace_isenabled_registers___one(void);
int registers_work(int);
#ifdef __cplusplus
}
struct held { ~held() { for (int i = 0; i < 2; i++) __dtrace_probe_registers___one(registers_work(i)); } };
static __attribute__((noinline)) void registers_throw(int a) { if (a & 1) throw a & 15; }
#endif
`

// source returns a program of some functions and of a main that calls them.
func (p *randomProgram) source() string {
	p.WriteString(randomHead)
	const functions = 3
	for f := range functions {
		fmt.Fprintf(p, "__attribute__((noinline)) int registers_f%d(int a, double d)\n{\nint i = 0, v[4] = {a, a + 1, a * 2, 7};\n", f)
		p.block()
		p.WriteString("return v[0] + v[1] * 3 + v[2] + v[3] + (int)d + i;\n}\n")
	}
	p.WriteString("int main(void)\n{\nfor (int n = 0; n < 6; n++) {\n")
	for f := range functions {
		fmt.Fprintf(p, "printf(\"result %d %%d\\n\", registers_f%d(n * 5, n));\n", f, f)
	}
	p.WriteString("}\n}\n")
	return p.String()
}

// randomPrograms is how many programs are compiled, unless SDTCONVERT_ATTACK says so.
const randomPrograms = 12

// TestRandomRegisters converts random programs whose calls go through registers, and runs
// them beside their twins. Those that are refused are counted, and few. The records are
// compared with where the stubs of the twin return to.
func TestRandomRegisters(t *testing.T) {
	count := tools.Cases(t, randomPrograms)
	var large, noPLT tally
	t.Run("programs", func(t *testing.T) {
		for seed := range count {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				checkRandom(t, uint64(seed), &large, &noPLT)
			})
		}
	})
	t.Logf("programs that run as their twins, and refused ones: %v with -fno-plt, %v of the large code model", &noPLT, &large)
	if noPLT.refused.Load()*5 > noPLT.converted.Load() {
		t.Error("more than a sixth of those with -fno-plt are refused")
	}
	if large.refused.Load() > large.converted.Load() {
		t.Error("most of the large code model are refused")
	}
}

// tally counts programs.
type tally struct{ converted, refused atomic.Int64 }

func (n *tally) String() string {
	return fmt.Sprintf("%d and %d", n.converted.Load(), n.refused.Load())
}

// checkRandom compares a program with its twin, if it converts.
func checkRandom(t *testing.T, seed uint64, large, noPLT *tally) {
	r := rand.New(rand.NewPCG(seed, 7))
	cc := []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang}[r.IntN(3)]
	cxx := r.IntN(3) == 0
	model := [][]string{{"-fno-plt", "-fPIC"}, {"-fno-plt", "-fPIC"}, {"-fno-plt", "-fno-pic"}, {"-mcmodel=large", "-fPIC"}, {"-mcmodel=large", "-fno-pic"}}[r.IntN(5)]
	flags := append([]string{[]string{"-O0", "-O1", "-O2", "-O3", "-Os"}[r.IntN(5)], "-w", "-fno-optimize-sibling-calls", "-ffunction-sections"}, model...)
	name := "random.c"
	if cxx {
		name = "random.cc"
	}
	p := randomProgram{Rand: r, cxx: cxx}
	path := filepath.Join(t.TempDir(), name)
	disk.Write(t, path, p.source())
	c := amd64Compiler(cc, flags...)
	c.need(t)
	o := filepath.Join(filepath.Dir(path), "random.o")
	args := c.machine.CC(cc)
	if cxx {
		args = c.machine.CXX(cc)
	}
	tools.Must(t, args[0], append(append(args[1:len(args):len(args)], c.flags...), "-c", path, "-o", o)...)
	n, stapsdt := noPLT, r.IntN(2) == 0
	if model[0] == "-mcmodel=large" {
		n, stapsdt = large, false // where tests have no room for semaphores
	}
	way := [][]string{{"-pie"}, {"-static"}, {"-pie", "-Wl,--gc-sections"}}[r.IntN(3)]
	if model[1] == "-fno-pic" {
		way = []string{"-no-pie"}
	}
	ld := amd64.linkers[r.IntN(len(amd64.linkers))]
	if ld.Family == "mold" && model[0] == "-fno-plt" { // whose calls of the twin are one byte further
		ld = amd64.Linker("lld")
	}
	converted := convertRandom(t, o, stapsdt)
	if converted == "" {
		n.refused.Add(1)
		return
	}
	n.converted.Add(1)
	compareRandom(t, o, converted, ld, way, stapsdt)
}

// convertRandom converts an object and returns the path of the result, "" if it is refused.
func convertRandom(t *testing.T, o string, stapsdt bool) string {
	t.Helper()
	options := []string{"-o", strings.TrimSuffix(o, ".o") + ".converted.o", "--no-stapsdt"}
	if stapsdt {
		options[2] = "--stapsdt"
	}
	if out, err := tools.Try(converter, append(tools.RecordsAlone(options...), o)...); err != nil {
		if !strings.Contains(out, "register") && !strings.Contains(out, "large code model") {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("refused: %s", out)
		return ""
	}
	return options[1]
}

// compareRandom links and runs a converted object beside its twin.
func compareRandom(t *testing.T, o, converted string, ld toolchains.Linker, flags []string, stapsdt bool) {
	t.Helper()
	plain := compiler{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
	twin, err := link(amd64, ld, "twin", flags, o, plain.object(t, "registersmain.c", "-DSTUBS"))
	unconverted(t, err)
	got := expect.Value(link(amd64, ld, "converted", flags, converted, plain.object(t, "registersmain.c")))(t)
	said := tools.Must(t, twin)
	expect.Equal(t, results(said), tools.Must(t, got), "converted it prints")
	if !strings.Contains(tools.Must(t, "readelf", "-rW", o), " __dtrace_") {
		return // where nothing is called, there is nothing to list
	}
	for _, l := range list(t, got) {
		expect.Equal(t, "disabled", l.State, "%+v", l)
	}
	if !stapsdt { // with which tests are at the loads of their helpers
		checkReturns(t, openImage(t, twin), said, openImage(t, got).records(t, pairs))
	}
}
