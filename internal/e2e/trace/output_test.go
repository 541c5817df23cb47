package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// orders compiles the example of README.md for a test that runs beside others.
func orders(t *testing.T) string {
	t.Helper()
	parallel(t)
	return compile(t, gcc(), "testdata/orders.c")
}

// The example of README.md.
func TestOrders(t *testing.T) {
	program := orders(t)
	got := trace(t, "--", program, "tea", "milk")
	expect.OK(t, got.err)
	expect.Equal(t, []string{`shop:orders:main:placed(1, "tea")`, `shop:orders:main:placed(2, "milk")`}, got.lines)
	expect.Contains(t, got.messages, "sdtconvert: 2 hits, 0 dropped; 1 probe, 0 never fired; threads stood still ")
	got = trace(t, "-n", "1", "--filter", `arg1 != "tea"`, "--", program, "tea", "milk", "soap")
	expect.Equal(t, []string{`shop:orders:main:placed(2, "milk")`}, got.lines)
}

// What can never be seen is explained, and fails.
func TestNothingMatches(t *testing.T) {
	program := orders(t)
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"shop:::plaaced"}, "no probe matches shop:::plaaced: did you mean shop:::placed?\n"},
		{[]string{"shoq:::placed", "shop:::"}, "no probe matches shoq:::placed: did you mean shop:::placed?\n"},
		{[]string{"--filter", `name == "pl*"`}, `; name ~ "pl*" compares with a glob`},
		{[]string{"--filter", "nothing > 1"}, "no probe that is traced has the argument nothing"},
	} {
		got := trace(t, append(c.flags, "--", program, "tea")...)
		exitedWith(t, got.err, 1)
		expect.Contains(t, got.messages, c.want)
		expect.OK(t, trace(t, append(c.flags, "--allow-none", "--", program, "tea")...).err)
	}
	got := trace(t, "--", "sh", "-c", `"$0" tea; exit 3`, program)
	exitedWith(t, got.err, 3)
	expect.Contains(t, got.messages, "children and other programs that were not traced: 1; -f follows them\n")
	unconverted := filepath.Join(t.TempDir(), "unconverted")
	tools.Must(t, "gcc", "-I"+include, "-o", unconverted, "testdata/orders.c")
	got = trace(t, "--", unconverted)
	exitedWith(t, got.err, 1)
	expect.Contains(t, got.messages, "unconverted: has tracepoints that are not converted: link with ")
	declared := write(t, "other.d", "provider other { probe placed(int); };")
	expect.Contains(t, trace(t, "-s", declared, "--", program).messages, "-s declares the provider other, of which the program has no probe\n")
	expect.Equal(t, 1, len(trace(t, "shop:::pla__ced", "shop:::", "--allow-none", "--", program, "tea").lines))
}

// __ of a pattern is -, and names of arguments are those of filters and histograms.
func TestNames(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "named.c", `#include <sdt.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++)
		DTRACE_PROBE2(shop___order__paid, int, i, char *, argv[0]);
	return 0;
}
`))
	declared := write(t, "shop.d", "provider shop { probe order__paid(int count, char *who); };")
	got := trace(t, "-s", declared, "--filter", `count == 1 && provider == "shop" && module == "named"`, "shop:::order__paid", "--", program)
	expect.OK(t, got.err)
	expect.Equal(t, []string{fmt.Sprintf("shop:named:main:order-paid(count=1, who=%q)", program)}, got.lines)
	out, _, err := tools.Command{}.Apart(converter, "trace", "-s", declared, "--hist", "count", "--", program)
	expect.OK(t, err)
	expect.Contains(t, out, "order-paid count\n")
}

func TestRequire(t *testing.T) {
	program := orders(t)
	expect.OK(t, trace(t, "--require", "shop:::placed", "--", program, "tea").err)
	got := trace(t, "--require", "shop:::placed", "--require", "shop:::paid", "--", program)
	exitedWith(t, got.err, 1)
	expect.Contains(t, got.messages, "the probe shop:::placed has not fired\n")
	expect.Contains(t, got.messages, "the probe shop:::paid has not fired\n")
}

