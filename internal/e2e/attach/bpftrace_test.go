package attach

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

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
