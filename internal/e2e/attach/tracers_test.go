package attach

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// commands has gdb print the arguments of each probe as the twin's stubs do, and go on.
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
	out := tools.GDB(t, gdb, exe, script, more...)
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
	disk.Write(t, input, "\n\n\n")
	lib, _ := p.library(t)
	for name, exe := range map[string]string{"pie": p.executable(t), "library": lib} {
		t.Run(p.cc.Name+"/"+name, func(t *testing.T) {
			script := "break main\nrun <" + input + " >/dev/null\ndelete\n" + commands() + "continue\n"
			expect.Equal(t, want, underGDB(t, "gdb", script, exe))
		})
	}
}

// TestGDBRemotely makes the arguments read in programs that are emulated.
func TestGDBRemotely(t *testing.T) {
	for _, c := range []compiler{arm, armClang, arm64, i386, ppc64, ppc64le, s390x} {
		t.Run(c.machine.Name+"/"+c.cc.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "gdb-multiarch", c.machine.QEMU)
			p := compileProgram(t, c, "-g")
			exe := p.image(t, "program", []string{"-static"}, append(p.convert(t), p.main, p.rest)...)
			checkNotes(t, p.executable(t))
			checkNotes(t, exe)
			got := underGDB(t, "gdb-multiarch", "target remote "+c.machine.WaitForGDB(t, exe, "\n\n\n")+"\n"+commands()+"continue\n", exe)
			want := p.twinUnder(t, 3, c.machine.QEMU)
			expect.Equal(t, want, got)
		})
	}
}

// bpftraceProgram has bpftrace print the arguments of each probe as the twin's stubs do,
// and count the hits of all.
func bpftraceProgram(image string) string {
	var s strings.Builder
	s.WriteString("BEGIN { printf(\"attached\\n\"); }\n")
	for _, b := range []struct{ probe, format, args string }{
		{"app:done", `%d %ld %d %s`, "(int32)arg0, (int64)arg1, arg2, str(arg3)"},
		{"app:tail", `%d`, "(int32)arg0"},
		{"app:generic", `%ld %s`, "(int64)arg0, str(arg1)"},
		{"plain:declared", `%s %d %d %d`, "str(arg0), arg1, (int8)arg2, arg3"},
		{"plain:file", `%d %d`, "(int32)arg0, arg1"},
		{"plain:wide", `%d %d`, "(int32)arg0, arg5"},
		{"plain:wide__tail", `%d %d`, "(int32)arg0, arg5"},
		{"app:half__way", `%d`, "(int32)arg0"},
		{"old__app:half__done", `%d`, "(int32)arg0"},
		{"plain__text:end__of__line", `%d`, "(int32)arg0"},
	} {
		fmt.Fprintf(&s, "usdt:%s:%s { printf(\"> %s %s\\n\", %s); @hits[probe] = count(); }\n", image, b.probe, b.probe, b.format, b.args)
	}
	return s.String()
}

// trace attaches bpftrace to a running program, has it run its probes n times,
// and returns what bpftrace prints until the program ends, which must not fail.
func trace(t *testing.T, exe, image string, n int) []string {
	t.Helper()
	return traceBy(t, bpftraceProgram(image), exe, n)
}

// traceBy is trace with a program for bpftrace.
func traceBy(t *testing.T, program, exe string, n int) []string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.bt")
	disk.Write(t, script, program)
	p := tools.Start(t, exe)
	if before := p.Until(t, "ready"); len(before) > 0 {
		t.Fatalf("%s prints %q", exe, before)
	}
	cmd := exec.Command("bpftrace", "-p", strconv.Itoa(p.Process.Pid), script)
	cmd.Stderr = os.Stderr
	tracer := tools.StartCommand(t, cmd)
	var all []string
	for line := range tracer.Lines() {
		if line == "attached" {
			io.WriteString(p.Stdin, strings.Repeat("\n", n))
			go p.End()
		}
		all = append(all, line)
	}
	if err := tracer.End(); err != nil {
		t.Fatalf("bpftrace: %v\n%s", err, strings.Join(all, "\n"))
	}
	if !slices.Contains(all, "attached") {
		t.Fatalf("bpftrace prints\n%s", strings.Join(all, "\n"))
	}
	if err := p.End(); err != nil {
		t.Errorf("%s, when it is traced: %v", exe, err)
	}
	return all
}

