package design

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// misnamed lists the doc comments of functions, methods and types that do not begin with the name that they
// are about, by the place of the declaration.
func misnamed(set *token.FileSet, file *ast.File) (wrong []string) {
	check := func(doc *ast.CommentGroup, name *ast.Ident) {
		words := strings.Fields(doc.Text())
		if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && strings.TrimRight(words[0], ",:;.") != name.Name && !strings.HasPrefix(words[0], name.Name+"'") {
			wrong = append(wrong, fmt.Sprintf("%v: the comment of %s begins with %q", set.Position(name.Pos()), name.Name, words[0]))
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Doc, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					check(s.Doc, s.Name)
					if !d.Lparen.IsValid() {
						check(d.Doc, s.Name)
					}
				}
			}
		}
	}
	return wrong
}

// A comment stands far from the name when it is read in a list, so it repeats the name.
func TestCommentsBeginWithTheName(t *testing.T) {
	t.Chdir(tools.Root())
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (entry.Name() == "testdata" || entry.Name()[0] == '.'):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, w := range misnamed(set, file) {
			t.Error(w)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("read %d files: %v", files, err)
	}
}

const module = "sdtconvert"

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Export     string   // the file of its export data
	Imports    []string // without those of tests
	GoFiles    []string
}

// list runs go list in the module.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	args = append([]string{"list", "-json=ImportPath,Export,Imports,GoFiles"}, args...)
	out := tools.Command{Directory: tools.Root()}.Output(t, "go", args...)
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// isPublic reports whether other modules can import a package.
func isPublic(path string) bool {
	return strings.HasPrefix(path, module+"/") && !isInternal(path) && !strings.HasPrefix(path, module+"/cmd/")
}

func isInternal(path string) bool { return strings.Contains("/"+path+"/", "/internal/") }

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

// textual matches calls that change a path as text: behind a symbolic link ".." leads elsewhere then.
var textual = regexp.MustCompile(`\b(?:file)?path\.(?:Abs|Clean|Dir|EvalSymlinks|Join|Rel)\b`)

// textualPaths are the files that may call them, since the result is shown, compared or hashed and never
// opened, or the file behind a link is meant.
var textualPaths = strings.Fields(`cmd/sdtconvert/providerdof.go internal/archive/members.go internal/check/report.go
	internal/debuginfo/program.go internal/dtrace/dtrace.go internal/input/file.go internal/ld/linker.go internal/paths/paths.go internal/replace/temp.go`)

// What is opened later, here or by a linker, goes through internal/paths.
func TestPathsAreNotChangedAsText(t *testing.T) {
	var found []string
	for _, p := range list(t, "./...") {
		directory := strings.TrimPrefix(p.ImportPath, module+"/")
		if strings.HasPrefix(directory, "internal/testkit/") || strings.HasPrefix(directory, "internal/e2e") {
			continue
		}
		for _, path := range expect.Value(filepath.Glob(tools.Root(directory, "*.go")))(t) {
			if !strings.HasSuffix(path, "_test.go") && textual.Match(disk.Read(t, path)) {
				found = append(found, directory+"/"+filepath.Base(path))
			}
		}
	}
	expect.Equal(t, textualPaths, found, "files that change paths as text: use internal/paths")
}
