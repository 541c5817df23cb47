// Package shared keeps files that several tests of a package use, each made once.
package shared

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// Files are the files in a directory, which has to be set before the first is made.
type Files struct {
	Directory string
	mutex     sync.Mutex
	made      map[string]*file
}

type file struct {
	once sync.Once
	path string
	err  error
}

// Make makes a file once for all tests that name it by the same words. Its base
// name is the given one: linkers show it, and the C++ runtime does not mind.
func (f *Files) Make(base string, words []string, build func(out string) error) (string, error) {
	key := strings.Join(append([]string{base}, words...), "\x00")
	f.mutex.Lock()
	if f.made == nil {
		f.made = map[string]*file{}
	}
	m := f.made[key]
	if m == nil {
		m = &file{path: filepath.Join(f.Directory, fmt.Sprintf("%05d", len(f.made)), base)}
		f.made[key] = m
	}
	f.mutex.Unlock()
	m.once.Do(func() {
		if m.err = os.Mkdir(filepath.Dir(m.path), 0o777); m.err == nil {
			m.err = build(m.path)
		}
	})
	return m.path, m.err
}

// Must is Make for what has to succeed.
func (f *Files) Must(t testing.TB, base string, words []string, build func(out string) error) string {
	t.Helper()
	return expect.Value(f.Make(base, words, build))(t)
}

// Run has a program make a file, once for all tests that give it these words. Behind them it
// gets -o and the path.
func (f *Files) Run(base, program string, args ...string) (string, error) {
	return f.Make(base, slices.Concat([]string{program}, args), func(out string) error {
		_, err := tools.Try(program, slices.Concat(args, []string{"-o", out})...)
		return err
	})
}

// Driver is tools.Driver for all tests of a package.
func (f *Files) Driver(linker string) (string, error) {
	ld, err := f.Make("ld", []string{"driver", linker}, func(out string) error {
		path, err := exec.LookPath(linker)
		if err == nil {
			err = os.Symlink(path, out)
		}
		return err
	})
	return filepath.Dir(ld) + "/", err
}