// inRegisters leaves out the lines of arguments in memory: on amd64, bpftrace 0.17 has
// names for six arguments.
func inRegisters(calls []string) []string {
	return slices.DeleteFunc(calls, func(line string) bool { return strings.HasPrefix(line, "memory ") })
}

// TestBpftrace compares what bpftrace prints of a running program with what the
// twin's stubs print, and how often it is hit with how often they are called.
func TestBpftrace(t *testing.T) {
	for _, c := range []compiler{gcc, clang} {
		p := compileProgram(t, c, "-g")
		exe := p.executable(t)
		tools.NeedUprobes(t)
		const n = 25
		want := inRegisters(p.calls(t, n))
		withLibrary, library := p.library(t)
		for _, im := range []struct{ name, exe, image string }{{"pie", exe, exe}, {"library", withLibrary, library}} {
			t.Run(c.cc.Name+"/"+im.name, func(t *testing.T) {
				t.Parallel()
				var got []string
				hits := 0
				for _, line := range trace(t, im.exe, im.image, n) {
					if call, ok := strings.CutPrefix(line, "> "); ok {
						got = append(got, call)
					}
					if strings.HasPrefix(line, "@hits[") {
						_, count, _ := strings.Cut(line, "]: ")
						of, _ := strconv.Atoi(count)
						hits += of
					}
				}
				// Each processor has a buffer of its own.
				want, got := slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
				expect.Equal(t, want, got)
				if hits != len(want) {
					t.Errorf("%d hits, and %d calls of the twin", hits, len(want))
				}
			})
		}
	}
}

// probes returns the names of the test program's probes, made by a format of provider
// and name, and sorted.
func probes(format string) []string {
	var all []string
	for name := range wantArgs {
		provider, name, _ := strings.Cut(name, ":")
		all = append(all, fmt.Sprintf(format, provider, name))
	}
	slices.Sort(all)
	return all
}

// found collects what a pattern matches in the output of a tool, each once.
func found(pattern, out string) []string {
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(out, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTplistLists(t *testing.T) {
	tools.Need(t, "tplist-bpfcc")
	exe := compileProgram(t, gcc, "-g").executable(t)
	got := found(`(?m)^\S* (\w+:\S+)$`, tools.Must(t, "tplist-bpfcc", "-l", exe))
	expect.Equal(t, probes("%s:%s"), got)
}

func TestPerfLists(t *testing.T) {
	tools.Need(t, "perf")
	exe := compileProgram(t, gcc, "-g").executable(t)
	cache := t.TempDir()
	tools.Must(t, "perf", "--buildid-dir", cache, "buildid-cache", "--add", exe)
	got := found(`(?m)^\s*(sdt_\S+) `, tools.Must(t, "perf", "--buildid-dir", cache, "list", "sdt"))
	expect.Equal(t, probes("sdt_%s:%s"), got)
}

// stapList returns what stap lists of a program for a pattern of marks. It wants the
// headers of some kernel, without which it does nothing.
func stapList(t *testing.T, flag, exe, marks string) string {
	t.Helper()
	tools.Need(t, "stap")
	headers, err := filepath.Glob("/lib/modules/*/build/.config")
	if err != nil || len(headers) == 0 {
		tools.Unavailable(t, "no headers of a kernel")
	}
	release := strings.Split(headers[0], "/")[3]
	stap := tools.Command{Env: []string{"SYSTEMTAP_DIR=" + t.TempDir()}}
	return stap.Must(t, "stap", "-r", release, flag, fmt.Sprintf("process(%q).%s", exe, marks))
}

func TestStapLists(t *testing.T) {
	exe := compileProgram(t, gcc, "-g").executable(t)
	out := stapList(t, "-L", exe, `provider("*").mark("*")`)
	got := found(`(?m)\.(provider\("\w+"\)\.mark\("\S+"\))`, out)
	expect.Equal(t, probes(`provider("%s").mark("%s")`), got)
	if want := `mark("done") $arg1:long $arg2:long $arg3:long $arg4:long`; !strings.Contains(out, want) {
		t.Errorf("got\n%s, want %s", out, want)
	}
}
