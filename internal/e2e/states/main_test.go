package states

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var converter string

func TestMain(m *testing.M) {
	tools.Main(m, `TestCustomNames`, &converter, nil)
}

// directory is where a test makes its files.
type directory struct {
	*testing.T
	path string
}

func newDirectory(t *testing.T) directory { return directory{t, t.TempDir()} }

func (f directory) file(name string) string { return filepath.Join(f.path, name) }

func (f directory) write(name, text string) {
	f.Helper()
	disk.Write(f, f.file(name), text)
}

// must runs a command in the directory.
func (f directory) must(command ...string) {
	f.Helper()
	tools.Command{Directory: f.path}.Must(f, command[0], command[1:]...)
}

// run runs the program in the directory.
func (f directory) run(args ...string) tools.Result {
	f.Helper()
	return tools.Command{Directory: f.path}.Result(f, converter, args...)
}

// convert runs the program, which must not fail.
func (f directory) convert(args ...string) { f.must(append([]string{converter}, args...)...) }

// named is a program with probe calls, tail calls and is-enabled tests, and with one that
// the linker drops. PROBE and ENABLED are what its stubs are called.
const named = `
#define PASTE(a, b) a##b
#define NAME(a, b) PASTE(a, b)
#define P(id) NAME(PROBE, id)
#define E(id) NAME(ENABLED, id)
void P(shop___placed)(int), P(shop___sent)(int), P(shop___unused)(int), P(plain)(void), HOOK(int);
int E(shop___placed)(void), E(shop___sent)(void);
int sum;
__attribute__((noinline)) void call(int x) { P(shop___placed)(x); sum += x; }
__attribute__((noinline)) void tail(int x) { sum -= x; P(shop___sent)(x); }
__attribute__((noinline)) void perhaps(int x) { if (x > 3) P(shop___sent)(x); }
__attribute__((noinline)) int test(int x) { if (E(shop___placed)()) P(shop___placed)(x); return x; }
__attribute__((noinline)) int tests(void) { return E(shop___sent)(); }
__attribute__((noinline)) void others(int x) { P(plain)(); HOOK(x); sum++; }
void dropped(int x) { P(shop___unused)(x); sum++; }
int main(int argc, char **argv) { call(argc); tail(argc); perhaps(argc); others(argc); return test(argc) + tests() == 77; }
`

// naming is what stubs, probe objects and sections are called.
type naming struct {
	probe, enabled, hook, object, section string
	stubs                                 []string // the flags of the stubs' names
	records                               []string // those of probe objects' names and sections
}

// usual are the default names; --symbol has none. custom are as long as these, so that no
// section has another size.
var (
	usual = naming{
		probe: "__dtrace_probe_", enabled: "__dtrace_isenabled_", hook: "hook_of_default", object: "sdt_", section: "sdt_instances_set",
		stubs: []string{"--symbol=hook_of_default"},
	}
	custom = naming{
		probe: "__custom_prefix", enabled: "__custom_isenabled_", hook: "hook_of_customs", object: "zzz_", section: "zzz_instances_set",
		stubs:   []string{"--prefix=__custom_prefix", "--enabled-prefix=__custom_isenabled_", "--symbol=hook_of_customs"},
		records: []string{"--probe-object-prefix=zzz_", "--section=zzz_instances_set"},
	}
)

// asUsual writes the usual names for custom ones, in a layout.
func asUsual(flags []string, text string) string {
	section, tests := usual.section, "sdt_isenabled_set"
	if slices.Contains(flags, "--layout=relative") {
		section, tests = "sdt_instances_rel", "sdt_isenabled_rel"
	}
	return strings.NewReplacer(
		custom.probe, usual.probe, custom.enabled, usual.enabled, custom.hook, usual.hook,
		custom.section+"_isenabled", tests, custom.section, section, ", section "+custom.section, "", custom.object, usual.object,
	).Replace(text)
}

