package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// tested returns the directories of the project that hold tests, but for this one.
func tested(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	root := os.DirFS(tools.Root())
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if directory := filepath.Dir(path); strings.HasSuffix(path, "_test.go") && directory != "internal/e2e" {
			all[directory] = true
		}
		return err
	})
	expect.OK(t, err)
	return all
}

// The map names each directory with tests in the first column of a table, and no other
// that is none.
func TestMapIsComplete(t *testing.T) {
	text := disk.Read(t, tools.Root("internal", "e2e", "README.md"))
	left := tested(t)
	directory := regexp.MustCompile("`([a-z0-9/]+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range directory.FindAllStringSubmatch(cells[1], -1) {
			expect.Value(os.Stat(tools.Root(match[1])))(t)
			delete(left, match[1])
		}
	}
	for directory := range left {
		t.Errorf("%s is missing in the map", directory)
	}
}