// babeltrace2 reads a trace in CTF.
func TestCTF(t *testing.T) {
	tools.Need(t, "babeltrace2")
	program := orders(t)
	directory := filepath.Join(t.TempDir(), "ctf")
	tools.Must(t, converter, "trace", "--format", "ctf", "-o", directory, "--", program, "tea", "milk \"and\" sugar")
	out := tools.Output(t, "babeltrace2", "--no-delta", directory)
	want := regexp.MustCompile(`^\[\d\d:\d\d:\d\d\.\d{9}\] shop:orders:main:placed: \{ pid = \d+, tid = \d+ \}, \{ arg0 = 1, arg1 = "tea" \}
\[\d\d:\d\d:\d\d\.\d{9}\] shop:orders:main:placed: \{ pid = \d+, tid = \d+ \}, \{ arg0 = 2, arg1 = "milk \\"and\\" sugar" \}
$`)
	if !want.MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	tools.Refuses(t, "ctf: is there already: name a new directory, or remove it", converter, "trace", "--format", "ctf", "-o", directory, "--", program)
}

// A trace in CTF can be read before it has its end, as SIGKILL leaves it.
func TestCTFWithoutEnd(t *testing.T) {
	t.Parallel()
	tools.Need(t, "babeltrace2")
	needPtrace(t)
	program := compile(t, gcc(), write(t, "many.c", `#include <sdt.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0;; i++) {
		DTRACE_PROBE1(many___hit, int, i);
		usleep(1000);
	}
}
`))
	directory := filepath.Join(t.TempDir(), "ctf")
	cmd := exec.Command(converter, "trace", "--for", "100s", "--format", "ctf", "-o", directory, "--", program)
	expect.OK(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Signal(syscall.SIGTERM)
	expect.Soon(t, func() bool {
		out, err := exec.Command("babeltrace2", directory).CombinedOutput()
		return err == nil && strings.Count(string(out), "many:many:main:hit") > 100
	})
}

// A trace in JSON is as the Trace Event Format has it.
func TestPerfetto(t *testing.T) {
	program := orders(t)
	path := filepath.Join(t.TempDir(), "trace.json")
	tools.Must(t, converter, "trace", "--format", "perfetto", "-o", path, "--", program, "tea", "\x01\"")
	type event struct {
		Name, Cat, Ph string
		TS            float64
		PID, TID      int
		Args          map[string]any
	}
	var document []event
	expect.OK(t, json.Unmarshal(disk.Read(t, path), &document))
	document = slices.DeleteFunc(document, func(e event) bool { return e.Name == "thread_name" }) // which is there if the thread still was
	expect.Equal(t, 3, len(document))
	process, first, second := document[0], document[1], document[2]
	expect.Equal(t, event{Name: "process_name", Ph: "M", PID: first.PID, Args: map[string]any{"name": "orders"}}, process)
	expect.Equal(t, [3]string{"shop:placed", "shop", "i"}, [3]string{first.Name, first.Cat, first.Ph})
	expect.Equal(t, map[string]any{"arg0": 2.0, "arg1": "\x01\"", "function": "main"}, second.Args)
	if first.TID == 0 || first.TID != first.PID || second.TS < first.TS+10000 || second.TS > first.TS+1e6 { // usleep(10000)
		t.Errorf("got %+v", document)
	}
	tools.Must(t, converter, "trace", "--format", "perfetto", "-o", path, "--", program) // no event
	expect.OK(t, json.Unmarshal(disk.Read(t, path), &document))
}

// An output is neither made nor emptied before there is something to write, and no program is replaced.
func TestOutputsAreKept(t *testing.T) {
	program := orders(t)
	path := write(t, "precious", "precious")
	for _, format := range []string{"text", "json", "perfetto"} {
		_, err := tools.Command{}.Try(converter, "trace", "--format", format, "-o", path, "--", "./none")
		exitedWith(t, err, 1)
		expect.Equal(t, "precious", string(disk.Read(t, path)), "%s", format)
		tools.Refuses(t, "orders: is a program or an object", converter, "trace", "--format", format, "-o", program, "--", program)
		tools.Refuses(t, "is a directory: name a file in it", converter, "trace", "--format", format, "-o", filepath.Dir(path), "--", program)
	}
	tools.Must(t, converter, "trace", "-c", "-o", path, "--", program, "tea")
	expect.Equal(t, "           1 shop:orders:main:placed\n", string(disk.Read(t, path)))
}

func TestHistogramsOfPrograms(t *testing.T) {
	program := append([]string{"--", orders(t)}, strings.Fields("a b c d e f g h i")...)
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"-c", "--by", "name,arg0"}, `(?s)^ +1 placed, 1\n +1 placed, 2\n.* +1 placed, 9\n$`},
		{[]string{"--hist", "arg0"}, `\[4, 8\) +4 \|@{50}\|`},
		{[]string{"--lhist", "arg0,0,9,3"}, `\[3, 6\) +3 \|@{50}\|`},
		{[]string{"--hist", "arg0", "--by", "arg1"}, `"a" arg0\n +\[1, 2\) +1 \|@{50}\|\n"b" arg0\n`},
		{[]string{"--between", "placed,placed"}, `(?s)nanoseconds.*\[8M, 16M\) +[4-8] \|@{50}\|`},
	} {
		out, messages, err := tools.Command{}.Apart(converter, append(append([]string{"trace"}, c.flags...), program...)...)
		expect.OK(t, err, "%s", messages)
		if !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%s: got\n%s", c.flags, out)
		}
	}
}

