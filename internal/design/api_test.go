package design

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// compiled imports packages as the compiler has left them.
func compiled(t *testing.T) types.Importer {
	files := map[string]string{}
	for _, p := range list(t, "-export", "-deps", "./...") {
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(files[path])
	})
}

func TestNoPublicSignatureNamesAnInternalType(t *testing.T) {
	im := compiled(t)
	public := 0
	for _, p := range list(t, "./...") {
		if !isPublic(p.ImportPath) || len(p.GoFiles) == 0 {
			continue
		}
		public++
		for _, found := range hiddenTypes(expect.Value(im.Import(p.ImportPath))(t)) {
			t.Errorf("%s: %s", p.ImportPath, found)
		}
	}
	if public < 10 {
		t.Errorf("only %d public packages were found", public)
	}
}

// hiddenTypes lists what of a package's exported API names a type that those who
// import it cannot name: one of an internal package, or one that is not exported.
func hiddenTypes(p *types.Package) []string {
	w := &walker{}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			w.object(o)
		}
	}
	slices.Sort(w.found)
	return slices.Compact(w.found)
}

type walker struct {
	found []string
}

// typeName is a type that types.TypeString names with its package.
var typeName = regexp.MustCompile(`\b([a-z][\w/.-]*)\.(\w+)`)

// look looks at all that a type is made of, up to names.
func (w *walker) look(what string, t types.Type) {
	for _, m := range typeName.FindAllStringSubmatch(types.TypeString(t, nil), -1) {
		if isInternal(m[1]) || !token.IsExported(m[2]) {
			w.found = append(w.found, fmt.Sprintf("%s names %s", what, m[0]))
		}
	}
}

func (w *walker) object(o types.Object) {
	name, ok := o.(*types.TypeName)
	if !ok {
		w.look(o.Name(), o.Type())
		return
	}
	if name.IsAlias() {
		w.look(o.Name(), types.Unalias(o.Type()))
		return
	}
	named := o.Type().(*types.Named)
	for param := range named.TypeParams().TypeParams() {
		w.look(o.Name(), param.Constraint())
	}
	if s, ok := named.Underlying().(*types.Struct); ok {
		w.fields(o.Name(), s)
	} else if _, ok := named.Underlying().(*types.Interface); !ok {
		w.look(o.Name(), named.Underlying())
	}
	methods := types.NewMethodSet(types.NewPointer(named))
	if types.IsInterface(named) {
		methods = types.NewMethodSet(named)
	}
	for m := range methods.Methods() {
		if m.Obj().Exported() {
			w.look(o.Name()+"."+m.Obj().Name(), m.Type())
		}
	}
}

// fields looks at exported fields, and at those of embedded structures, which are
// exported whatever the structure is called.
func (w *walker) fields(owner string, s *types.Struct) {
	for f := range s.Fields() {
		if f.Exported() {
			w.look(owner+"."+f.Name(), f.Type())
		} else if inner, ok := f.Type().Underlying().(*types.Struct); ok && f.Embedded() {
			w.fields(owner, inner)
		}
	}
}

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

// place is where a pattern stands in the table.
type place struct {
	row, column int
	pattern     string
}

// mayImport reports whether a package of one place may import one of the other.
func (p place) mayImport(to place) bool {
	return to.row > p.row || to.row == p.row && to.column < p.column || to == p && strings.HasSuffix(p.pattern, "/...")
}

// find returns the place of the pattern that names a package.
func (l layers) find(path string) (found place, err error) {
	for i, patterns := range l {
		for column, p := range patterns {
			directory, all := strings.CutSuffix(p, "/...")
			if p != path && !(all && (path == directory || strings.HasPrefix(path, directory+"/"))) {
				continue
			}
			if found.pattern != "" {
				return place{}, fmt.Errorf("%s is in the table as %s and as %s", path, found.pattern, p)
			}
			found = place{i, column, p}
		}
	}
	if found.pattern == "" {
		return place{}, fmt.Errorf("%s is not in the table", path)
	}
	return found, nil
}

// check compares the imports of packages with the table.
func (l layers) check(packages []pkg) (wrong []string) {
	used := map[string]bool{}
	for _, p := range packages {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		own, err := l.find(path)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		used[own.pattern] = true
		for _, im := range p.Imports {
			to, ours := strings.CutPrefix(im, module+"/")
			if !ours {
				continue
			}
			if imported, err := l.find(to); err == nil && !own.mayImport(imported) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which is neither below it nor before it", path, to))
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
