// Package tools runs compilers, linkers and readers of others in tests.
package tools

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// Root returns a path in the project's directory, from wherever tests run.
func Root(path ...string) string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(self), "..", "..", ".."}, path...)...)
}

// Need skips a test without which a tool is missing. In CI every tool is there,
// and its absence is a fault: a test that never runs protects nothing.
func Need(t testing.TB, tools ...string) {
	t.Helper()
	remember(t, tools...)
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			Unavailable(t, "no "+tool)
		}
	}
}

// Long skips a test in a run with -short, for which it takes too long.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes too long for -short")
	}
}

// Lacks reports whether one of some tools is missing. It is for those that Debian has no
// package of, which are not there in CI either.
func Lacks(tools ...string) bool {
	return slices.ContainsFunc(tools, func(tool string) bool {
		_, err := exec.LookPath(tool)
		return err != nil
	})
}

// Unavailable skips a test, or fails it in CI.
func Unavailable(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why + "; scripts/install-tools installs what the tests need")
	}
	t.Skip(why)
}

// The longest a command may take by itself: one that takes longer hangs.
const patience = 2 * time.Minute

// Command is how a command is run. The zero Command runs it in the test's directory,
// with its environment and without input.
type Command struct {
	Directory string
	Env       []string // added to the test's
	Stdin     string
	// AnyStatus takes a status other than 0 for an answer, and no failure.
	AnyStatus bool
	// Patience is the longest that it may take, 0 for two minutes.
	Patience time.Duration
}

// Try runs a command and returns what it wrote to both outputs; a failure names
// the command and holds the output.
func (c Command) Try(name string, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.run(&out, &out, name, args)
	return out.String(), explain(err, name, args, out.String())
}

// Must is Try for what has to succeed.
func (c Command) Must(t testing.TB, name string, args ...string) string {
	t.Helper()
	remember(t, name)
	return expect.Value(c.Try(name, args...))(t)
}

// Refuses is Try for what has to fail, with a text that has a part.
func (c Command) Refuses(t testing.TB, part, name string, args ...string) string {
	t.Helper()
	remember(t, name)
	out, err := c.Try(name, args...)
	expect.Error(t, err, "")
	expect.Contains(t, out, part, "%s %s", name, strings.Join(args, " "))
	return out
}

// Output runs a command, which has to succeed, and returns what it wrote to
// standard output.
func (c Command) Output(t testing.TB, name string, args ...string) string {
	t.Helper()
	remember(t, name)
	stdout, _, err := c.Apart(name, args...)
	expect.OK(t, err)
	return stdout
}

// Apart runs a command and returns what it wrote to each output; a failure names the
// command and holds its standard error.
func (c Command) Apart(name string, args ...string) (stdout, stderr string, err error) {
	var out, messages bytes.Buffer
	err = c.run(&out, &messages, name, args)
	return out.String(), messages.String(), explain(err, name, args, messages.String())
}

// Result is how a command ended: what it wrote, and its exit status, -1 if a signal ended it.
type Result struct {
	Stdout, Stderr string
	Status         int
}

// Result runs a command, whatever its exit status is.
func (c Command) Result(t testing.TB, name string, args ...string) Result {
	t.Helper()
	remember(t, name)
	var stdout, stderr strings.Builder
	err := c.run(&stdout, &stderr, name, args)
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		return Result{stdout.String(), stderr.String(), exit.ExitCode()}
	}
	expect.OK(t, err)
	return Result{stdout.String(), stderr.String(), 0}
}

func (c Command) run(stdout, stderr io.Writer, name string, args []string) error {
	limit := c.Patience
	if limit == 0 {
		limit = patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Directory, stdout, stderr
	if c.Stdin != "" {
		cmd.Stdin = strings.NewReader(c.Stdin)
	}
	if c.Env != nil {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); c.AnyStatus && errors.As(err, &exit) && exit.Exited() {
		return nil
	}
	return err
}

func explain(err error, name string, args []string, out string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, Shortened(out))
}

// Try, Must, Refuses and Output are those of the zero Command.
func Try(name string, args ...string) (string, error) { return Command{}.Try(name, args...) }

func Must(t testing.TB, name string, args ...string) string {
	t.Helper()
	return Command{}.Must(t, name, args...)
}

func Refuses(t testing.TB, part, name string, args ...string) string {
	t.Helper()
	return Command{}.Refuses(t, part, name, args...)
}

func Output(t testing.TB, name string, args ...string) string {
	t.Helper()
	return Command{}.Output(t, name, args...)
}

// Lines is Output line by line.
func Lines(t testing.TB, name string, args ...string) []string {
	t.Helper()
	return strings.Split(strings.TrimSuffix(Output(t, name, args...), "\n"), "\n")
}

