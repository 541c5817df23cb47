package documents

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/tools"
)

// shop and store are sources of the projects: a program, and a library or object of it.
const (
	shop = `#include <sdt.h>
int main(void)
{
	DTRACE_PROBE1(shop___placed, int, 1);
}
`
	store = `#include <sdt.h>
void put(int n)
{
	DTRACE_PROBE1(store___put, int, n);
}
`
)

const (
	cmakeLists = "cmake_minimum_required(VERSION 3.20)\nproject(shop C)\nadd_executable(shop shop.c)\n"
	cmakeBuild = "cmake --build build && cp build/shop ."
	mesonList  = "project('shop', 'c')\n"
	mesonBuild = "ninja -C build && cp build/shop ."
	makefile   = "CFLAGS = -O2\nLDFLAGS = -Wl,--as-needed\nshop: shop.o\n\t$(CC) $(LDFLAGS) -o $@ shop.o\n"
)

// rows are the lines of tables of builds that these tests run: in which the first code of the
// second cell is a command, or, if a file holds LINE, a line of that file.
var rows = []struct {
	page, row string
	tools     []string
	files     map[string]string
	script    string
}{
	{"README.md", "make", nil, map[string]string{"Makefile": makefile}, "LINE"},
	{"README.md", "CMake", []string{"cmake"}, map[string]string{"CMakeLists.txt": strings.Replace(cmakeLists, "add_exec", "LINE\nadd_exec", 1)}, "cmake -S . -B build && " + cmakeBuild},
	{"README.md", "Meson", []string{"meson", "ninja"}, map[string]string{"meson.build": mesonList + "LINE\n"}, "meson setup build && " + mesonBuild},
	{"README.md", "by hand", nil, nil, "cc -O2 -c shop.c && LINE && cc -o shop shop.o"},
	{"docs/builds.md", "make", nil, map[string]string{"Makefile": makefile}, "LINE"},
	{"docs/builds.md", "CMake", []string{"cmake"}, map[string]string{"CMakeLists.txt": cmakeLists}, "LINE && " + cmakeBuild},
	{"docs/builds.md", "Meson", []string{"meson", "ninja"}, map[string]string{"meson.build": mesonList + "executable('shop', 'shop.c')\n"}, "LINE && " + mesonBuild},
	{"docs/builds.md, compiling", "make", nil, map[string]string{"Makefile": makefile}, "LINE"},
	{"docs/builds.md, compiling", "CMake", []string{"cmake"}, map[string]string{"CMakeLists.txt": cmakeLists}, "LINE -S . -B build && " + cmakeBuild},
	{"docs/builds.md, compiling", "Meson", []string{"meson", "ninja"}, map[string]string{"meson.build": mesonList + "executable('shop', 'shop.c')\n"}, "LINE && " + mesonBuild},
	{"docs/builds.md, compiling", "ccache", []string{"ccache"}, nil, "export CCACHE_DIR=$PWD/cache\nCCACHE LINES\nccache cc -O2 -c shop.c && cc -o shop shop.o"},
}

// elsewhere are the lines of these tables that other packages run, or that were tried by hand.
var elsewhere = []string{
	"autotools", "Go with C in it", "Cargo", "Bazel, ccache, distcc, sccache", "Bazel", "distcc", "sccache",
	"clang with `--ld-path`", "cross compilers of gcc", "cross compilation by clang with GNU ld", "by hand",
}

// lines returns the rows of a page's table of builds: the text of the second cell, by the first.
func lines(t *testing.T, name string) map[string]string {
	t.Helper()
	path, compiling := strings.CutSuffix(name, ", compiling")
	text := page(t, path)
	if compiling {
		text = section(t, text, "Converting while compiling")
	}
	_, text, ok := strings.Cut(text, "\n| build | ")
	text, _, _ = strings.Cut(text, "\n\n")
	all := map[string]string{}
	for _, line := range strings.Split(text, "\n")[1:] {
		if cells := strings.SplitN(strings.Trim(line, "| "), " | ", 2); len(cells) == 2 {
			all[cells[0]] = cells[1]
		}
	}
	if !ok || len(all) < 5 {
		t.Fatalf("%s has %d builds", name, len(all))
	}
	return all
}

func TestEachBuildHasItsTest(t *testing.T) {
	for _, name := range []string{"README.md", "docs/builds.md", "docs/builds.md, compiling"} {
		left := lines(t, name)
		for _, r := range rows {
			if r.page == name {
				delete(left, r.row)
			}
		}
		for row := range left {
			if !slices.Contains(elsewhere, row) {
				t.Errorf("%s: %q has no test", name, row)
			}
		}
	}
}

var code = regexp.MustCompile("`([^`]+)`")

// TestBuilds has each line make a program whose probe is listed, with its note.
func TestBuilds(t *testing.T) {
	tools.Need(t, "cc", "gcc", "make")
	for _, r := range rows {
		t.Run(filepath.Base(r.page)+"/"+r.row, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, r.tools...)
			match := code.FindStringSubmatch(lines(t, r.page)[r.row])
			if match == nil {
				t.Fatal("the page has no such line")
			}
			p := newProject(t, filepath.Dir(converter), map[string]string{"shop.c": shop})
			for name, text := range r.files {
				disk.Write(t, filepath.Join(p.directory, name), strings.ReplaceAll(text, "LINE", match[1]))
			}
			namespace := blockWith(t, "docs/builds.md", "CCACHE_NAMESPACE")
			p.must(strings.NewReplacer("CCACHE LINES", namespace, "LINE", match[1]).Replace(r.script))
			p.must("sdtconvert check --require shop:::placed --require-notes shop")
		})
	}
}