// A command with the flags of custom names says of a program what it says by default of the
// same program with the default names.
func TestCustomNames(t *testing.T) {
	for _, flags := range [][]string{{"--layout=pairs"}, {"--stapsdt"}, {"--layout=relative"}, {"--stapsdt", "--dtrace", "--drop-relocations"}, {"--no-records"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "gcc", "strip")
			want, got := usual.answers(t, flags), custom.answers(t, flags)
			if len(want) != len(got) || len(want) < 20 {
				t.Fatalf("%d and %d answers", len(want), len(got))
			}
			for i := range want {
				expect.Equal(t, want[i].text, asUsual(flags, got[i].text), "%s", want[i].command)
			}
		})
	}
}

// answer is what a command says.
type answer struct{ command, text string }

// answers returns those of all commands that read what conversions have written.
func (n naming) answers(t *testing.T, flags []string) (all []answer) {
	f := newDirectory(t)
	f.write("app.c", named)
	f.must("gcc", "-O2", "-g", "-ffunction-sections", "-c", "-DPROBE="+n.probe, "-DENABLED="+n.enabled, "-DHOOK="+n.hook, "app.c")
	names := slices.Concat(n.stubs, n.records)
	layout := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return !strings.HasPrefix(flag, "--layout") })
	if len(layout) == 0 { // a name of sections is for a reader of records, too
		layout = []string{"--layout=pairs"}
	}
	ask := func(args ...string) {
		r := f.run(args...)
		command := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return slices.Contains(names, arg) })
		text := strings.Join([]string{string(rune('0' + r.Status)), r.Stdout, r.Stderr}, "\n")
		all = append(all, answer{strings.Join(command, " "), strings.ReplaceAll(text, f.path, "DIR")})
	}
	with := func(command string, more []string, files ...string) []string {
		var words []string
		if command != "" {
			words = append(words, command)
		}
		return slices.Concat(words, more, files)
	}
	ask(with("inspect", slices.Concat(names, layout), "app.o")...)
	ask(with("inspect", slices.Concat(names, layout), "--json", "app.o")...)
	ask(with("check", names, "app.o")...)
	ask(with("", slices.Concat(names, flags), "-n", "-v", "app.o")...)
	ask(with("", slices.Concat(names, flags), "--json", "-o", "converted.o", "app.o")...)
	ask(with("", slices.Concat(names, flags), "-v", "converted.o")...)
	ask(with("inspect", slices.Concat(names, layout), "converted.o")...)
	ask(with("list", names, "-v", "converted.o")...)
	ask(with("stubs", names, "-o", "probes.o", "converted.o")...)
	for _, args := range [][]string{
		with("stubs", names, "--asm", "-o", "out.s", "app.o", "converted.o"),
		with("sites", slices.Concat(names, layout), "--asm", "-o", "out.s", "app.o"),
	} {
		ask(args...)
		text := disk.Read(t, f.file("out.s"))
		all[len(all)-1].text += string(text)
	}
	if slices.Contains(flags, "--drop-relocations") || slices.Contains(flags, "--no-records") {
		f.must("gcc", "-o", "program", "converted.o", "probes.o")
	} else {
		f.must("gcc", "-Wl,--gc-sections", "-o", "program", "converted.o", "probes.o")
	}
	f.must("strip", "-o", "stripped", "program")
	for _, file := range []string{"converted.o", "program", "stripped"} {
		ask(with("list", names, "-v", file)...)
		ask(with("list", names, "--json", file)...)
		ask(with("list", names, file, "shop:::sent")...)
		ask(with("list", names, "-n", "plac*", file)...)
		ask(with("check", names, file)...)
		ask(with("check", names, "--format=json", file)...)
		ask(with("check", names, "--require", "shop:::placed", "--require", "shop:::lost", file)...)
	}
	ask(with("list", names, "--names", "program")...)
	f.keep("names.txt", all[len(all)-1].text)
	ask(with("check", names, "--require", "@names.txt", "program")...)
	ask(slices.Concat([]string{"ld"}, names, flags, []string{"--", "-r", "-o", "linked.o", "app.o"})...)
	ask(with("list", names, "-v", "linked.o")...)
	return all
}

// keep writes what a command has printed to its standard output.
func (f directory) keep(name, text string) {
	f.Helper()
	_, text, _ = strings.Cut(text, "\n")
	if end := strings.LastIndex(text, "}\n"); end >= 0 {
		text = text[:end+2]
	}
	disk.Write(f, f.file(name), text)
}

