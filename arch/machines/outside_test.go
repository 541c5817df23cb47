package machines_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/expect"
)

// exceptions are where something of one machine is named outside of its directory, with
// what is named.
var exceptions = map[string]string{
	// The layout of relocations of mips64el is one of files, not of code.
	"elfreloc/object.go": "elf.EM_MIPS",
	// A name that compilers define by themselves where they compile for one.
	"internal/provider/preprocess/preprocess.go": "i386",
}

// hostFile names the machines that sdtconvert runs on, by what Go calls them.
const hostFile = "internal/supervise/filter_linux.go"

// A machine is a directory and a line: nothing else that is not a test names one. What would
// is a constant of its e_machine, a type of its relocations, its package, or its names.
func TestNothingElseNamesAMachine(t *testing.T) {
	root := filepath.Join("..", "..")
	directories := []string{"arch/machines"}
	packages := []string{}
	var words []string
	for _, m := range machines.All() {
		directories = append(directories, strings.TrimPrefix(packageOf(m), "sdtconvert/"))
		packages = append(packages, packageOf(m))
		words = append(words, m.Traits().Name)
		if symbol := m.Traits().ReturnThunk.Symbol; symbol != "" {
			words = append(words, symbol)
		}
	}
	files, used := 0, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case entry.IsDir() && (slices.Contains(directories, name) || entry.Name() == "testdata" || entry.Name() == "testkit" || strings.HasPrefix(entry.Name(), ".git")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"), name == hostFile:
			return nil
		}
		files++
		for what, at := range named(t, path, packages, words) {
			expect.Equal(t, what, exceptions[name], "%s", at)
			used[name] = true
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files were read: %v", files, err)
	}
	for name := range exceptions {
		if !used[name] {
			t.Errorf("%s needs to be no exception", name)
		}
	}
}

// named returns what of a machine a file names, and where.
func named(t *testing.T, path string, packages, words []string) map[string]token.Position {
	t.Helper()
	set := token.NewFileSet()
	file := expect.Value(parser.ParseFile(set, path, nil, parser.SkipObjectResolution))(t)
	all := map[string]token.Position{}
	ast.Inspect(file, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "elf" && ofMachine(n.Sel.Name) {
				what = "elf." + n.Sel.Name
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil {
				break
			}
			for _, word := range words {
				if text == word || len(word) > len("__") && strings.HasPrefix(word, "__") && strings.Contains(text, word) {
					what = word
				}
			}
			if slices.Contains(packages, text) {
				what = text
			}
		}
		if what != "" {
			all[what] = set.Position(n.Pos())
		}
		return true
	})
	return all
}

// ofMachine reports whether package debug/elf has a name for one machine: of EM_386 and
// the like, of R_386_32, and of the types R_386 themselves. R_INFO and its kin are of all.
func ofMachine(name string) bool {
	if strings.HasPrefix(name, "EM_") && name != "EM_NONE" || strings.HasPrefix(name, "EF_") {
		return true
	}
	return strings.HasPrefix(name, "R_") && !slices.Contains([]string{"R_INFO", "R_INFO32", "R_SYM32", "R_SYM64", "R_TYPE32", "R_TYPE64"}, name) ||
		slices.ContainsFunc([]string{"SHT_MIPS_", "SHT_RISCV_", "SHT_ARM_", "PT_AARCH64_", "PT_ARM_", "PT_RISCV_", "PT_MIPS_", "PT_S390_", "DT_MIPS_", "DT_PPC"},
			func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
