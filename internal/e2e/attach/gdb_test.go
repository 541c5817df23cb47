package attach

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/tools"
)

// gdbScript stops at probes and prints their arguments as the twin's stubs do.
const gdbScript = `set pagination off
set confirm off
set debuginfod enabled off
set breakpoint pending on
`

// commands has gdb print the arguments of each probe, and go on.
func commands() string {
	var s strings.Builder
	for i, b := range []struct{ probe, format, args string }{
		{"app:done", `%d %ld %d %s`, "0 1 2 3"},
		{"app:tail", `%d`, "0"},
		{"app:generic", `%ld %s`, "0 1"},
		{"plain:declared", `%s %d %d %d`, "0 1 2 3"},
		{"plain:file", `%d %d`, "0 1"},
		{"plain:wide", "%d %d\\n> memory %d %u %d %d", "0 5 6 7 8 9"},
		{"plain:wide__tail", "%d %d\\n> memory %d %u %d %d", "0 5 6 7 8 9"},
		{"app:half__way", `%d`, "0"},
		{"old__app:half__done", `%d`, "0"},
		{"plain__text:end__of__line", `%d`, "0"},
	} {
		fmt.Fprintf(&s, "break -probe-stap %s\ncommands\nsilent\nprintf \"> %s %s\\n\"", b.probe, b.probe, b.format)
		verbs := slices.DeleteFunc(strings.Fields(b.format), func(s string) bool { return s[0] != '%' })
		for j, arg := range strings.Fields(b.args) {
			value := "$_probe_arg" + arg
			if verbs[j] == "%s" {
				value = "(char *)" + value
			}
			fmt.Fprintf(&s, ", %s", value)
		}
		fmt.Fprintf(&s, "\nset $argc%d = $_probe_argc\ncontinue\nend\n", i)
	}
	return s.String()
}

var reported = regexp.MustCompile(`(?m)^> (.*)$`)

