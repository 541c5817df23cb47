package ld

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// symbolChanges are what builds of vendored libraries do to an object that ld -r has made, so that its symbols do not
// meet others. The options are those of objcopy and llvm-objcopy.
var symbolChanges = [][]string{
	{"--localize-hidden"},
	{"--keep-global-symbol=b", "--keep-global-symbol=c"},
	{"--localize-symbol=_.stapsdt.base"},
	{"--localize-symbol=_.sdt_functions", "--localize-symbol=shop_bput_semaphore"},
	{"--localize-hidden", "--strip-unneeded"},
	{"--globalize-symbol=_.stapsdt.base"},
	{"--weaken"},
	{"--redefine-sym=_.stapsdt.base=vendored_base"},
	{"--prefix-symbols=vendored_"},
	{"--keep-symbol=b", "--strip-debug"},
	{"--strip-unneeded"},
}

// vendored are the sources: probes and tests of several objects, some of them of the same probe.
var vendored = map[string]string{
	"b.c": `#include <sdt.h>
int b(int x) { if (DTRACE_PROBE_ENABLED(shop___bput)) x++; DTRACE_PROBE1(shop___bput, int, x); return x * 5; }
`,
	"c.c": `#include <sdt.h>
int c(int x) { DTRACE_PROBE1(shop___bput, int, x); DTRACE_PROBE2(shop___cput, int, x, int, 7); return x; }
`,
	"m.c": `#include <sdt.h>
int b(int), c(int);
int main(int argc, char **argv) { DTRACE_PROBE1(shop___placed, int, argc); DTRACE_PROBE1(shop___bput, int, 9);
	if (DTRACE_PROBE_ENABLED(shop___cput)) argc--; return b(argc) + c(argc) == 0; }
`,
}

// TestSymbolTools links an object that ld -r has made of converted ones, and a tool has changed: gdb stops where it stops in a twin
// that no tool has changed. The twin's linker does not matter: places are relative to functions.
func TestSymbolTools(t *testing.T) {
	tools.Need(t, "gcc", "gdb", linkers[0].Path)
	objects := t.TempDir()
	t.Chdir(objects)
	for name, text := range vendored {
		expect.OK(t, os.WriteFile(name, []byte(text), 0o666))
	}
	tools.Must(t, "gcc", "-O1", "-fcf-protection=none", "-I"+tools.Root("include"), "-c", "m.c", "b.c", "c.c")
	t.Setenv("SDTCONVERT_LD", linkers[0].Path)
	gcc(t, linkers[0], "-o", "twin", "m.o", "b.o", "c.o")
	want := hitsOf(t, "twin")
	tests := product.New("merging linker", "tool", "change", "linker")
	tests.Singly = true
	for _, merging := range linkers {
		if !merging.Can(toolchains.GroupsWithR) {
			continue
		}
		for _, tool := range []string{"objcopy", toolchains.LLVM("llvm-objcopy"), toolchains.OldLLVM("llvm-objcopy")} {
			for _, change := range symbolChanges {
				for _, l := range toolchains.AMD64.Linkers() {
					values := []string{merging.Name, tool, strings.Join(change, " "), l.Name}
					tests.Add(strings.Join(values, "/"), values, func(t *testing.T) {
						tools.Need(t, tool, merging.Path, l.Path)
						t.Chdir(t.TempDir())
						expect.OK(t, os.CopyFS(".", os.DirFS(objects)))
						checkSymbolTool(t, merging, tool, change, l, want)
					})
				}
			}
		}
	}
	tests.Run(t)
}

func checkSymbolTool(t *testing.T, merging toolchains.Linker, tool string, change []string, l toolchains.Linker, want string) {
	t.Setenv("SDTCONVERT_LD", merging.Path)
	gcc(t, merging, "-r", "-o", "pre.o", "b.o", "c.o")
	tools.Must(t, tool, append(change, "pre.o")...)
	_, prefix, _ := strings.Cut(change[0], "--prefix-symbols=")
	if prefix != "" {
		tools.Must(t, "objcopy", "--redefine-sym", "b="+prefix+"b", "--redefine-sym", "c="+prefix+"c", "m.o")
	}
	t.Setenv("SDTCONVERT_LD", l.Path)
	gcc(t, l, "-o", "program", "m.o", "pre.o")
	expect.Equal(t, want, strings.ReplaceAll(hitsOf(t, "program"), prefix, ""), "where gdb stops")
	tools.Must(t, converter, "pre.o") // the cure for links without sdtconvert
	was := disk.Read(t, "pre.o")
	tools.Must(t, converter, "pre.o")
	expect.Equal(t, string(was), read(t, "pre.o"), "the object that was converted twice")
	gcc(t, l, "-o", "again", "m.o", "pre.o")
	for _, program := range []string{"program", "again"} {
		tools.Must(t, converter, "check", "--require-notes", "--require", "shop:::bput", "--require", "shop:::cput", program)
	}
}

// hit is a stop of gdb: the place, and the first argument.
var hit = regexp.MustCompile(`(?m)^(\S+ \+ \d+|\S+) in section .*\nHIT (-?\d+)$`)

// hitsOf returns where gdb stops for the probes of a program, with the first argument at each.
func hitsOf(t *testing.T, program string) string {
	t.Helper()
	var hits []string
	args := []string{"-q", "-nx", "-batch", "-ex", "set debuginfod enabled off"}
	for _, probe := range []string{"bput", "cput", "placed"} {
		args = append(args, "-ex", "break -probe-stap shop:"+probe)
	}
	args = append(args, "-ex", "run")
	for range 6 {
		args = append(args, "-ex", "info symbol $pc", "-ex", `printf "HIT %d\n", (int)$_probe_arg0`, "-ex", "continue")
	}
	out, err := tools.Try("gdb", append(args, "./"+program)...)
	for _, m := range hit.FindAllStringSubmatch(out, -1) {
		hits = append(hits, fmt.Sprintf("%s: %s", m[1], m[2]))
	}
	if len(hits) < 4 || !strings.Contains(out, "exited") {
		t.Fatalf("%s: %v: %v\n%s", program, hits, err, out)
	}
	return strings.Join(hits, "\n")
}
