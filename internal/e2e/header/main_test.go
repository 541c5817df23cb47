package header

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// Where the tests make files, the converter, and the folder of sdt.h.
var scratch, converter, include string

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, func(folder, program string) (err error) {
		scratch, converter = folder, program
		include, err = filepath.Abs("../../../include")
		return err
	}))
}

// made are files that tests share, by what makes them.
var made sync.Map // string -> *file

type file struct {
	once sync.Once
	path string
	err  error
}

// output appends `-o <a file>` to a command and runs it, once for all tests. The
// file is called base.
func output(t *testing.T, base string, command ...string) string {
	t.Helper()
	v, _ := made.LoadOrStore(strings.Join(append(command, base), "\x00"), &file{})
	f := v.(*file)
	f.once.Do(func() {
		var dir string
		if dir, f.err = os.MkdirTemp(scratch, ""); f.err == nil {
			f.path = filepath.Join(dir, base)
			_, f.err = tools.Try(command[0], append(slices.Clone(command[1:]), "-o", f.path)...)
		}
	})
	if f.err != nil {
		t.Fatal(f.err)
	}
	return f.path
}

// sortedLines are the lines of a text that are not empty.
func sortedLines(text string) []string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// checkLines compares sorted lines, and shows what differs.
func checkLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, d := range difference(want, got) {
		t.Errorf("%s: missing: %s", what, d)
	}
	for _, d := range difference(got, want) {
		t.Errorf("%s: too much: %s", what, d)
	}
}

// difference is what is oftener in a than in b.
func difference(a, b []string) []string {
	count := map[string]int{}
	for _, s := range b {
		count[s]++
	}
	var d []string
	for _, s := range a {
		if count[s]--; count[s] < 0 {
			d = append(d, s)
		}
	}
	return d
}
