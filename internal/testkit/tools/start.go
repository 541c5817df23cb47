package tools

import (
	"bufio"
	"io"
	"iter"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
)

// Program is a program of others that runs beside a test.
type Program struct {
	*exec.Cmd
	Stdin io.WriteCloser
	lines *bufio.Scanner
	once  sync.Once
	err   error
}

// Start runs a program that goes on until its standard input ends, as it does with
// the test at the latest. One that hangs is killed.
func Start(t testing.TB, program string, args ...string) *Program {
	t.Helper()
	remember(t, program)
	return StartCommand(t, exec.Command(program, args...))
}

// StartCommand is Start of a command that was prepared.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	stdin := expect.Value(cmd.StdinPipe())(t)
	stdout := expect.Value(cmd.StdoutPipe())(t)
	expect.OK(t, cmd.Start())
	watchdog := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	p := &Program{Cmd: cmd, Stdin: stdin, lines: bufio.NewScanner(stdout)}
	t.Cleanup(func() {
		p.End()
		watchdog.Stop()
	})
	return p
}

// Lines returns the lines that a program prints from here on.
func (p *Program) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		for p.lines.Scan() && yield(p.lines.Text()) {
		}
	}
}

// Until returns the lines that a program prints before a certain one, which it has
// to print.
func (p *Program) Until(t testing.TB, last string) []string {
	t.Helper()
	var before []string
	for line := range p.Lines() {
		if line == last {
			return before
		}
		before = append(before, line)
	}
	t.Fatalf("%s ends without %q: %s", p.Path, last, strings.Join(before, "\n"))
	return nil
}

// End ends a program's standard input, and returns how the program ended. What it
// prints has to be read before.
func (p *Program) End() error {
	p.once.Do(func() {
		p.Stdin.Close()
		p.err = p.Wait()
	})
	return p.err
}

// GDBSettings begin the scripts of gdb: it asks no questions then.
const GDBSettings = "set pagination off\nset confirm off\nset debuginfod enabled off\nset breakpoint pending on\n"

// GDB runs a program under gdb, with a script and more words, and returns what both print. The
// test is skipped where gdb may not run programs.
func GDB(t testing.TB, gdb, exe, script string, more ...string) string {
	t.Helper()
	Need(t, gdb)
	file := filepath.Join(t.TempDir(), "script.gdb")
	expect.OK(t, os.WriteFile(file, []byte(GDBSettings+script), 0o666))
	out, err := Try(gdb, append(more, "-nx", "-batch", "-x", file, exe)...)
	if strings.Contains(out, "ptrace: ") {
		Unavailable(t, "gdb may not run programs: "+Shortened(out))
	}
	expect.OK(t, err)
	return out
}

// NeedUprobes skips a test where bpftrace is there and the kernel lets it attach to no
// program: no package can change that.
func NeedUprobes(t testing.TB) {
	t.Helper()
	Need(t, "bpftrace")
	if why := attaches(); why != "" {
		t.Skip(why)
	}
}

// attaches reports why bpftrace cannot trace a program of this machine, "" if it can.
var attaches = sync.OnceValue(func() string {
	exe, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	out, err := Try("bpftrace", "-e", "uprobe:"+exe+":main.main { exit(); } BEGIN { printf(\"attached\\n\"); exit(); }")
	if err != nil || !strings.Contains(out, "attached") {
		return "no uprobes on this machine: " + out
	}
	return ""
})

// Heed makes programs that the test starts heed signals which this process was started
// to ignore, as under nohup: those that a process watches are the default for a child.
func Heed(t testing.TB, signals ...os.Signal) {
	t.Helper()
	c := make(chan os.Signal, 1)
	signal.Notify(c, signals...)
	t.Cleanup(func() { signal.Stop(c) })
}
