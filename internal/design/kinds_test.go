package design

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

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
