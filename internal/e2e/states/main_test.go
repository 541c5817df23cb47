package states

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/tools"
)

var converter string

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, `TestCustomNames`, func(_, program string) error {
		converter = program
		return nil
	}))
}

// directory is where a test makes its files.
type directory struct {
	*testing.T
	path string
}

func newDirectory(t *testing.T) directory { return directory{t, t.TempDir()} }

func (f directory) file(name string) string { return filepath.Join(f.path, name) }

func (f directory) write(name, text string) {
	f.Helper()
	disk.Write(f, f.file(name), text)
}

// must runs a command in the directory.
func (f directory) must(command ...string) {
	f.Helper()
	tools.Command{Directory: f.path}.Must(f.T, command[0], command[1:]...)
}

// result is what a run of the program prints, and its exit status.
type result struct {
	stdout, stderr string
	status         int
}

// run runs the program in the directory.
func (f directory) run(args ...string) result {
	f.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command(converter, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.path, &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		f.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// convert runs the program, which must not fail.
func (f directory) convert(args ...string) result {
	f.Helper()
	r := f.run(args...)
	if r.status != 0 {
		f.Fatalf("%q: status %d\n%s%s", args, r.status, r.stdout, r.stderr)
	}
	return r
}
