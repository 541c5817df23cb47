package attach

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
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
