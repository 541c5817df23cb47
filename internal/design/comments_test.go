package design

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"path/filepath"

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
