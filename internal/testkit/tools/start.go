package tools

import (
	"bufio"
	"io"
	"iter"
	"os/exec"
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
