package design

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

// pages returns the documents in Markdown, by their paths from the module's directory.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "internal/e2e/*.md", "examples/*/*.md"} {
		found := expect.Value(filepath.Glob(tools.Root(pattern)))(t)
		all = append(all, found...)
	}
	if len(all) < 15 {
		t.Fatalf("only %d documents were found", len(all))
	}
	return all
}

var (
	// quotedPath is a file or directory of the module between backquotes. The directory of a
	// machine has a testdata, too, so paths that begin with that are not looked at.
	quotedPath = regexp.MustCompile("`((?:arch|cmd|docs|elfreloc|examples|image|include|internal|linkerset|patch|resolve|scripts)(?:/[a-zA-Z0-9_-][a-zA-Z0-9_.-]*)*)(?:/\\.\\.\\.)?`")
	linkedPath = regexp.MustCompile(`\]\(([^):#]+)(?:#[^)]*)?\)`)
)

// named lists the paths that a text names, as they are from the module's directory, if the
// text is in a directory of it.
func named(text, directory string) []string {
	var all []string
	for _, m := range quotedPath.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	for _, m := range linkedPath.FindAllStringSubmatch(text, -1) {
		all = append(all, filepath.Join(directory, m[1]))
	}
	return all
}

func TestDocumentsNameWhatThereIs(t *testing.T) {
	count := 0
	for _, page := range pages(t) {
		text := disk.Read(t, page)
		for _, path := range named(string(text), expect.Value(filepath.Rel(tools.Root(), filepath.Dir(page)))(t)) {
			count++
			if _, err := os.Stat(tools.Root(path)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d names were found", count)
	}
}

// Each package that is part of the program or of its library has a row in the table
// that says what it holds.
// quotedTest is the name of a test between backquotes, and testFunction begins one.
var (
	quotedTest   = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// What is promised of untrusted input names tests that there are.
func TestPromisesAreTested(t *testing.T) {
	tests := map[string]bool{}
	expect.OK(t, filepath.WalkDir(tools.Root(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range testFunction.FindAllSubmatch(disk.Read(t, path), -1) {
				tests[string(m[1])] = true
			}
		}
		return err
	}))
	count := 0
	for _, page := range []string{"SECURITY.md", "docs/limits.md"} {
		for _, m := range quotedTest.FindAllSubmatch(disk.Read(t, tools.Root(page)), -1) {
			if count++; !tests[string(m[1])] {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d tests are named", count)
	}
}

func TestPackagesAreDescribed(t *testing.T) {
	_, table, _ := strings.Cut(string(disk.Read(t, tools.Root("docs", "design.md"))), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	described := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				described[m[1]] = true
			}
		}
	}
	for _, p := range list(t, "./...") {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		test := strings.HasPrefix(path, "internal/testkit/") || strings.HasPrefix(path, "internal/e2e")
		if !test && len(p.GoFiles) > 0 && !described[path] {
			t.Errorf("%s has no row in the packages of docs/design.md", path)
		}
		delete(described, path)
	}
	for path := range described {
		t.Errorf("docs/design.md describes %s, which is not a package", path)
	}
}
