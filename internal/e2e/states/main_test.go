package states

import (
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/tools"
)

var converter string

func TestMain(m *testing.M) {
	tools.Main(m, `TestCustomNames`, &converter, nil)
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
	tools.Command{Directory: f.path}.Must(f, command[0], command[1:]...)
}

// run runs the program in the directory.
func (f directory) run(args ...string) tools.Result {
	f.Helper()
	return tools.Command{Directory: f.path}.Result(f, converter, args...)
}

// convert runs the program, which must not fail.
func (f directory) convert(args ...string) { f.must(append([]string{converter}, args...)...) }
