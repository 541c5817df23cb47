package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
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
	goBuild    = "cd program && GOWORK=off GOFLAGS=-mod=mod LINE -o ../shop ."
	makefile   = "CFLAGS = -O2\nLDFLAGS = -Wl,--as-needed\nshop: shop.o\n\t$(CC) $(LDFLAGS) -o $@ shop.o\n"
)

// goProgram is a program in Go with a probe in its C part.
var goProgram = map[string]string{
	"program/go.mod":  "module shop\n\ngo 1.21\n",
	"program/main.go": "package main\n\n// #include <sdt.h>\n// static void placed(int n) { DTRACE_PROBE1(shop___placed, int, n); }\nimport \"C\"\n\nfunc main() { C.placed(1) }\n",
}

// configured is a project with a script that does what those of autoconf do with CC: it links and runs
// a program, and puts CC into the makefile.
var configured = map[string]string{
	"configure": "#!/bin/sh -e\nfor a; do case $a in CC=*) CC=${a#CC=} ;; esac; done\n" +
		"echo 'int main(void) { return 0; }' >conftest.c\n$CC -o conftest conftest.c\n./conftest\nsed \"s|@CC@|$CC|\" Makefile.in >Makefile\n",
	"Makefile.in": "CC = @CC@\n" + makefile,
}

const configure = "chmod +x configure && LINE && make"

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
	{"README.md", "autotools", nil, configured, configure},
	{"README.md", "by hand", nil, nil, "cc -O2 -c shop.c && LINE && cc -o shop shop.o"},
	{"docs/builds.md", "make", nil, map[string]string{"Makefile": makefile}, "LINE"},
	{"docs/builds.md", "CMake", []string{"cmake"}, map[string]string{"CMakeLists.txt": cmakeLists}, "LINE && " + cmakeBuild},
	{"docs/builds.md", "Meson", []string{"meson", "ninja"}, map[string]string{"meson.build": mesonList + "executable('shop', 'shop.c')\n"}, "LINE && " + mesonBuild},
	{"docs/builds.md", "autotools", nil, configured, configure},
	{"docs/builds.md", "Go with C in it", []string{"go"}, goProgram, goBuild},
	{"docs/builds.md", "clang with `--ld-path`", []string{toolchains.LLVM("clang"), toolchains.LLVM("ld.lld")}, nil, "SDTCONVERT_LD=" + toolchains.LLVM("ld.lld") + " " + toolchains.LLVM("clang") + " LINE -O2 -o shop shop.c"},
	{"docs/builds.md", "cross compilers of gcc", []string{"aarch64-linux-gnu-gcc"}, nil, "LINE -O2 -o shop shop.c"},
	{"docs/builds.md", "cross compilation by clang with GNU ld", []string{toolchains.LLVM("clang"), "aarch64-linux-gnu-ld"}, nil, "LINE " + toolchains.LLVM("clang") + " --target=aarch64-linux-gnu -BLINKERS -O2 -o shop shop.c"},
	{"docs/builds.md", "by hand", nil, nil, "cc -O2 -c -o server.o shop.c && cp $(cc -print-file-name=crt1.o) . && LINE && mv server shop"},
	{"docs/builds.md, compiling", "make", nil, map[string]string{"Makefile": makefile}, "LINE"},
	{"docs/builds.md, compiling", "autotools", nil, configured, configure},
	{"docs/builds.md, compiling", "CMake", []string{"cmake"}, map[string]string{"CMakeLists.txt": cmakeLists}, "LINE -S . -B build && " + cmakeBuild},
	{"docs/builds.md, compiling", "Meson", []string{"meson", "ninja"}, map[string]string{"meson.build": mesonList + "executable('shop', 'shop.c')\n"}, "LINE && " + mesonBuild},
	{"docs/builds.md, compiling", "Go with C in it", []string{"go"}, goProgram, goBuild},
	{"docs/builds.md, compiling", "ccache", []string{"ccache"}, nil, "export CCACHE_DIR=$PWD/cache\nCCACHE LINES\nccache cc -O2 -c shop.c && cc -o shop shop.o"},
}

// elsewhere are the lines of these tables that other tests run.
var elsewhere = map[string]string{
	"Go with C in it":                "internal/e2e/languages/TestLanguages",
	"Cargo":                          "internal/e2e/languages/TestLanguages",
	"Bazel, ccache, distcc, sccache": "TestBuilds", // those of the next table
	"Bazel":                          "TestBlocks", // its script, without Bazel
	"distcc":                         "internal/e2e/compile/TestDistcc",
	"sccache":                        "internal/e2e/compile/TestSccache",
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
			if elsewhere[row] == "" {
				t.Errorf("%s: no test has %q", name, row)
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
			files := map[string]string{"shop.c": shop}
			for name, text := range r.files {
				files[name] = strings.ReplaceAll(text, "LINE", match[1])
			}
			p := newProject(t, filepath.Dir(converter), files)
			namespace := blockWith(t, "docs/builds.md", "CCACHE_NAMESPACE")
			p.must(strings.NewReplacer("CCACHE LINES", namespace, "LINKERS", linkers, "LINE", match[1]).Replace(r.script))
			p.must("sdtconvert check --require shop:::placed --require-notes shop")
		})
	}
}

