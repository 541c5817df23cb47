package tools

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sdtconvert/internal/testkit/alone"
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

// used are the tools of each test that runs.
var used = struct {
	sync.Mutex
	by map[testing.TB][]string
}{by: map[testing.TB][]string{}}

// remember has a test that fails name the versions of the tools it ran with: what
// it asserts of them may be true of others. What is not found along PATH is no
// tool of others. It also logs how to run the test alone.
func remember(t testing.TB, tools ...string) {
	t.Helper()
	DependOnTree(t)
	used.Lock()
	defer used.Unlock()
	all, known := used.by[t]
	for _, tool := range tools {
		if tool == filepath.Base(tool) && !slices.Contains(all, tool) {
			all = append(all, tool)
		}
	}
	used.by[t] = all
	if known {
		return
	}
	alone.Report(t, "")
	t.Cleanup(func() {
		used.Lock()
		tools := used.by[t]
		delete(used.by, t)
		used.Unlock()
		if t.Failed() && len(tools) > 0 {
			t.Logf("with these tools:\n%s", versions(tools))
		}
	})
}

// versions returns the first lines that tools print when they are asked for theirs.
func versions(tools []string) string {
	var b strings.Builder
	for _, tool := range tools {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		out, err := exec.CommandContext(ctx, tool, "--version").CombinedOutput()
		cancel()
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if err != nil {
			line = "does not tell its version: " + err.Error()
		}
		b.WriteString("  " + tool + ": " + line + "\n")
	}
	return b.String()
}

// DependOnTree opens each directory of the project but those of documents, once. `go test`
// takes the result of an earlier run if no file that the test has opened has changed since,
// nor the entries of a directory; it does not see what other programs open for the test,
// nor what sdtconvert is built of. All functions of this package that run tools call it.
func DependOnTree(t testing.TB) {
	t.Helper()
	expect.OK(t, openTree())
}

var openTree = sync.OnceValue(func() error {
	return filepath.WalkDir(Root(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was temporary
			return nil
		case err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "docs"):
			return fs.SkipDir
		}
		return err
	})
})