// The headers pass floating-point numbers as bits, with which no reader loses an argument: gdb and perf show the bits, the tracer the number.
func TestFloatsOfHeaders(t *testing.T) {
	parallel(t)
	tools.Need(t, "gdb", "perf")
	source := write(t, "bits.c", `#include <sdt.h>
#ifdef __cplusplus
DTRACE_PROBE_DECLARE(bits___hit);
#endif
struct values { int field : 5; double d; float f; };
__attribute__((noinline)) static void hit(struct values *v, int i)
{
	DTRACE_PROBE6(bits___hit, int, v->field, double, v->d * 2, float, v->f, const char *, "text", float, 0.5f, int, i);
}
int main(void)
{
	for (int i = 0; i < 3; i++) {
		struct values v = { i - 1, i + 0.25, -0.75f };
		hit(&v, i);
	}
	return 0;
}
`)
	var want []string
	for i := range 3 {
		want = append(want, fmt.Sprintf(`bits:bits:hit:hit(%d, %g, -0.75, "text", 0.5, %d)`, i-1, 2*float64(i)+0.5, i))
	}
	cxx := append(toolchains.AMD64.CXX(toolchains.GCC), "-xc++")
	for _, compiler := range [][]string{gcc(), append(gcc(), "-DSDT_CALLS"), append(gcc(), "-O0"), cxx, append(cxx, "-DSDT_CALLS"), toolchains.AMD64.CC(toolchains.Clang)} {
		program := compile(t, compiler, source)
		got := trace(t, "bits:::", "--", program)
		expect.OK(t, got.err, "%s", got.messages)
		for i, line := range got.lines { // C++ has the parameters of the static function
			got.lines[i] = strings.Replace(line, "hit(values*, int)", "hit", 1)
		}
		expect.Equal(t, want, got.lines, "%s", compiler)
	}
	program := compile(t, gcc(), source)
	shown := tools.Output(t, "gdb", "-q", "-batch", "-ex", "break -probe-stap bits:hit", "-ex", "run", "-ex", "print $_probe_argc", "-ex", "print $_probe_arg1", "-ex", "print $_probe_arg2",
		"-ex", "print $_probe_arg5", program)
	expect.Contains(t, shown, fmt.Sprintf("$1 = 6\n$2 = %d\n$3 = %d\n$4 = 0\n", math.Float64bits(0.5), math.Float32bits(-0.75)))
	cache := t.TempDir()
	tools.Must(t, "perf", "--buildid-dir", cache, "buildid-cache", "--add", program)
	// It leaves out the constant, 0.5.
	if out := tools.Output(t, "perf", "--buildid-dir", cache, "probe", "-D", "%sdt_bits:hit"); !regexp.MustCompile(` arg2=%\w+:u64 arg3=%\w+:u32 arg4=%\w+:u64 .*arg6=%\w+:s32`).MatchString(out) {
		t.Errorf("got %s", out)
	}
}

