package links

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// The folders of sources, of what the tests make, and the converter.
var (
	sources   string
	scratch   string
	converter string
)

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, func(folder, program string) (err error) {
		scratch, converter = folder, program
		sources, err = filepath.Abs("../../../testdata/objs")
		return err
	}))
}

// lines is the output of a tool, line by line, without what it wrote to stderr.
func lines(t *testing.T, name string, args ...string) []string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, tools.Shortened(stderr.String()))
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
