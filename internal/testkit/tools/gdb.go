package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

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
