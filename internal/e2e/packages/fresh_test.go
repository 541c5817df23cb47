package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// machine makes a directory of links to the system's programs, but for those that a minimal system lacks, with scripts in the place of
// some.
func machine(t *testing.T, scripts map[string]string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	lacking := []string{"cc", "gcc", "c99", "sudo"}
	for _, directory := range []string{"/usr/sbin", "/usr/bin"} {
		for _, e := range expect.Value(os.ReadDir(directory))(t) {
			name := filepath.Join(bin, e.Name())
			if _, err := os.Lstat(name); err != nil && !slices.Contains(lacking, e.Name()) && scripts[e.Name()] == "" {
				expect.OK(t, os.Symlink(filepath.Join(directory, e.Name()), name))
			}
		}
	}
	for name, text := range scripts {
		disk.Write(t, filepath.Join(bin, name), "#!/bin/sh\n"+text)
		expect.OK(t, os.Chmod(filepath.Join(bin, name), 0o777))
	}
	return bin
}

// TestFreshMachine runs scripts where tools are missing: as root they install them, others get the line that does before anything else.
func TestFreshMachine(t *testing.T) {
	tools.Need(t, "apt-get", "dpkg-query", "go", "gcc", "setpriv")
	locked := t.TempDir()
	expect.OK(t, os.Chmod(locked, 0o555))
	for _, c := range []struct{ script, user, output string }{
		{"demo", "1000", "demo: neither root nor sudo; run as root: apt-get update && apt-get install --no-install-recommends gcc libc6-dev\n"},
		{"test", "1000", "install-tools: neither root nor sudo; run as root: scripts/install-tools\n"},
		{"install", "0", "install: cannot write to " + locked + ": run it as root, or PREFIX=$HOME/.local scripts/install\n"},
	} {
		t.Run(c.script, func(t *testing.T) {
			bin := machine(t, map[string]string{"id": "echo " + c.user + "\n", "apt-get": "exit 1\n", "dpkg-query": "exit 1\n", "go": "exit 1\n"})
			// Without capabilities, root writes to no directory that is locked.
			command := exec.Command("setpriv", "--bounding-set=-all", "--inh-caps=-all", tools.Root("scripts", c.script))
			if os.Getuid() != 0 {
				command = exec.Command(tools.Root("scripts", c.script))
			}
			command.Env = []string{"PATH=" + bin, "HOME=" + t.TempDir(), "PREFIX=" + filepath.Join(locked, "prefix")}
			out, err := command.CombinedOutput()
			if err == nil || !bytes.HasPrefix(out, []byte(c.output)) || bytes.Count(out, []byte("\n")) != 1 {
				t.Errorf("%v, and it prints\n%swant\n%s", err, out, c.output)
			}
		})
	}
}

// TestDemo shows a program that is traced, after the C compiler is installed that the machine lacks.
func TestDemo(t *testing.T) {
	tools.Need(t, "apt-get", "go", "gcc")
	gcc := expect.Value(exec.LookPath("gcc"))(t)
	bin := machine(t, map[string]string{"id": "echo 0\n", "apt-get": "echo \"$@\" >>\"${0%/*}/asked\"\nln -sf " + gcc + " \"${0%/*}/cc\"\n"})
	path := "PATH=" + bin + ":" + filepath.Dir(expect.Value(exec.LookPath("go"))(t))
	out := tools.Command{Env: []string{path}}.Must(t, tools.Root("scripts", "demo"))
	expect.Contains(t, string(disk.Read(t, filepath.Join(bin, "asked"))), " install --no-install-recommends gcc libc6-dev\n")
	for _, shown := range []string{"$ sdtconvert list -v hello\n", "$ ./hello world\n", "Next: scripts/install"} {
		expect.Contains(t, out, shown)
	}
}
