package compile

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string // the program
	launcher  string // it, under the name by which it runs a compiler
	sources   = tools.Root("internal", "e2e", "compile", "testdata")
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestRandomCompilations|TestMake|TestSignals$`, &converter, func(directory string) error {
		launcher = filepath.Join(directory, "sdtconvert-cc")
		return os.Symlink(converter, launcher)
	})
}

// build is a directory with the sources, and commands that run there.
type build struct {
	tools.Command
	t *testing.T
}

func newBuild(t *testing.T) *build {
	t.Helper()
	return newBuildIn(t, t.TempDir())
}

func newBuildIn(t *testing.T, directory string) *build {
	t.Helper()
	expect.OK(t, os.CopyFS(directory, os.DirFS(sources)))
	return &build{tools.Command{Directory: directory}, t}
}

// must runs a program, which has to succeed.
func (b *build) must(program string, args ...string) string {
	b.t.Helper()
	return b.Must(b.t, program, args...)
}

func (b *build) path(name string) string { return filepath.Join(b.Directory, name) }

func (b *build) read(name string) string {
	b.t.Helper()
	return string(disk.Read(b.t, b.path(name)))
}

func (b *build) write(name, text string) {
	b.t.Helper()
	expect.OK(b.t, os.WriteFile(b.path(name), []byte(text), 0o777))
}

func (b *build) remove(names ...string) {
	b.t.Helper()
	for _, name := range names {
		expect.OK(b.t, os.RemoveAll(b.path(name)))
	}
}

func (b *build) exists(name string) bool {
	_, err := os.Lstat(b.path(name))
	return err == nil
}

// converted returns the object that a compiler makes of a source by itself, converted with
// flags.
func (b *build) converted(source string, compiler []string, flags ...string) string {
	b.t.Helper()
	object := filepath.Join(b.t.TempDir(), "object.o")
	args := append(compiler[1:len(compiler):len(compiler)], "-c", source, "-o", object)
	b.must(compiler[0], args...)
	b.must(converter, append(flags, object)...)
	return string(disk.Read(b.t, object))
}

// same checks that an object of the build is the one that converted returns.
func (b *build) same(object, want string) {
	b.t.Helper()
	if b.read(object) != want {
		b.t.Errorf("%s is not what the compiler makes and sdtconvert converts", object)
	}
}