// underGDB runs a program under gdb and returns what it has printed of probes.
func underGDB(t *testing.T, gdb, script, exe string, more ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.gdb")
	if err := os.WriteFile(file, []byte(gdbScript+script), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := tools.Try(gdb, append(more, "-nx", "-batch", "-x", file, exe)...)
	if err != nil || strings.Contains(out, "ptrace: ") {
		tools.Unavailable(t, fmt.Sprintf("gdb cannot run programs: %v\n%s", err, out))
	}
	var lines []string
	for _, m := range reported.FindAllStringSubmatch(out, -1) {
		lines = append(lines, m[1])
	}
	if lines == nil {
		t.Errorf("gdb: %s", out)
	}
	return lines
}

func TestGDB(t *testing.T) {
	tools.Need(t, "gdb")
	for _, c := range []compiler{gcc, clang} {
		p := compileProgram(t, c, "-g")
		p.underGDB(t, p.calls(t, 3))
	}
}

// underGDB compares what gdb sees of three rounds of the program, and of its library,
// with what is wanted.
func (p program) underGDB(t *testing.T, want []string) {
	t.Helper()
	input := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(input, []byte("\n\n\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	lib, _ := p.library(t)
	for name, exe := range map[string]string{"pie": p.executable(t), "library": lib} {
		t.Run(p.cc.Name+"/"+name, func(t *testing.T) {
			script := "break main\nrun <" + input + " >/dev/null\ndelete\n" + commands() + "continue\n"
			if diff := cmp.Diff(want, underGDB(t, "gdb", script, exe)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGDBLists compares gdb's list of probes with the notes.
func TestGDBLists(t *testing.T) {
	tools.Need(t, "gdb")
	exe := compileProgram(t, gcc, "-g").executable(t)
	var want, got []string
	for _, n := range notesOf(t, exe) {
		want = append(want, fmt.Sprintf("%s %s 0x%016x", n.provider, n.name, n.location))
	}
	for _, m := range regexp.MustCompile(`(?m)^stap +(\w+) +(\S+) +(0x\w+) `).FindAllStringSubmatch(
		tools.Must(t, "gdb", "-nx", "-batch", "-ex", "info probes stap", exe), -1) {
		got = append(got, strings.Join(m[1:], " "))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// armArgs are the arguments of each probe on arm.
var armArgs = map[string]string{
	"app:done":       "-4@r0 -4@r1 1@r2 4@r3",
	"app:tail":       "-4@r0",
	"app:dead":       "-4@r0",
	"app:generic":    "-4@r0 4@r1",
	"plain:declared": "4@r0 4@r1 -1@r2 2@r3",
	"plain:file":     "-4@r0 1@r1",

	"plain:wide":       "-4@r0 -4@r1 -2@r2 4@r3 -4@[sp, #0] 1@[sp, #4] -4@[sp, #8] 4@[sp, #12] -1@[sp, #16] 2@[sp, #20] -4@[sp, #24]",
	"plain:wide__tail": "-4@r0 -4@r1 -2@r2 4@r3 -4@[sp, #0] 1@[sp, #4] -4@[sp, #8] 4@[sp, #12] -1@[sp, #16] 2@[sp, #20] -4@[sp, #24]",

	"app:half__way":             "-4@r0",
	"old__app:half__done":       "-4@r0",
	"plain__text:end__of__line": "-4@r0",
}

// arm64Args are the arguments of each probe on arm64.
var arm64Args = map[string]string{
	"app:done":       "-4@x0 -8@x1 1@x2 8@x3",
	"app:tail":       "-4@x0",
	"app:dead":       "-4@x0",
	"app:generic":    "-8@x0 8@x1",
	"plain:declared": "8@x0 4@x1 -1@x2 2@x3",
	"plain:file":     "-4@x0 1@x1",

	"plain:wide":       "-4@x0 -8@x1 -2@x2 8@x3 -4@x4 1@x5 -4@x6 4@x7 -1@[sp, 0] 2@[sp, 8] -8@[sp, 16]",
	"plain:wide__tail": "-4@x0 -8@x1 -2@x2 8@x3 -4@x4 1@x5 -4@x6 4@x7 -1@[sp, 0] 2@[sp, 8] -8@[sp, 16]",

	"app:half__way":             "-4@x0",
	"old__app:half__done":       "-4@x0",
	"plain__text:end__of__line": "-4@x0",
}

// i386Args are the arguments of each probe on i386.
var i386Args = map[string]string{
	"app:done":       "-4@0(%esp) -4@4(%esp) 1@8(%esp) 4@12(%esp)",
	"app:tail":       "-4@0(%esp)",
	"app:dead":       "-4@0(%esp)",
	"app:generic":    "-4@0(%esp) 4@4(%esp)",
	"plain:declared": "4@0(%esp) 4@4(%esp) -1@8(%esp) 2@12(%esp)",
	"plain:file":     "-4@0(%esp) 1@4(%esp)",

	"plain:wide":       "-4@0(%esp) -4@4(%esp) -2@8(%esp) 4@12(%esp) -4@16(%esp) 1@20(%esp) -4@24(%esp) 4@28(%esp) -1@32(%esp) 2@36(%esp) -4@40(%esp)",
	"plain:wide__tail": "-4@0(%esp) -4@4(%esp) -2@8(%esp) 4@12(%esp) -4@16(%esp) 1@20(%esp) -4@24(%esp) 4@28(%esp) -1@32(%esp) 2@36(%esp) -4@40(%esp)",

	"app:half__way":             "-4@0(%esp)",
	"old__app:half__done":       "-4@0(%esp)",
	"plain__text:end__of__line": "-4@0(%esp)",
}

// ppc64Args are those on ppc64, where arguments on the stack are behind the room that the
// caller leaves for those in registers. ppc64le has the room nearer, and narrow ones first.
var ppc64Args = map[string]string{
	"app:done":       "-4@3 -8@4 1@5 8@6",
	"app:tail":       "-4@3",
	"app:dead":       "-4@3",
	"app:generic":    "-8@3 8@4",
	"plain:declared": "8@3 4@4 -1@5 2@6",
	"plain:file":     "-4@3 1@4",

	"plain:wide":       "-4@3 -8@4 -2@5 8@6 -4@7 1@8 -4@9 4@10 -1@119(1) 2@126(1) -8@128(1)",
	"plain:wide__tail": "-4@3 -8@4 -2@5 8@6 -4@7 1@8 -4@9 4@10 -1@119(1) 2@126(1) -8@128(1)",

	"app:half__way":             "-4@3",
	"old__app:half__done":       "-4@3",
	"plain__text:end__of__line": "-4@3",
}

var ppc64leArgs = func() map[string]string {
	args := maps.Clone(ppc64Args)
	for _, name := range []string{"plain:wide", "plain:wide__tail"} {
		args[name] = "-4@3 -8@4 -2@5 8@6 -4@7 1@8 -4@9 4@10 -1@96(1) 2@104(1) -8@112(1)"
	}
	return args
}()

// s390xArgs are those on s390x. Narrow ones on the stack are the last bytes of their words.
var s390xArgs = map[string]string{
	"app:done":       "-4@%r2 -8@%r3 1@%r4 8@%r5",
	"app:tail":       "-4@%r2",
	"app:dead":       "-4@%r2",
	"app:generic":    "-8@%r2 8@%r3",
	"plain:declared": "8@%r2 4@%r3 -1@%r4 2@%r5",
	"plain:file":     "-4@%r2 1@%r3",

	"plain:wide":       "-4@%r2 -8@%r3 -2@%r4 8@%r5 -4@%r6 1@167(%r15) -4@172(%r15) 4@180(%r15) -1@191(%r15) 2@198(%r15) -8@200(%r15)",
	"plain:wide__tail": "-4@%r2 -8@%r3 -2@%r4 8@%r5 -4@%r6 1@167(%r15) -4@172(%r15) 4@180(%r15) -1@191(%r15) 2@198(%r15) -8@200(%r15)",

	"app:half__way":             "-4@%r2",
	"old__app:half__done":       "-4@%r2",
	"plain__text:end__of__line": "-4@%r2",
}

// TestGDBRemotely makes the arguments read in programs that are emulated.
func TestGDBRemotely(t *testing.T) {
	for _, c := range []struct {
		compiler
		args map[string]string
	}{{arm, armArgs}, {armClang, armArgs}, {arm64, arm64Args}, {i386, i386Args}, {ppc64, ppc64Args}, {ppc64le, ppc64leArgs}, {s390x, s390xArgs}} {
		t.Run(c.machine.Name+"/"+c.cc.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "gdb-multiarch", c.machine.QEMU)
			p := compileProgram(t, c.compiler, "-g")
			exe, err := p.image(t, "program", []string{"-static"}, append(p.convert(t), p.main, p.rest)...)
			if err != nil {
				t.Fatal(err)
			}
			checkArgs(t, checkNotes(t, p.executable(t)), c.args)
			checkArgs(t, checkNotes(t, exe), c.args)
			got := underGDB(t, "gdb-multiarch", "target remote "+c.machine.WaitForGDB(t, exe, "\n\n\n")+"\n"+commands()+"continue\n", exe)
			want := p.twinUnder(t, 3, c.machine.QEMU)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRISCV compares notes with records where linkers move code.
func TestRISCV(t *testing.T) {
	p := compileProgram(t, riscv64, "-g")
	for _, n := range checkNotes(t, p.executable(t)) {
		want := map[string]string{
			"done": "-4@a0 -8@a1 1@a2 8@a3",
			"wide": "-4@a0 -8@a1 -2@a2 8@a3 -4@a4 1@a5 -4@a6 4@a7 -1@0(sp) 2@8(sp) -8@16(sp)",
		}
		if args, ok := want[n.name]; ok && n.args != args {
			t.Errorf("%v: %s", n, n.args)
		}
	}
}
