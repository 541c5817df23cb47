package design

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// layers are the rows of a table, the uppermost first: patterns of packages as
// go list takes them, without the module's path.
type layers [][]string

// readLayers reads the table of a document's section "Layers".
func readLayers(text string) layers {
	_, text, _ = strings.Cut(text, "\n## Layers\n")
	text, _, _ = strings.Cut(text, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	var table layers
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		var row []string
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			row = append(row, m[1])
		}
		if row != nil {
			table = append(table, row)
		}
	}
	return table
}

// find returns the row of a package and the pattern that names it.
func (l layers) find(path string) (row int, pattern string, err error) {
	row = -1
	for i, patterns := range l {
		for _, p := range patterns {
			directory, all := strings.CutSuffix(p, "/...")
			if p != path && !(all && (path == directory || strings.HasPrefix(path, directory+"/"))) {
				continue
			}
			if row >= 0 {
				return 0, "", fmt.Errorf("%s is in the table as %s and as %s", path, pattern, p)
			}
			row, pattern = i, p
		}
	}
	if row < 0 {
		return 0, "", fmt.Errorf("%s is not in the table", path)
	}
	return row, pattern, nil
}

// check compares the imports of packages with the table.
func (l layers) check(packages []pkg) (wrong []string) {
	used := map[string]bool{}
	for _, p := range packages {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		row, pattern, err := l.find(path)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		used[pattern] = true
		for _, im := range p.Imports {
			to, ours := strings.CutPrefix(im, module+"/")
			if !ours {
				continue
			}
			below, own, err := l.find(to)
			if err == nil && below <= row && own != pattern {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which is not below it", path, to))
			}
		}
	}
	for _, p := range slices.Concat(l...) {
		if !used[p] {
			wrong = append(wrong, fmt.Sprintf("%s is in the table, and there is no such package", p))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestPackagesImportOnlyWhatIsBelowThem(t *testing.T) {
	table := readLayers(string(disk.Read(t, tools.Root("docs", "design.md"))))
	if len(table) < 5 {
		t.Fatalf("got a table of %d rows", len(table))
	}
	for _, wrong := range table.check(list(t, "./...")) {
		t.Error(wrong)
	}
}

func TestImportsOfHigherLayersAreFound(t *testing.T) {
	table := readLayers("# D\n\n## Layers\n\n| what | packages |\n|---|---|\n| top of `no` row | `cmd/...` |\n" +
		"| middle | `a`, `b`, `gone`, `twice` |\n| base | `base/...`, `base/twice` |\n\n## More\n| | `c` |\n")
	named := func(path string, imports ...string) pkg {
		p := pkg{ImportPath: module + "/" + path}
		for _, im := range imports {
			p.Imports = append(p.Imports, module+"/"+im)
		}
		p.Imports = append(p.Imports, "fmt")
		return p
	}
	got := table.check([]pkg{
		named("cmd/x", "cmd/y", "a", "base"), named("cmd/y"), named("a", "b"), named("b", "base/deep", "cmd/x"),
		named("base", "base/deep", "a"), named("base/deep"), named("base/twice"), named("basement"), named("c"), named("twice"),
	})
	want := []string{
		"a imports b, which is not below it",
		"b imports cmd/x, which is not below it",
		"base imports a, which is not below it",
		"base/twice is in the table as base/... and as base/twice",
		"base/twice is in the table, and there is no such package",
		"basement is not in the table",
		"c is not in the table",
		"gone is in the table, and there is no such package",
	}
	expect.Equal(t, want, got)
}

// The command has flags and prints. What knows ELF is below it.
func TestCommandKnowsNoELF(t *testing.T) {
	packages := list(t, "./cmd/...")
	if len(packages) == 0 {
		t.Fatal("no command")
	}
	for _, p := range packages {
		for _, path := range []string{"debug/elf", "debug/dwarf", "sdtconvert/elfreloc", "sdtconvert/image"} {
			if slices.Contains(p.Imports, path) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}
