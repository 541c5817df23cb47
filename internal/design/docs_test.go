package design

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/results/*.md", "internal/e2e/*.md", "examples/*/*.md"} {
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

// kindConstants returns the names of the kinds of sites, in the order of arch/arch.go.
func kindConstants(t *testing.T) (names []string) {
	t.Helper()
	file := expect.Value(parser.ParseFile(token.NewFileSet(), "arch/arch.go", nil, parser.SkipObjectResolution))(t)
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		if typ, ok := g.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident); !ok || typ.Name != "Kind" {
			continue
		}
		for _, s := range g.Specs {
			names = append(names, s.(*ast.ValueSpec).Names[0].Name)
		}
	}
	return names
}

// kindRows returns the kinds that are keys of a table's rows.
func kindRows(table *ast.CompositeLit, inArch bool, kinds []string) (rows []string) {
	for _, e := range table.Elts {
		row, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name := ""
		switch key := row.Key.(type) {
		case *ast.SelectorExpr:
			if x, ok := key.X.(*ast.Ident); ok && x.Name == "arch" {
				name = key.Sel.Name
			}
		case *ast.Ident:
			if inArch {
				name = key.Name
			}
		}
		if slices.Contains(kinds, name) {
			rows = append(rows, name)
		}
	}
	return rows
}

// A table with a row for a kind of site has one for each: the compiler takes a missing one for
// an empty row.
func TestTablesHaveARowForEachKind(t *testing.T) {
	t.Chdir(tools.Root())
	kinds, tables := kindConstants(t), 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			table, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			rows := kindRows(table, file.Name.Name == "arch", kinds)
			if len(rows) > 0 {
				tables++
			}
			if len(rows) > 0 && len(rows) < len(kinds) {
				t.Errorf("%v: a table has rows for %v, not for all of %v", set.Position(table.Pos()), rows, kinds)
			}
			return true
		})
		return nil
	})
	if err != nil || len(kinds) < 2 || tables < 10 {
		t.Errorf("%d tables for the kinds %v: %v", tables, kinds, err)
	}
}

// textual are the functions of package filepath, and those of package path, that change a
// path as text: behind a symbolic link ".." leads elsewhere then. EvalSymlinks is right,
// but for the path of a file that another program opens by its name.
var textual = []string{"Abs", "Clean", "Dir", "EvalSymlinks", "Join", "Rel"}

// textualPaths are the functions that may call them, each with the reason. What is opened
// later, here or by a linker, goes through internal/paths.
var textualPaths = map[string]string{
	"internal/archive/thin.go: CheckInside Abs":         "of a file that is not there; for the error alone",
	"internal/archive/thin.go: CheckInside Rel":         "of two real paths",
	"internal/check/report/report.go: checkedOut Join":  "shown, and never opened",
	"internal/check/fingerprint.go: PathFrom Clean":     "shown, and never opened",
	"internal/check/fingerprint.go: PathFrom Rel":       "shown, and never opened",
	"internal/debuginfo/lines/program.go: join Join":    "the name of a source, shown and compared, and never opened",
	"internal/input/distinct.go: Distinct EvalSymlinks": "compared, and never opened",
	"cmd/sdtconvert/providerdof.go: patchDOF Dir":       "hashed, and never opened",
	"internal/ld/linker.go: hasName EvalSymlinks":       "its last component alone is used",
	"internal/paths/paths.go: Absolute Abs":             "of a path on another drive of Windows",
	"internal/paths/paths.go: Real EvalSymlinks":        "after the path was made absolute without a change",
	"patch/aliases.go: pathFrom Clean":                  "hashed, and never opened",
	"patch/aliases.go: pathFrom Rel":                    "hashed, and never opened",
	"internal/replace/temp.go: resolve EvalSymlinks":    "the file behind the link is replaced, and not the link",
}

// textualCalls finds such calls in a file, and names each by its file, function and name.
func textualCalls(name string) (calls []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	packages := map[string]bool{}
	for _, im := range file.Imports {
		if path := strings.Trim(im.Path.Value, `"`); path == "path" || path == "path/filepath" {
			local := path[strings.LastIndex(path, "/")+1:]
			if im.Name != nil {
				local = im.Name.Name
			}
			packages[local] = true
		}
	}
	for _, declaration := range file.Decls {
		function := "a variable"
		if f, ok := declaration.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
		ast.Inspect(declaration, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && packages[x.Name] && slices.Contains(textual, s.Sel.Name) {
					calls = append(calls, fmt.Sprintf("%s: %s %s", filepath.ToSlash(name), function, s.Sel.Name))
				}
			}
			return true
		})
	}
	if packages["."] {
		calls = append(calls, name+": imports a package of paths without its name")
	}
	return calls, nil
}

// No path that is opened later is changed as text.
func TestPathsAreNotChangedAsText(t *testing.T) {
	t.Chdir(tools.Root())
	found := map[string]bool{}
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (entry.Name() == "testdata" || entry.Name() == "testkit" || entry.Name()[0] == '.'):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		calls, err := textualCalls(path)
		for _, call := range calls {
			found[call] = true
			if textualPaths[call] == "" {
				t.Errorf("%s changes a path as text: use internal/paths, or give a reason here why it is not opened", call)
			}
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("read %d files: %v", files, err)
	}
	for call := range textualPaths {
		if !found[call] {
			t.Errorf("%s is listed, and there is no such call", call)
		}
	}
}
