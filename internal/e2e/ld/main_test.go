package ld

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string // the program
	wrappers  string // the directory in which it has the names of linkers
	files     = tools.Root("internal", "e2e", "ld", "testdata")
)

// noPlugins keeps nm from loading LLVM, which takes it longer than all else.
const noPlugins = "--plugin="

func TestMain(m *testing.M) {
	tools.Main(m, `TestObjects|TestEnvironment$|TestScriptsThatAreRefused|TestOutputIsInput|TestSignals$|TestBuildSystems|TestRandom`, &converter, func(directory string) error {
		wrappers = filepath.Join(directory, "wrappers")
		names := []string{"ld"}
		for _, l := range linkers {
			names = append(names, "ld."+l.Family)
		}
		return tools.LinkAs(wrappers, converter, names...)
	})
}

var linkers = toolchains.AMD64.Newest()

// linker returns one of linkers by its family, which is the wrapper's name too.
func linker(family string) toolchains.Linker {
	for _, l := range linkers {
		if l.Family == family {
			return l
		}
	}
	panic(family)
}

// eachLinker runs a test in a directory of its own, with the sources in it, for each
// linker.
func eachLinker(t *testing.T, test func(t *testing.T, l toolchains.Linker)) {
	tools.Need(t, "gcc", "ar", "nm", "readelf")
	for _, l := range product.Few(t.Name(), linkers) {
		t.Run(l.Family, func(t *testing.T) {
			tools.Need(t, l.Path)
			enter(t, l.Path)
			test(t, l)
		})
	}
}

// enter goes to a directory with the sources, where nothing may be left behind.
func enter(t *testing.T, linker string) {
	t.Helper()
	t.Chdir(t.TempDir())
	expect.OK(t, os.CopyFS(".", os.DirFS(files)))
	leftovers := t.TempDir()
	t.Setenv("TMPDIR", leftovers)
	t.Setenv("SDTCONVERT_LD", linker)
	t.Cleanup(func() {
		entries, err := os.ReadDir(leftovers)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "sdtconvert") {
				t.Errorf("left behind: %s", e.Name())
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// gcc runs the compiler with the wrapper of a linker.
func gcc(t *testing.T, l toolchains.Linker, args ...string) string {
	t.Helper()
	return tools.Must(t, "gcc", append([]string{"-B" + wrappers, l.Use()}, args...)...)
}

// compile compiles sources to objects beside them.
func compile(t *testing.T, sources ...string) {
	t.Helper()
	for _, s := range sources {
		tools.Must(t, "gcc", "-O2", "-c", "-o", strings.TrimSuffix(s, ".c")+".o", s)
	}
}

// run runs a program, which prints the probes that it finds in itself.
func run(t *testing.T, program string) string {
	t.Helper()
	if !filepath.IsAbs(program) {
		program = "./" + program
	}
	return tools.Must(t, program)
}

// checkOutput compares what a program prints.
func checkOutput(t *testing.T, program, want string) {
	t.Helper()
	expect.Equal(t, want, strings.Join(strings.Fields(run(t, program)), " "), "%s prints", program)
}

// untouched checks that files are what they were when it was called.
func untouched(t *testing.T, names ...string) func() {
	t.Helper()
	was := map[string]string{}
	state := func(name string) string {
		data := disk.Read(t, name)
		return fmt.Sprintf("%v %x", expect.Value(os.Stat(name))(t).ModTime(), bytes.Clone(data))
	}
	for _, name := range names {
		was[name] = state(name)
	}
	return func() {
		t.Helper()
		for name, want := range was {
			if state(name) != want {
				t.Errorf("%s has changed", name)
			}
		}
	}
}

// wrapped runs sdtconvert ld, and returns both outputs and how it ended.
func wrapped(l toolchains.Linker, args ...string) (string, error) {
	return combined(converter, append([]string{"ld", "--linker", l.Path}, args...)...)
}

// combined runs a program by its full name, which linkers print.
func combined(name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	return string(out), err
}

// servedName matches names that files of the wrapper have: a temporary file, and descriptors.
var servedName = regexp.MustCompile(`.{0,80}(sdtconvert-\d+\.o|memfd:|/proc/(self|\d+)/fd).{0,80}`)

// sayNothing checks that text names no file of the wrapper's own.
func sayNothing(t *testing.T, what, text string) {
	t.Helper()
	expect.Equal(t, "", servedName.FindString(text), "%s names a file of the wrapper", what)
}

func read(t *testing.T, name string) string {
	t.Helper()
	return string(disk.Read(t, name))
}