// recipe is a build that a page shows in full: its files, the commands that make its program,
// and what they leave.
type recipe struct {
	name, setup, build string
	files              map[string]string
	made               []string
	tools              []string
}

// recipes reads those of docs/first-steps.md, docs/builds.md and docs/providers.md. docs/check.md
// and docs/kernel.md have others, which internal/check and internal/e2e/kernel run.
func recipes(t *testing.T) []recipe {
	t.Helper()
	first := blocks(page(t, "docs/first-steps.md"))
	count := recipe{name: "first steps", build: "make count", files: map[string]string{"count.c": first[0].text}, made: []string{"count", "count.o"}, tools: []string{"make"}}
	for _, b := range first {
		if b.language == "make" {
			count.files["Makefile"] = b.text
		}
	}
	all := []recipe{count}
	for _, c := range []struct{ heading, language, file, build, program string }{
		{"CMake", "cmake", "CMakeLists.txt", "cmake --build build", "build/shop"},
		{"Meson", "meson", "meson.build", "meson test -C build", "build/shop"},
		{"make", "make", "Makefile", "make", "shop"},
	} {
		r := recipe{name: c.heading, build: c.build, made: []string{c.program}, files: map[string]string{"orders.c": shop, "shop.c": shop, "store.c": store}}
		r.tools = []string{strings.ToLower(c.heading)}
		for _, b := range blocks(section(t, page(t, "docs/builds.md"), c.heading)) {
			switch {
			case b.file != "":
				r.files[b.file] = b.text
			case b.language == c.language:
				r.files[c.file] = b.text
			case b.language == "sh":
				r.setup, _, _ = strings.Cut(b.text, "\n")
				r.build = strings.ReplaceAll(strings.TrimSpace(b.text[len(r.setup):]), "\n", " && ")
			}
		}
		all = append(all, r)
	}
	const providers = "docs/providers.md"
	_, fires, _ := strings.Cut(blockWith(t, providers, `#include "shop.h"`), "\n\n")
	return append(all, recipe{name: "provider", build: "make", made: []string{"shop"}, tools: []string{"make"}, files: map[string]string{
		"shop.d":   blockWith(t, providers, "provider shop {"),
		"Makefile": blockWith(t, providers, "shop: shop.o provider.o"),
		"shop.c":   "#include \"shop.h\"\nstatic int cost_of(int n) { return n * 2; }\nint main(int number, char **argv)\n{\n\tchar *name = argv[0];\n" + fires + "}\n",
	}})
}

// TestMakefiles runs the recipes: with sdtconvert, and with one that fails or is missing. Then each
// build fails, again too, and leaves no program.
func TestMakefiles(t *testing.T) {
	tools.Need(t, "cc", "gcc")
	for _, r := range recipes(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, r.tools...)
			if len(r.files) < 2 {
				t.Fatalf("the page shows %d files", len(r.files))
			}
			p := newProject(t, filepath.Dir(converter), r.files)
			p.must("true\n" + r.setup)
			p.must(r.build)
			for _, made := range r.made {
				if strings.HasSuffix(made, ".o") {
					continue
				}
				p.must("sdtconvert check --require-notes " + made)
			}
			for name, script := range map[string]string{"fails": "#!/bin/sh\necho sdtconvert fails >&2\nexit 1\n", "is missing": ""} {
				t.Run(name, func(t *testing.T) { r.breaks(t, script) })
			}
		})
	}
}

// breaks runs a recipe twice with a script as sdtconvert and as the linkers, or without any.
func (r recipe) breaks(t *testing.T, script string) {
	t.Helper()
	bin := t.TempDir()
	if script != "" {
		for _, name := range []string{"sdtconvert", "ld"} {
			disk.Write(t, filepath.Join(bin, name), script)
			expect.OK(t, os.Chmod(filepath.Join(bin, name), 0o777))
		}
	}
	files := map[string]string{}
	for name, text := range r.files {
		files[name] = strings.ReplaceAll(text, linkers, bin)
	}
	p := newProject(t, bin, files)
	// CMake and Meson try the linker when they are set up, and may fail then.
	if out, err := p.sh("true\n" + r.setup); err != nil {
		if r.setup == "" {
			t.Fatal(out)
		}
		p.lacks(r.made...)
		return
	}
	for range 2 {
		if out, err := p.sh(r.build); err == nil {
			t.Errorf("%s succeeds:\n%s", r.build, out)
		}
		p.lacks(r.made...)
	}
}