// Functions and types of C++ have the names of sources in lines, patterns and filters; systems' probes have names and types of arguments;
// -s takes the text of a provider file.
func TestCPlusPlus(t *testing.T) {
	parallel(t)
	program := compile(t, toolchains.AMD64.CXX(toolchains.GCC), "testdata/names.cc")
	counter, order := "shop:names:shop::counter<int>::add:placed", "shop:names:shop::order:placed"
	for _, c := range []struct{ flags, want []string }{
		{[]string{"shop:::"}, []string{order + "(3)", counter + "(7)"}},
		{[]string{"--no-demangle", "shop:::"}, []string{"shop:names:_ZN4shop5orderEPKc:placed(3)", "shop:names:_ZN4shop7counterIiE3addEi:placed(7)"}},
		{[]string{"shop:*:shop::order:placed"}, []string{order + "(3)"}},
		{[]string{":_ZN4shop7counter*:placed"}, []string{counter + "(7)"}},
		{[]string{"--filter", `function == "shop::order"`}, []string{order + "(3)"}},
		{[]string{"-s", "provider shop { probe placed(int cups); };", "--filter", "cups > 3"}, []string{counter + "(cups=7)"}},
	} {
		got := trace(t, slices.Concat(c.flags, []string{"--", program})...)
		expect.OK(t, got.err, "%s", got.messages)
		expect.Equal(t, c.want, got.lines, "%q", c.flags)
	}
	expect.Contains(t, trace(t, "--", program).messages, ", 1 of names (name those that you want, as PROVIDER:::)")
	for _, flags := range [][]string{nil, {"--breakpoints"}} {
		got := trace(t, slices.Concat(flags, []string{"--filter", `type == "shop::sold_out"`, "libstdcxx:::", "--", program})...)
		expect.Equal(t, 2, len(got.lines), "%s", got.messages)
		expect.Contains(t, got.lines[0], ":throw(object=0x")
		expect.Contains(t, got.lines[0], ", type=shop::sold_out)")
	}
	tools.Refuses(t, "-s:1:", converter, "trace", "-s", "provider shop {", "--", program)
	tools.Refuses(t, "-s: declares no provider", converter, "trace", "-s", "/* { */", "--", program)
}