// Objects, and an image, with records in two sections are a finding if --section names the second.
func TestRecordsOfTwoSections(t *testing.T) {
	tools.Need(t, "gcc")
	f := newDirectory(t)
	for _, name := range []string{"first", "second"} {
		f.write(name+".c", "void __dtrace_probe_app___"+name+"(int);\nint "+name+"(int x) { __dtrace_probe_app___"+name+"(x); return x * 3; }\n")
		f.must("gcc", "-O2", "-c", name+".c")
	}
	f.write("main.c", "int main(void) { return 0; }\n")
	f.convert("--section=other_set", "first.o")
	f.convert("second.o")
	f.convert("stubs", "--section=other_set", "-o", "probes.o", "first.o", "second.o")
	f.must("gcc", "-o", "program", "main.c", "first.o", "second.o", "probes.o")
	f.must("ld", "-r", "-o", "merged.o", "first.o", "second.o")
	for _, files := range [][]string{{"first.o", "second.o", "probes.o"}, {"merged.o", "probes.o"}, {"program"}} {
		if got := f.run(append([]string{"check", "--section=other_set"}, files...)...); got.Status != 1 || !strings.Contains(got.Stdout, "[mixed-layout]") || strings.Contains(got.Stdout, "[undefined-probe]") {
			t.Errorf("%q: status %d, %s%s", files, got.Status, got.Stdout, got.Stderr)
		}
	}
}

// tail is a function that ends with a jump, which a record says is a site. STUB
// is what it goes to.
const tail = `
.text
.globl main
.type main, @function
main: .cfi_startproc
nop
0: .byte 0xe9
.long STUB - . - 4
.cfi_endproc
.size main, . - main
.type STUB, @function
STUB: ret
.size STUB, . - STUB
.section sdt_instances_set, "aw", @progbits
.balign 8
.quad sdt_app___hit, 0b
.section .data.probes, "aw", @progbits
.balign 8
sdt_app___hit: .quad 1
.section .note.GNU-stack, "", @progbits
`

// A jump to a stub is not a disabled form to list and check: it is unconverted, or unknown,
// and that is a finding.
func TestLiveTailCalls(t *testing.T) {
	tools.Need(t, "gcc", "strip")
	for _, c := range []struct {
		stub, rule string
		flags      []string
		state      string
	}{
		{"__dtrace_probe_app___hit", "live-call", nil, "unconverted"},
		{"custom_app___hit", "unknown-site", nil, "unknown"},
		{"custom_app___hit", "live-call", []string{"--prefix", "custom_"}, "unconverted"},
		{"custom_app___hit", "live-call", []string{"--symbol", "custom_app___hit"}, "unconverted"},
	} {
		f := newDirectory(t)
		f.write("in.s", strings.ReplaceAll(tail, "STUB", c.stub))
		f.must("gcc", "-o", "program", "in.s")
		f.must("strip", "-o", "stripped", "program")
		f.checkTail(c.flags, "program", c.state, c.rule)
		f.checkTail(c.flags, "stripped", "unknown", "unknown-site")
	}
}

func (f directory) checkTail(flags []string, file, state, rule string) {
	f.Helper()
	list := f.run(append([]string{"list", "-v", file}, flags...)...)
	if !strings.Contains(list.Stdout, "  tail  "+state+"\n") || (list.Status == 1) != (state == "unknown") {
		f.Errorf("list %s %q: status %d, want %s\n%s%s", file, flags, list.Status, state, list.Stdout, list.Stderr)
	}
	check := f.run(append([]string{"check", file}, flags...)...)
	if check.Status != 1 || strings.Count(check.Stdout, "error: ") != 1 || !strings.Contains(check.Stdout, "["+rule+"]") {
		f.Errorf("check %s %q: status %d, want one error, %s\n%s%s", file, flags, check.Status, rule, check.Stdout, check.Stderr)
	}
}

