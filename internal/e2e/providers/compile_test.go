package providers

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// strict are the warnings that are errors.
var strict = []string{"-Wall", "-Wextra", "-Wpedantic", "-Werror"}

var (
	compilers    = []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang}
	standards    = []string{"gnu89", "c99", "gnu11", "c17", "c2x"}
	cxxStandards = []string{"c++11", "gnu++14", "c++17", "c++20", "c++2b"}
)

// The header compiles without a warning, twice, alone and beside SystemTap's.
func TestStandards(t *testing.T) {
	all := product.New("compiler", "standard", "header")
	for i, flags := range [][]string{nil, {"-x", "stubs"}} {
		directory := directoryWith(t, flags...)
		for _, c := range compilers {
			for _, std := range slices.Concat(standards, cxxStandards) {
				// As go test calls the second of a name, also in runs without the first.
				name := c.Name + "/" + std + []string{"", "#01"}[i]
				all.Add(name, []string{c.Name, std, strings.Join(flags, " ")}, func(t *testing.T) {
					t.Parallel()
					checkStandard(t, c, std, directory, stubArguments(flags))
				})
			}
		}
	}
	all.Run(t)
}

func checkStandard(t *testing.T, c toolchains.Compiler, std, directory string, arguments []string) {
	t.Helper()
	command := toolchains.AMD64.CC(c)
	if strings.Contains(std, "++") {
		command = append(toolchains.AMD64.CXX(c), "-xc++")
	}
	tools.Need(t, command[0])
	for _, mode := range [][]string{{"-O0", "-DBEFORE"}, {"-O2", "-DAFTER"}, {"-O2", "-fPIC"}} {
		words := slices.Concat(command[1:], []string{"-std=" + std}, strict, mode, arguments, []string{"-I" + directory, "-c", source(t, "shop.c"), "-o", filepath.Join(t.TempDir(), "a.o")})
		tools.Must(t, command[0], words...)
	}
}

// stubArguments keeps the program to what is a word.
func stubArguments(flags []string) []string {
	if flags == nil {
		return nil
	}
	return []string{"-DWORDS"}
}

var (
	noteLine = regexp.MustCompile(`(?m)(?:^|\s)    (Provider|Name|Arguments): ?(.*)$`)
	place    = regexp.MustCompile(`@\S*`)
)

// forms returns the notes of a file: provider, name, and size and sign of each argument,
// sorted.
func forms(t testing.TB, path string) (all []string) {
	t.Helper()
	note := ""
	for _, m := range noteLine.FindAllStringSubmatch(tools.Output(t, "readelf", "-nW", path), -1) {
		note += m[2] + " "
		if m[1] == "Arguments" {
			all = append(all, place.ReplaceAllString(strings.TrimSpace(note), "@"))
			note = ""
		}
	}
	slices.Sort(all)
	return all
}

// The notes say what those of SystemTap's header say for the same source.
func TestNotesAreSystemTaps(t *testing.T) {
	tools.Need(t, "/usr/bin/dtrace", "readelf")
	ours, theirs := directoryWith(t), t.TempDir()
	tools.Command{Directory: theirs}.Must(t, "/usr/bin/dtrace", "-h", "-s", source(t, "shop.d"), "-o", "shop.h")
	for _, c := range compilers {
		for _, command := range [][]string{toolchains.AMD64.CC(c), append(toolchains.AMD64.CXX(c), "-xc++")} {
			for _, level := range []string{"-O0", "-O2"} {
				t.Run(strings.Join(command, "")+level, func(t *testing.T) {
					tools.Need(t, command[0])
					var got [2][]string
					for i, directory := range []string{ours, theirs} {
						out := filepath.Join(t.TempDir(), "a.o")
						tools.Must(t, command[0], slices.Concat(command[1:], []string{level, "-I" + directory, "-c", source(t, "shop.c"), "-o", out})...)
						got[i] = forms(t, out)
					}
					if diff := cmp.Diff(got[1], got[0]); diff != "" || len(got[0]) < 8 {
						t.Errorf("%d notes: %s", len(got[0]), diff)
					}
				})
			}
		}
	}
}