// A live view shows what was counted so far, or since the last time.
func TestLiveViews(t *testing.T) {
	program := append([]string{"--", orders(t)}, strings.Fields("a b c d e f g h i")...)
	for _, flags := range [][]string{{"-c"}, {"-c", "--clear"}, {"-c", "--clear", "--filter", `arg1 != "x"`}, {"--lhist", "arg0,0,100,100", "--clear"}} {
		out, messages, err := tools.Command{}.Apart(converter, slices.Concat([]string{"trace", "--every", "30ms"}, flags, program)...)
		expect.OK(t, err, "%s", messages)
		sum, last := 0, 0
		for _, count := range regexp.MustCompile(`(?m)^ +(?:\[0, 100\) +)?(\d) (?:shop:orders:main:placed$|\|)`).FindAllStringSubmatch(out, -1) {
			last = int(count[1][0] - '0')
			sum += last
		}
		if !slices.Contains(flags, "--clear") {
			sum = last
		}
		expect.Equal(t, 9, sum, "%s: got\n%s", flags, out)
		if views := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d$`).FindAllString(out, -1); len(views) < 2 {
			t.Errorf("%s: %d views:\n%s", flags, len(views), out)
		}
	}
}

// Histograms of an argument miss no hit, however fast threads and children of the program make them, and keep to the filter.
func TestExactHistograms(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), "testdata/histogram.c")
	for _, c := range []struct{ flags, kind []string }{
		{[]string{"--hist", "arg0"}, []string{"powers"}},
		{[]string{"--lhist", "arg0,-500,500,100"}, []string{"ranges"}},
		{[]string{"-f", "--lhist", "arg0,-500,500,100", "--filter", "arg1 >= 4 && arg0 != 7"}, []string{"filtered", "fork"}},
	} {
		counted, drawn := filepath.Join(t.TempDir(), "counted"), filepath.Join(t.TempDir(), "drawn")
		args := slices.Concat([]string{"trace", "-o", drawn}, c.flags, []string{"counting:::", "--", program, counted}, c.kind)
		tools.Must(t, converter, args...)
		var got []string
		for _, line := range lines(t, drawn) {
			if match := regexp.MustCompile(`^ *([\[(].*[)\]]) +([1-9]\d*) \|`).FindStringSubmatch(line); match != nil {
				got = append(got, match[1]+" "+match[2])
			}
		}
		expect.Equal(t, lines(t, counted), got, "%s: got\n%s", c.flags, disk.Read(t, drawn))
	}
}

// Programs of 32 bits are traced by breakpoints.
func TestI386(t *testing.T) {
	parallel(t)
	for _, flags := range [][]string{{"-static"}, {"-static", "-DSDT_CALLS"}, {"-static", "-DSDT_CALLS", "-O0"}} {
		program := compile(t, []string{"i686-linux-gnu-gcc"}, "testdata/orders.c", flags...)
		got := trace(t, "--", program, "tea", "milk")
		expect.OK(t, got.err, "%s", got.messages)
		expect.Equal(t, []string{`shop:orders32:main:placed(1, "tea")`, `shop:orders32:main:placed(2, "milk")`},
			strings.Split(strings.ReplaceAll(strings.Join(got.lines, "\n"), ":orders:", ":orders32:"), "\n"))
		expect.Contains(t, got.messages, "1 site armed by breakpoints")
	}
}

// An is-enabled test without a semaphore is true while it is traced.
func TestTests(t *testing.T) {
	parallel(t)
	source := write(t, "guarded.c", `#include <sdt.h>
int main(int argc, char **argv)
{
	if (DTRACE_PROBE_ENABLED(app___hit))
		DTRACE_PROBE1(app___hit, int, argc);
	return DTRACE_PROBE_ENABLED(app___hit) ? 3 : 4;
}
`)
	directory := t.TempDir()
	object, program := filepath.Join(directory, "guarded.o"), filepath.Join(directory, "guarded")
	tools.Must(t, "gcc", "-O2", "-DSDT_CALLS", "-DSDT_NO_SEMAPHORES", "-I"+include, "-c", "-o", object, source)
	tools.Must(t, converter, "--no-stapsdt", object)
	tools.Must(t, "gcc", "-o", program, object)
	exitedWith(t, exec.Command(program).Run(), 4)
	got := trace(t, "--", program, "x")
	exitedWith(t, got.err, 3)
	expect.Equal(t, []string{"app:guarded:main:hit(2)"}, got.lines)
}

// Debug information names the values of enumerations, and has the types of a stub that is only declared. Without it, a provider file
// has types and names.
func TestTypes(t *testing.T) {
	parallel(t)
	path := write(t, "types.d", "provider shop { probe typed(int color, int door, char *text); };\nprovider plain { probe stub(int n, char *what, int n); };\n")
	explained := []string{
		`shop:types:main:typed(GREEN, CLOSED, "a")`, `plain:types:main:stub(-4, "a", GREEN, CLOSED, true, 0x0, -1)`,
		`shop:types:main:typed(BLUE, OPEN, "b")`, `plain:types:main:stub(-3, "b", BLUE, OPEN, false, 0x0, -2)`,
	}
	for _, compiler := range [][]string{append(gcc(), "-g"), append(gcc(), "-g", "-gdwarf-4"), append(toolchains.AMD64.CC(toolchains.Clang), "-g")} {
		program := compile(t, compiler, "testdata/types.c")
		expect.Equal(t, explained, trace(t, "--", program, "a", "b").lines[2:], "%s", compiler)
		expect.Equal(t, 1, len(trace(t, "--filter", `arg0 == "GREEN"`, "--", program, "a", "b").lines), "%s", compiler)
		directory := filepath.Join(t.TempDir(), "ctf")
		tools.Must(t, converter, "trace", "-s", path, "--format", "ctf", "-o", directory, "shop:::", "--", program)
		tools.Need(t, "babeltrace2")
		expect.Contains(t, tools.Output(t, "babeltrace2", directory), `{ color = ( "RED" : container = 0 ), door = ( "OPEN" : container = 0 ), text = "`)
	}
	program := compile(t, gcc(), "testdata/types.c")
	expect.Equal(t, []string{
		`shop:types:main:typed(color=5, door=1, text="a")`, `plain:types:main:stub(n=-4, what="a", 5)`,
	}, trace(t, "-s", path, "--", program, "a").lines[2:])
	tools.Refuses(t, "types.c: declares no provider", converter, "trace", "-s", "testdata/types.c", "--", program)
}

// Operands that sources in assembly write are read as gdb reads them, and a text ends where the argument behind it says.
func TestOperandsOfAssembly(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), "testdata/assembly.c", "-DSDT_NO_SEMAPHORES")
	declared := write(t, "f.d", "provider f { probe text(char *name, int name_len, int other); probe word(int, int, unsigned short); };")
	want := []string{
		"f:assembly:main:bare(0x29, 5)", "f:assembly:main:sum(0x29)", "f:assembly:main:index(0x29)", "f:assembly:main:plus(4)", "f:assembly:main:bits(12)",
		"f:assembly:main:high(119, 1432778632)", "f:assembly:main:word(-1, -1, 65535)", `f:assembly:main:text(name="java/lang/Object", name_len=16, other=1)`,
	}
	for _, flags := range [][]string{nil, {"--breakpoints"}} {
		got := trace(t, append(append([]string{"-s", declared}, flags...), "--", program)...)
		expect.OK(t, got.err, "%s", got.messages)
		expect.Equal(t, want, got.lines, "%s", flags)
	}
}