// A stub that a shared library or a program leaves to the loader is reached through an entry
// of the procedure linkage table, whose slot tells check its name also once the file is
// stripped.
func TestLiveTailCallsOfTheLoader(t *testing.T) {
	tools.Need(t, "gcc", "strip")
	f := newDirectory(t)
	text := strings.ReplaceAll(tail, "STUB, @function\nSTUB: ret\n.size STUB, . - STUB\n", "other, @function\nother: ret\n")
	f.write("in.s", strings.ReplaceAll(text, ".byte 0xe9\n.long STUB - . - 4", "jmp __dtrace_probe_app___hit@PLT"))
	f.must("gcc", "-shared", "-o", "library", "in.s")
	f.must("strip", "-o", "stripped", "library")
	for _, file := range []string{"library", "stripped"} {
		f.checkTail(nil, file, "unknown", "live-call")
	}
}

// A probe object whose symbol has another prefix than the flag says has no name.
func TestProbesWithoutAName(t *testing.T) {
	tools.Need(t, "gcc")
	f := newDirectory(t)
	f.write("in.c", "void __dtrace_probe_app___hit(void);\nint x;\nvoid f(void) { __dtrace_probe_app___hit(); x++; }\n")
	f.must("gcc", "-O2", "-c", "in.c")
	f.convert("--probe-object-prefix=zz_", "in.o")
	for _, args := range [][]string{{"list", "-v", "in.o"}, {"list", "--json", "in.o"}, {"check", "in.o"}, {"inspect", "in.o"}} {
		if got := f.run(args...); strings.Contains(got.Stdout+got.Stderr, "sdt:") || strings.Contains(got.Stdout, `"provider": "sdt"`) {
			t.Errorf("%q: %s%s", args, got.Stdout, got.Stderr)
		}
	}
	list := f.run("list", "in.o")
	if !strings.Contains(list.Stdout, "          -              in.o                                 f -\n") ||
		list.Stderr != "sdtconvert: warning: in.o: the probe object zz_app___hit does not begin with sdt_; see --probe-object-prefix\n" {
		t.Errorf("list: %s%s", list.Stdout, list.Stderr)
	}
}

// noted is a program with the probes of SystemTap's header and of a provider file: in functions that another file shares, in code that the
// linker drops, and in a section without relocations.
var noted = map[string]string{
	"provided.d": "provider provided { probe shared(int); };\n",
	"noted.h": `#include <sys/sdt.h>
#include "provided.h"
template <typename T> __attribute__((noinline)) T shared(T n) {
	if (PROVIDED_SHARED_ENABLED()) PROVIDED_SHARED(n);
	DTRACE_PROBE1(noted, shared, n);
	return n + 1;
}
static __attribute__((noinline)) int local(int n) { if (PROVIDED_SHARED_ENABLED()) PROVIDED_SHARED(n); return n - 3; }
int other(int n);
`,
	"one.cc": `#include "noted.h"
static volatile int sum;
static __attribute__((noinline)) int leaf(int n) { DTRACE_PROBE2(noted, leaf, n, sum); return n * 2; }
__attribute__((noinline)) int dropped(int n) { DTRACE_PROBE1(noted, dropped, n); return n; }
int main(int argc, char **argv) { sum = leaf(argc) + local(argc) + shared(argc) + shared(2L) + other(argc); DTRACE_PROBE(noted, end); return sum == 77; }
`,
	"two.cc": `#include "noted.h"
namespace { __attribute__((noinline)) int hidden(int n) { DTRACE_PROBE1(noted, hidden, n); return n - 1; } }
int other(int n) { return hidden(n) + local(n) + shared(n); }
`,
}

