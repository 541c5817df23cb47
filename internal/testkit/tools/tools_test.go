package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// fake is a test that ends when it is told to.
type fake struct {
	testing.TB
	failed   bool
	log      string
	cleanups []func()
}

func (f *fake) Helper()                        {}
func (f *fake) Failed() bool                   { return f.failed }
func (f *fake) Cleanup(c func())               { f.cleanups = append(f.cleanups, c) }
func (f *fake) Logf(format string, a ...any)   { f.log += fmt.Sprintf(format, a...) }
func (f *fake) Fatalf(format string, a ...any) { f.Fatal(fmt.Sprintf(format, a...)) }
func (f *fake) Fatal(...any)                   { f.failed = true }
func (f *fake) Error(...any)                   { f.failed = true }

func (f *fake) end() {
	for _, c := range f.cleanups {
		c()
	}
}

// A test that fails names the versions of the tools that it ran with, each once, and
// another says nothing.
func TestFailuresNameVersions(t *testing.T) {
	for _, fails := range []bool{false, true} {
		f := &fake{TB: t}
		Need(f, "sh", "sort")
		Must(f, "sort", "--version")
		Output(f, "env", "true")
		Must(f, filepath.Join("/bin", "true"))
		if f.failed {
			t.Fatal("a command has failed")
		}
		if fails {
			Must(f, "cat", "/nonexistent")
		}
		f.end()
		for _, tool := range []string{"sort", "env", "cat"} {
			if got := strings.Count(f.log, "  "+tool+": "+tool+" (GNU coreutils)"); got == 1 != fails {
				t.Errorf("failed %v, and names %s %d times: %s", fails, tool, got, f.log)
			}
		}
		if strings.Contains(f.log, "true:") {
			t.Errorf("it names what is not a tool of others: %s", f.log)
		}
	}
}

func TestCommand(t *testing.T) {
	directory := t.TempDir()
	c := Command{Directory: directory, Env: []string{"OF=env"}, Stdin: "in\n"}
	if got, want := c.Output(t, "sh", "-c", "pwd; echo $OF; cat; echo err >&2"), directory+"\nenv\nin\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	expect.Equal(t, "err\n", c.Must(t, "sh", "-c", "echo err >&2"))
	if out, err := c.Try("sh", "-c", "echo out; exit 3"); err == nil || out != "out\n" || !strings.Contains(err.Error(), "exit status 3\nout\n") {
		t.Errorf("got %q, %v", out, err)
	}
	if out := Refuses(t, "out", "sh", "-c", "echo out; exit 3"); out != "out\n" {
		t.Errorf("got %q", out)
	}
	f := &fake{TB: t}
	if Refuses(f, "out", "echo", "out"); !f.failed {
		t.Error("a command that succeeds refuses nothing")
	}
	expect.Equal(t, "out\n", (Command{AnyStatus: true}).Output(t, "sh", "-c", "echo out; exit 3"))
}

func TestStart(t *testing.T) {
	p := Start(t, "sh", "-c", "echo one; echo ready; read line; echo got $line; exit 3")
	if got := p.Until(t, "ready"); len(got) != 1 || got[0] != "one" {
		t.Errorf("got %q", got)
	}
	fmt.Fprintln(p.Stdin, "a line")
	for line := range p.Lines() {
		expect.Equal(t, "got a line", line)
	}
	for range 2 {
		expect.Equal(t, "exit status 3", fmt.Sprint(p.End()))
	}
	f := &fake{TB: t}
	short := Start(f, "echo", "other")
	short.Until(f, "ready")
	if f.end(); !f.failed {
		t.Error("a program that ends before it is ready is not a failure")
	}
}