// Shortened returns the beginning and the end of a long output.
func Shortened(s string) string {
	if len(s) > 4000 {
		return s[:2000] + "\n...\n" + s[len(s)-2000:]
	}
	return s
}

// Main builds sdtconvert, sets converter to its path, runs the tests of a package, and exits. If
// prepare is not nil, Main calls it first, with a directory for all tests. A run with -short has
// the tests that the regular expression short matches, if it names none.
func Main(m *testing.M, short string, converter *string, prepare func(directory string) error) {
	os.Exit(run(m, short, converter, prepare))
}

func run(m *testing.M, short string, converter *string, prepare func(directory string) error) int {
	Short(short)
	directory, err := os.MkdirTemp("", "sdtconvert-test-")
	if err == nil {
		defer os.RemoveAll(directory)
		*converter, err = Build(directory)
	}
	if err == nil && prepare != nil {
		err = prepare(directory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	debug.SetGCPercent(400) // these processes live for seconds
	return m.Run()
}

// LinkAs makes a directory in which a program has other names.
func LinkAs(directory, program string, names ...string) error {
	err := os.Mkdir(directory, 0o777)
	for _, name := range names {
		if err == nil {
			err = os.Symlink(program, filepath.Join(directory, name))
		}
	}
	return err
}

// MostlyWait has twice as many parallel tests of a package run at a time as there are
// processors, if no flag says how many: most of the time theirs is spent waiting for tracers
// to attach.
func MostlyWait() {
	flag.Parse()
	if n := flag.Lookup("test.parallel"); n.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		n.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
}

// Short makes the tests that a regular expression matches those of a run with -short, if
// it names none.
func Short(tests string) {
	flag.Parse()
	if run := flag.Lookup("test.run"); testing.Short() && run.Value.String() == "" {
		run.Value.Set(tests)
	}
}

// Build builds sdtconvert and returns its path in a directory. `go run` keeps what it has
// linked, so that of all packages only the first links. If SDTCONVERT_COVER names a directory,
// the program counts there which statements run (scripts/coverage).
func Build(directory string) (string, error) {
	args := []string{"run", "-exec", "cp -t '" + directory + "'"}
	if counters := os.Getenv("SDTCONVERT_COVER"); counters != "" {
		args = append(args, "-cover", "-coverpkg=sdtconvert/...")
		os.Setenv("GOCOVERDIR", counters) // go test has set another one
	}
	_, err := Command{Env: []string{"CGO_ENABLED=0"}}.Try("go", append(args, "sdtconvert/cmd/sdtconvert")...)
	return filepath.Join(directory, "sdtconvert"), err
}

// Driver returns the directory in which a compiler driver, told so by -B, finds a linker
// under the name ld.
func Driver(t testing.TB, linker string) string {
	t.Helper()
	remember(t, linker)
	path := expect.Value(exec.LookPath(linker))(t)
	directory := t.TempDir()
	expect.OK(t, os.Symlink(path, filepath.Join(directory, "ld")))
	return directory + "/"
}

// OpenELF opens a file until the test ends.
func OpenELF(t testing.TB, path string) *elfreloc.Object {
	t.Helper()
	f := expect.Value(os.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	return expect.Value(elfreloc.Open(f, expect.Value(f.Stat())(t).Size(), path))(t)
}

// Cases returns how many random cases a test compares: usual, a tenth of it in a run with
// -short, or the number in the environment variable SDTCONVERT_ATTACK.
func Cases(t testing.TB, usual int) int {
	t.Helper()
	text := os.Getenv("SDTCONVERT_ATTACK")
	switch {
	case text == "" && testing.Short():
		return (usual + 9) / 10
	case text == "":
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SDTCONVERT_ATTACK is %q: want a number of cases", text)
	}
	return n
}

// RecordsAlone returns the flags of a conversion that makes records, and no notes unless a flag
// asks for them.
func RecordsAlone(flags ...string) []string {
	says := func(flag string) bool {
		return flag == "--stapsdt" || flag == "--no-records" || strings.HasPrefix(flag, "--layout") || strings.HasPrefix(flag, "--section")
	}
	if slices.ContainsFunc(flags, says) {
		return slices.Clip(flags)
	}
	return append([]string{"--layout=pairs"}, flags...)
}

// init puts temporary files of all tests where scripts/scratch says, unless TMPDIR is set: in
// memory a run makes and removes a file for a third of what a disk's file system takes.
// Where there is no bash, the system's choice stays.
func init() {
	if os.Getenv("TMPDIR") != "" {
		return
	}
	if out, err := exec.Command("bash", Root("scripts", "scratch")).Output(); err == nil {
		os.Setenv("TMPDIR", strings.TrimSpace(string(out)))
	}
}
