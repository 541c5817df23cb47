package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
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
