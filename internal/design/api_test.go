package design

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"regexp"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/expect"
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

func TestHiddenTypesAreFound(t *testing.T) {
	const source = `package p

import "sdtconvert/internal/filetype"

type hidden struct{ F filetype.Type }

func (hidden) Promoted() filetype.Type { return 0 }

type (
	Alias    = filetype.Type
	Fields   struct{ A []filetype.Type; B map[string]*filetype.Type; c filetype.Type }
	Embedded struct{ filetype.Type }
	Inherits struct{ hidden }
	Face     interface{ M(func(chan filetype.Type)) }
	Generic[T interface{ ~[]filetype.Type }] struct{}
	Right    struct{ c filetype.Type }
	Copied   filetype.Type // nothing of it says so
)

func (Right) M(...filetype.Type) {}
func (Right) m(filetype.Type)    {}

var V [4]filetype.Type
const C = filetype.ELF
func F() (_ struct{ X filetype.Type }, _ error) { panic(0) }
func f(filetype.Type)                           {}
func G(Generic[[]filetype.Type])                {}
func Unexported() hidden                        { panic(0) }
`
	fset := token.NewFileSet()
	file := expect.Value(parser.ParseFile(fset, "p.go", source, 0))(t)
	p := expect.Value((&types.Config{Importer: compiled(t)}).Check("p", fset, []*ast.File{file}, nil))(t)
	const named = " names sdtconvert/internal/filetype.Type"
	want := []string{
		"Alias" + named, "C" + named, "Embedded.Type" + named, "F" + named, "Face.M" + named,
		"Fields.A" + named, "Fields.B" + named, "G" + named, "Generic" + named,
		"Inherits.F" + named, "Inherits.Promoted" + named, "Right.M" + named, "Unexported names p.hidden", "V" + named,
	}
	expect.Equal(t, want, hiddenTypes(p))
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
