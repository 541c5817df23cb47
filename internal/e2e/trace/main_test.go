package trace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string
	linkers   string // the directory of the linker that converts, for -B
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestRandom|TestOrders|TestKilled|TestStatus`, &converter, func(directory string) error {
		linkers = filepath.Join(directory, "bin")
		return tools.LinkAs(linkers, converter, "ld")
	})
}

// compile compiles a program of testdata, or a source.
func compile(t *testing.T, command []string, source string, flags ...string) string {
	t.Helper()
	tools.Need(t, command[0])
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	args := append(command[1:], "-O2", "-I"+include, "-B"+linkers, "-pthread", "-o", out, source)
	tools.Must(t, command[0], append(args, flags...)...)
	return out
}

func gcc() []string { return toolchains.AMD64.CC(toolchains.GCC) }

// needPtrace skips a test where programs may not trace each other.
func needPtrace(t *testing.T) {
	t.Helper()
	out, err := exec.Command(converter, "trace", "--", "true").CombinedOutput()
	if err != nil {
		tools.Unavailable(t, fmt.Sprintf("sdtconvert trace -- true: %v: %s", err, out))
	}
}

// parallel is needPtrace for a test that runs beside others.
func parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	needPtrace(t)
}

// traced is what a run of the tracer has written.
type traced struct {
	lines    []string // without time and thread
	threads  []string // of each line
	messages string
	err      error
}

var eventLine = regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{6} (?:\d+/)?(\d+|\?) (.*)$`)

// trace runs the tracer. The program's own output must not go to standard output.
func trace(t *testing.T, args ...string) traced {
	t.Helper()
	out, messages, err := tools.Command{}.Apart(converter, append([]string{"trace"}, args...)...)
	r := traced{messages: messages, err: err}
	for line := range strings.Lines(out) {
		match := eventLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			t.Fatalf("%q is no event", line)
		}
		r.threads, r.lines = append(r.threads, match[1]), append(r.lines, match[2])
	}
	return r
}

// lines returns the lines of a file.
func lines(t *testing.T, path string) []string {
	t.Helper()
	return strings.Split(strings.TrimSuffix(string(disk.Read(t, path)), "\n"), "\n")
}

// wantLines compares events with what the program has printed.
func wantLines(t *testing.T, want, got []string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("event %d: got %s, the program says %s", i, got[i], want[i])
		}
	}
	expect.Equal(t, len(want), len(got), "events")
}

// write writes a source.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	expect.OK(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}