// The functions of sites that only notes describe outlive strip, too.
func TestNotedSites(t *testing.T) {
	for _, m := range product.Few(t.Name(), toolchains.Machines) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, m.Tools("g++", "strip")...)
			f := newDirectory(t)
			for name, text := range noted {
				f.write(name, text)
			}
			f.convert("provider", "-h", "-s", "provided.d", "-o", "provided.h")
			f.must(m.Tool("g++"), "-O2", "-ffunction-sections", "-fno-exceptions", "-idirafter", "/usr/include/x86_64-linux-gnu", "-c", "one.cc", "two.cc")
			f.convert("one.o", "two.o")
			f.must("cp", "one.o", "once.o")
			f.convert("one.o")
			f.must("cmp", "one.o", "once.o")
			for _, l := range m.Newest() {
				tools.Need(t, l.Path)
				collect := "-Wl,--gc-sections"
				if l.Name == "gold" {
					collect = "-Wl,--no-gc-sections" // it does not link notes of what it has dropped
				}
				f.must(append([]string{m.Tool("g++"), "-B" + tools.Driver(t, l.Path), collect, "-o", "in", "one.o", "two.o"}, m.LinkFlags...)...)
				f.must(m.Tool("strip"), "-s", "-o", "out", "in")
				whole, got := f.sitesOf("in"), f.sitesOf("out")
				if len(whole) < 9 || len(got) != len(whole) {
					t.Errorf("%s: %d sites, and %d", l.Name, len(whole), len(got))
				}
				f.compareFunctions(l.Name, tools.Output(t, "nm", filepath.Join(f.path, "in"))+"\n", whole, got)
			}
		})
	}
}

// A process whose stripped library is gone, and whose memory alone can be read, has the probes and functions of the
// file that was linked.
func TestProcessWithoutFile(t *testing.T) {
	m := toolchains.AMD64
	tools.Need(t, append(m.Tools("gcc", "strip"), toolchains.LLVM("llvm-strip"), "setpriv")...)
	if os.Getuid() != 0 {
		t.Skip("only root's map_files have to be closed") // others cannot open them anyhow
	}
	f := newDirectory(t)
	f.write("lib.c", `
void __dtrace_probe_lib___first(int), __dtrace_probe_lib___second(int); int __dtrace_isenabled_lib___first(void);
static volatile int sum;
static __attribute__((noinline)) void inner(int n) { if (__dtrace_isenabled_lib___first()) __dtrace_probe_lib___first(n); sum += n; }
int outer(int n) { inner(n); __dtrace_probe_lib___second(n); return sum; }
`)
	f.write("main.c", `
#include <stdio.h>
int outer(int);
int main(void) { printf("%d\n", outer(3)); fflush(stdout); return getchar() == 77; }
`)
	f.must(m.Tool("gcc"), "-O2", "-fPIC", "-c", "lib.c", "main.c")
	f.convert("lib.o")
	f.convert("stubs", "-o", "probes.o", "lib.o")
	for _, l := range m.Newest() {
		tools.Need(t, l.Path)
		f.must(m.Tool("gcc"), "-B"+tools.Driver(t, l.Path), "-shared", "-o", "liblib.so", "lib.o", "probes.o")
		f.must(m.Tool("gcc"), "-o", "main", "main.o", "-L.", "-llib", "-Wl,-rpath,"+f.path)
		whole := f.sitesOf("liblib.so")
		f.must(toolchains.LLVMPrograms()+"/llvm-strip", "--strip-sections", "liblib.so")
		program := tools.StartCommand(t, exec.Command("setpriv", "--bounding-set=-all", f.file("main")))
		for range program.Lines() {
			break
		}
		expect.OK(t, os.Remove(f.file("liblib.so")))
		got := tools.Command{}.Result(t, "setpriv", "--bounding-set=-all", converter, "list", "--json", "--pid", fmt.Sprint(program.Process.Pid))
		if !strings.Contains(got.Stderr, "liblib.so: deleted since it was mapped: read from memory") {
			t.Errorf("%s: %s", l.Name, got.Stderr)
		}
		found := map[string]int{}
		for _, p := range listjson.Probes(t, got.Stdout) {
			for _, s := range p.Sites {
				found[fmt.Sprintf("%s %s %s %#x %s", p.Name, s.Kind, s.Function, s.FunctionOffset, s.State)]++
				if !s.Recorded || p.Provider != "lib" {
					t.Errorf("%s: %+v", l.Name, s)
				}
			}
		}
		want := map[string]int{}
		for _, s := range whole {
			want[fmt.Sprintf("%s %s %s %#x %s", s.name, s.Kind, s.Function, s.FunctionOffset, s.State)]++
		}
		expect.Equal(t, want, found, "%s", l.Name)
		program.End()
	}
}
