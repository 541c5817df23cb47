package linktest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The folders of sources, of what the tests make, and the converter.
var (
	sources   string
	scratch   string
	converter string
)

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if sources, err = filepath.Abs("../../testdata/objs"); err == nil {
		scratch, err = os.MkdirTemp("", "linktest-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	converter = filepath.Join(scratch, "sdtconvert")
	if _, err := try("go", "build", "-o", converter, "sdtconvert/cmd/sdtconvert"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// need skips a test without which a tool is missing. In CI every tool is there,
// and its absence is a fault: a test that never runs protects nothing.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			unavailable(t, "no "+tool)
		}
	}
}

func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// The longest a command may take: a link or a run that takes longer hangs.
const patience = 2 * time.Minute

// try runs a command and returns what it wrote to both outputs; a failure names
// the command and holds the output.
func try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, shortened(string(out)))
	}
	return string(out), err
}

func shortened(s string) string {
	if len(s) > 4000 {
		return s[:2000] + "\n...\n" + s[len(s)-2000:]
	}
	return s
}

// must is try for what has to succeed.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lines is the output of a tool, line by line, without what it wrote to stderr.
func lines(t *testing.T, name string, args ...string) []string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, shortened(stderr.String()))
	}
	return strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
}

// made is a file that several tests share.
type made struct {
	once sync.Once
	path string
	err  error
}

var (
	madeMutex sync.Mutex
	madeFiles = map[string]*made{}
)

// shared makes a file once for all tests that name it by the same words. Its
// base name is the given one: linkers show it, and the C++ runtime does not mind.
func shared(t *testing.T, base string, words []string, build func(out string) error) string {
	t.Helper()
	path, err := sharedErr(base, words, build)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// sharedErr is shared for what may fail.
func sharedErr(base string, words []string, build func(out string) error) (string, error) {
	key := strings.Join(append([]string{base}, words...), "\x00")
	madeMutex.Lock()
	m := madeFiles[key]
	if m == nil {
		m = &made{path: filepath.Join(scratch, fmt.Sprintf("%05d", len(madeFiles)), base)}
		madeFiles[key] = m
	}
	madeMutex.Unlock()
	m.once.Do(func() {
		if m.err = os.Mkdir(filepath.Dir(m.path), 0o777); m.err == nil {
			m.err = build(m.path)
		}
	})
	return m.path, m.err
}

// tool is where a program is.
func tool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
