package machines_test

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/disk"
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
		for what := range named(string(disk.Read(t, path)), packages, words) {
			expect.Equal(t, what, exceptions[name], "%s", name)
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

// namers find what names a machine in a file without its comments: constants of debug/elf that are of one machine, and
// strings.
var (
	ofMachine = regexp.MustCompile(`\belf\.(E[MF]_\w+|R_[A-Z0-9]+_?\w*|(SHT|PT|DT)_(MIPS|RISCV|ARM|AARCH64|S390|PPC)\w+)`)
	ofAll     = regexp.MustCompile(`^elf\.(EM_NONE|R_(INFO|SYM|TYPE)(32|64)?)$`)
	text      = regexp.MustCompile("\"(\\\\.|[^\"\\\\\n])*\"|`[^`]*`")
	comment   = regexp.MustCompile(`(?m)^\s*//.*$|\s// .*$`)
)

// named returns what of a machine a file names.
func named(source string, packages, words []string) map[string]bool {
	all := map[string]bool{}
	source = comment.ReplaceAllString(source, "")
	for _, constant := range ofMachine.FindAllString(source, -1) {
		all[constant] = !ofAll.MatchString(constant)
	}
	for _, literal := range text.FindAllString(source, -1) {
		literal = literal[1 : len(literal)-1]
		all[literal] = slices.Contains(packages, literal)
		for _, word := range words {
			if literal == word || strings.HasPrefix(word, "__") && strings.Contains(literal, word) {
				all[word] = true
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, names bool) bool { return !names })
	return all
}
