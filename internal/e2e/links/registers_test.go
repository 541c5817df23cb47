package links

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// registerFlags are ways to compile and to link calls through registers.
var registerFlags = []struct{ compile, link []string }{
	{[]string{"-O0", "-fPIC"}, []string{"-pie"}},
	{[]string{"-O0", "-fno-pic"}, []string{"-no-pie"}},
	{[]string{"-O1", "-fPIC"}, []string{"-pie"}},
	{[]string{"-O2", "-fPIE"}, []string{"-pie"}},
	{[]string{"-O2", "-fPIC", "-fno-plt"}, []string{"-pie"}},
	{[]string{"-O2", "-fPIC"}, []string{"-static"}},
	{[]string{"-O0", "-fPIC", "-DHIDDEN"}, []string{"-pie"}},
	{[]string{"-O2", "-fno-pic"}, []string{"-no-pie"}},
	{[]string{"-Os", "-fPIC", "-fcf-protection"}, []string{"-pie"}},
	{[]string{"-O3", "-fPIC", "-ffunction-sections"}, []string{"-pie", "-Wl,--gc-sections"}},
}

// TestRegisters converts code of the large code model. Where its calls were is told by
// the stubs of the twin: by the addresses that they return to.
func TestRegisters(t *testing.T) {
	all := product.New("compiler", "flags", "linker")
	for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang} {
		for n, f := range registerFlags {
			for i, ld := range amd64.linkers {
				add := all.Add
				if i != n%len(amd64.linkers) {
					add = all.AddToWhole // a linker changes no register
				}
				name := strings.Join(append([]string{cc.Name, ld.Name}, f.compile...), " ")
				add(name, []string{cc.Name, strings.Join(slices.Concat(f.compile, f.link), " "), ld.Name}, func(t *testing.T) {
					t.Parallel()
					c := amd64Compiler(cc, append([]string{"-mcmodel=large"}, f.compile...)...)
					c.need(t)
					tools.Need(t, ld.Path)
					checkRegisters(t, c, ld, f.link)
				})
			}
		}
	}
	all.Run(t)
}

func checkRegisters(t *testing.T, c compiler, ld toolchains.Linker, flags []string) {
	tests, none := c.object(t, "registers.c"), c.object(t, "registers.c", "-DUNGUARDED")
	compareRegisters(t, tests, ld, flags, "--no-stapsdt")
	compareRegisters(t, none, ld, flags, "--stapsdt")
	if !slices.Contains(flags, "-Wl,--gc-sections") { // with which the records would go
		compareRegisters(t, tests, ld, flags, "--no-stapsdt", "--drop-relocations")
	}
	out, err := tools.Try(converter, "-o", filepath.Join(t.TempDir(), "registers.o"), "--stapsdt", tests)
	if err == nil || !strings.Contains(out, "an isenabled through a register, which has no room to load a semaphore") {
		t.Errorf("with semaphores: %v\n%s", err, out)
	}
}

// compareRegisters converts an object with options, and links and runs it beside its twin.
func compareRegisters(t *testing.T, o string, ld toolchains.Linker, flags []string, options ...string) {
	t.Helper()
	plain := compiler{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
	twin, err := link(amd64, ld, "twin", flags, o, plain.object(t, "registersmain.c", "-DSTUBS"))
	unconverted(t, err)
	said := tools.Must(t, twin)
	got := expect.Value(link(amd64, ld, "converted", flags, convert(t, o, options...), plain.object(t, "registersmain.c")))(t)
	expect.Equal(t, results(said), tools.Must(t, got), "%v: converted it prints", options)
	im := openImage(t, got)
	records := im.records(t, pairs)
	expect.Equal(t, strings.Count(tools.Must(t, "readelf", "-rW", o), "__dtrace_"), len(records), "%v: records", options)
	checkReturns(t, openImage(t, twin), said, records)
	for _, l := range list(t, got) {
		expect.Equal(t, "disabled", l.State, "%v: %+v", options, l)
	}
}

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