// Thread-local variables are read where the segment of each thread has them, by jumps and by breakpoints. Those of a library are not: nothing
// says where.
func TestThreadLocals(t *testing.T) {
	parallel(t)
	other := write(t, "other.c", "__thread int other = 5;\nstatic __thread char pad[30];\nchar *padding(void) { return pad; }\n")
	library := compile(t, gcc(), other, "-shared", "-fPIC")
	for _, c := range []struct {
		compiler []string
		flags    []string
	}{
		{gcc(), []string{library}}, {gcc(), []string{library, "-no-pie", "-fno-pie"}}, {gcc(), []string{other, "-static"}},
		{gcc(), []string{other, "-static-pie", "-fPIE"}}, {gcc(), []string{library, "-fuse-ld=gold"}},
		{[]string{"i686-linux-gnu-gcc"}, []string{other, "-static", "-idirafter", "/usr/include/x86_64-linux-gnu"}},
	} {
		program := compile(t, c.compiler, "testdata/locals.c", c.flags...)
		for _, flags := range [][]string{nil, {"--breakpoints"}} {
			printed := filepath.Join(t.TempDir(), "printed")
			got := trace(t, slices.Concat(flags, []string{"-s", "provider local { probe text(const char *text); };", "local:::", "--", program, printed})...)
			expect.OK(t, got.err, "%s", got.messages)
			for i, line := range got.lines {
				got.lines[i] = strings.TrimPrefix(withoutFunction(line), "local:")
			}
			wantLines(t, lines(t, printed), got.lines)
		}
		tools.Must(t, "strip", program)
		got := trace(t, "local:::own", "--", program, filepath.Join(t.TempDir(), "printed"))
		expect.Contains(t, got.lines[0], ":own(?)")
	}
}

// A pipe whose reader has gone ends the trace, and not the program.
func TestBrokenPipe(t *testing.T) {
	program := orders(t)
	out := filepath.Join(t.TempDir(), "done")
	script := `"$0" trace -- sh -c '"$1" 1 2 3 4 5 6 7 8 >"$2" && echo done >>"$2"' sh "$1" "$2" | head -1 >/dev/null`
	tools.Must(t, "sh", "-c", script, converter, program, out)
	expect.Soon(t, func() bool {
		text, _ := os.ReadFile(out)
		return string(text) == "done\n"
	})
}
