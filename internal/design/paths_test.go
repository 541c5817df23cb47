package design

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// textual are the functions of package filepath, and those of package path, that change a
// path as text: behind a symbolic link ".." leads elsewhere then. EvalSymlinks is right,
// but for the path of a file that another program opens by its name.
var textual = []string{"Abs", "Clean", "Dir", "EvalSymlinks", "Join", "Rel"}

// textualPaths are the functions that may call them, each with the reason. What is opened
// later, here or by a linker, goes through internal/paths.
var textualPaths = map[string]string{
	"internal/archive/members.go: CheckInside Abs":   "of a file that is not there; for the error alone",
	"internal/archive/members.go: CheckInside Rel":   "of two real paths",
	"internal/check/report.go: checkedOut Join":      "shown, and never opened",
	"internal/check/report.go: pathFrom Clean":       "shown, and never opened",
	"internal/check/report.go: pathFrom Rel":         "shown, and never opened",
	"internal/debuginfo/program.go: join Join":       "the name of a source, shown and compared, and never opened",
	"internal/input/file.go: Distinct EvalSymlinks":  "compared, and never opened",
	"cmd/sdtconvert/providerdof.go: aliases Dir":    "hashed, and never opened",
	"internal/ld/linker.go: hasName EvalSymlinks":    "its last component alone is used",
	"internal/paths/paths.go: Absolute Abs":          "of a path on another drive of Windows",
	"internal/paths/paths.go: Real EvalSymlinks":     "after the path was made absolute without a change",
	"internal/dtrace/dtrace.go: pathFrom Clean":                   "hashed, and never opened",
	"internal/dtrace/dtrace.go: pathFrom Rel":                     "hashed, and never opened",
	"internal/replace/temp.go: resolve EvalSymlinks": "the file behind the link is replaced, and not the link",
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
