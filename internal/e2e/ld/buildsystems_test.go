package ld

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// Projects of a program and a library, as users of each build system write them, with -B as docs/builds.md
// shows it. Either every probe is listed, or the build fails with a message of sdtconvert.

// projectSources are the sources of all projects.
var projectSources = map[string]string{
	"main.c": `#include "sdt.h"
void put(int);
int main(int argc, char **argv)
{
	(void)argv;
	DTRACE_PROBE1(shop___placed, int, argc);
	put(argc);
	return 0;
}
`,
	"store.c": `#include "sdt.h"
void put(int n)
{
	if (DTRACE_PROBE_ENABLED(shop___put))
		DTRACE_PROBE1(shop___put, int, n);
}
`,
}

// project is a project of one build system.
type project struct {
	system string
	tools  []string
	files  map[string]string
	// build is a shell script. DIR is the directory of linkers; the others are words of the variant.
	build    string
	variants map[string][]string // the values of variables, of which each combination is a variant
	programs string              // a pattern of the files that it makes
	attack   bool                // only scripts/attack has its tools
	slow     bool                // a usual run has each value of a variable, not each pair
}

// combinations returns the names of variables, and each combination of the values.
func (p *project) combinations() (names []string, all [][]string) {
	names, all = slices.Sorted(maps.Keys(p.variants)), [][]string{nil}
	for _, name := range names {
		var more [][]string
		for _, one := range all {
			for _, value := range p.variants[name] {
				more = append(more, append(slices.Clone(one), value))
			}
		}
		all = more
	}
	return names, all
}

var projects = []project{
	{
		system: "make", tools: []string{"make", "gcc", "ar"},
		files: map[string]string{"Makefile": `
shop: main.o $(LIBRARY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ main.o $(LIBRARY) -Wl,-rpath,.
libstore.a: store.o
	$(AR) $(ARFLAGS) $@ store.o
libstore.so: store.c
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -fPIC -o $@ store.c
`},
		build:    `make CC="gcc -BDIR" CFLAGS="-O2 $LTO" ARFLAGS="$ARFLAGS" AR=gcc-ar LIBRARY=$LIBRARY`,
		variants: map[string][]string{"LIBRARY": {"store.o", "libstore.a", "libstore.so"}, "ARFLAGS": {"rcs", "rcsT"}, "LTO": {"", "-flto"}},
		programs: "shop *.so",
	},
	{
		system: "CMake", tools: []string{"cmake", "ninja", "make", "gcc", toolchains.LLVM("clang"), toolchains.LLVM("ld.lld")},
		files: map[string]string{"CMakeLists.txt": `
cmake_minimum_required(VERSION 3.20)
project(shop C)
add_library(store @KIND@ store.c)
add_executable(shop main.c)
target_link_libraries(shop PRIVATE store)
`},
		build: `sed -i s/@KIND@/$KIND/ CMakeLists.txt
[ "$CC" = gcc ] || FLAGS=-fuse-ld=lld
LDFLAGS="-BDIR $FLAGS" cmake -G "$GENERATOR" -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=$LTO -S . -B build
cmake --build build -v`,
		variants: map[string][]string{"KIND": {"STATIC", "SHARED", "OBJECT"}, "GENERATOR": {"Ninja", "Unix Makefiles"}, "LTO": {"ON", "OFF"}, "CC": {"gcc", toolchains.LLVM("clang")}},
		programs: "build/shop build/*.so",
	},
	{
		system: "Meson", tools: []string{"meson", "ninja", "gcc", toolchains.LLVM("clang"), toolchains.LLVM("ld.lld")},
		files: map[string]string{"meson.build": `
project('shop', 'c')
store = library('store', 'store.c')
executable('shop', 'main.c', link_with: store)
objects = static_library('objects', 'store.c', 'main.c')
executable('whole', objects: objects.extract_all_objects(recursive: true))
`},
		// Meson puts a cache before a compiler that it finds by itself.
		build: `[ "$CC" = gcc ] || { FLAGS=-fuse-ld=lld; export AR=` + toolchains.LLVM("llvm-ar") + `; }
LDFLAGS="-BDIR $FLAGS" meson setup -Ddefault_library=$LIBRARY -Db_lto=$LTO build
ninja -v -C build`,
		variants: map[string][]string{"LIBRARY": {"static", "shared"}, "LTO": {"true", "false"}, "CC": {"gcc", toolchains.LLVM("clang")}},
		programs: "build/shop build/*.so build/whole",
	},
	{
		system: "autotools", slow: true, tools: []string{"autoreconf", "libtoolize", "automake", "make", "gcc"},
		files: map[string]string{"configure.ac": `
AC_INIT([shop], [1])
AM_INIT_AUTOMAKE([foreign])
AC_PROG_CC
AM_PROG_AR
LT_INIT
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
`, "Makefile.am": `
@KIND@_LTLIBRARIES = libstore.la
libstore_la_SOURCES = store.c
bin_PROGRAMS = shop
shop_SOURCES = main.c
shop_LDADD = libstore.la
`},
		build: `sed -i "s/@KIND@/$KIND/" Makefile.am
autoreconf -i
./configure CC="gcc -BDIR" CFLAGS="-O2 $LTO" AR=gcc-ar RANLIB=gcc-ranlib NM=gcc-nm $CONFIGURE
make V=1
[ ! -e .libs/shop ] || mv .libs/shop .libs/libstore.so* .`,
		variants: map[string][]string{"KIND": {"noinst", "lib"}, "CONFIGURE": {"--disable-shared", ""}, "LTO": {"", "-flto"}},
		programs: "shop libstore.so",
	},
	{
		system: "Cargo", slow: true, tools: []string{"cargo", "rustc", "gcc"},
		files: map[string]string{"Cargo.toml": `
[package]
name = "shop"
version = "1.0.0"
edition = "2021"
[lib]
name = "store"
crate-type = ["@KIND@"]
[profile.release]
lto = @LTO@
`, "src/lib.rs": `
extern "C" { fn __dtrace_probe_shop___put(n: i32); }
#[no_mangle]
pub extern "C" fn put(n: i32) { unsafe { __dtrace_probe_shop___put(n) } }
`, "src/main.rs": `
extern "C" { fn __dtrace_probe_shop___placed(n: i32); }
@USE@
fn main() { unsafe { __dtrace_probe_shop___placed(1) }; @CALL@ }
`},
		build: `case $KIND in rlib) USE='use store::put;' CALL='put(2)';; *) USE= CALL=;; esac
sed -i "s/@KIND@/$KIND/; s/@LTO@/$LTO/" Cargo.toml
sed -i "s/@USE@/$USE/; s/@CALL@/$CALL/" src/main.rs
RUSTFLAGS="-C link-arg=-BDIR $FEATURES" cargo build --release`,
		variants: map[string][]string{"KIND": {"rlib", "cdylib", "dylib"}, "LTO": {"false", "true", `"thin"`}},
		programs: "target/release/shop target/release/*.so",
	},
	{
		system: "Go", tools: []string{"go", "gcc"},
		files: map[string]string{"go.mod": "module shop\n\ngo 1.20\n", "main.go": `
package main

// #cgo CFLAGS: -O2
// int run(void);
import "C"

func main() { C.run() }
`, "run.c": `
int start(int, char **);
int run(void) { return start(1, 0); }
`},
		build: `sed s/main/start/ main.c >start.c; rm main.c
CGO_LDFLAGS="-BDIR $LTO" CGO_CFLAGS="$LTO" go build $MODE -ldflags='-linkmode=external -extld=gcc' -o shop`,
		variants: map[string][]string{"MODE": {"", "-buildmode=pie", "-buildmode=c-shared"}, "LTO": {""}},
		programs: "shop",
	},
	{
		system: "Bazel", tools: []string{"bazel", "gcc"}, attack: true,
		files: map[string]string{"WORKSPACE": "", "BUILD": `
cc_library(name = "store", srcs = ["store.c", "sdt.h"], linkstatic = @STATIC@)
cc_binary(name = "shop", srcs = ["main.c", "sdt.h"], deps = [":store"], linkstatic = @STATIC@)
`,
			// What Bazel would download.
			"rules/WORKSPACE": "", "rules/cc/BUILD": "", "rules/cc/defs.bzl": `
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
def cc_flags_supplier(name, **values): native.filegroup(name = name)
def compiler_flag(name, **values): native.filegroup(name = name)
`, "compiler/gcc": "#!/bin/sh\nexec '@SDTCONVERT@' cc -- gcc -BDIR \"$@\"\n"},
		build: `sed -i s/@STATIC@/$STATIC/ BUILD
chmod +x compiler/gcc
rules=/usr/share/bazel
bazel --batch --output_user_root="$PWD/root" build --override_repository=rules_cc="$PWD/rules" --override_repository=rules_java=$rules/rules/java \
	--override_repository=rules_proto=$rules/rules/proto --override_repository=platforms=$rules/platforms --repo_env=CC="$PWD/compiler/gcc" $LTO //:shop
cp bazel-bin/shop .
[ $STATIC = True ] || cp bazel-bin/*.so .`,
		variants: map[string][]string{"STATIC": {"True", "False"}, "LTO": {""}},
		programs: "shop *.so",
	},
}

// ownMessage matches what a build prints that sdtconvert has refused.
var ownMessage = regexp.MustCompile(`(?m)^(.*: )?sdtconvert: .*compile the library with -fno-lto`)

func TestBuildSystems(t *testing.T) {
	attack := os.Getenv("SDTCONVERT_ATTACK") != ""
	for _, p := range projects {
		if p.attack && !attack {
			continue
		}
		t.Run(p.system, func(t *testing.T) {
			tools.Need(t, p.tools...)
			names, all := p.combinations()
			tests := product.New(names...)
			tests.Singly = p.slow
			add := tests.Add
			if attack {
				add = tests.Always
			}
			for _, values := range all {
				variant := ""
				for i, value := range values {
					variant += names[i] + "=" + value + " "
				}
				add(strings.TrimSpace(variant), values, func(t *testing.T) {
					t.Parallel()
					p.run(t, names, values)
				})
			}
			tests.Run(t)
		})
	}
}

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// run builds a variant, and looks at what it has made.
func (p *project) run(t *testing.T, names, values []string) {
	directory := t.TempDir()
	expand := strings.NewReplacer("DIR", wrappers, "@SDTCONVERT@", converter)
	for _, files := range []map[string]string{projectSources, p.files, {"sdt.h": string(disk.Read(t, tools.Root("include", "sdt.h")))}} {
		for name, text := range files {
			path := filepath.Join(directory, name)
			expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
			disk.Write(t, path, expand.Replace(text))
		}
	}
	here := tools.Command{Directory: directory, Env: []string{"SDTCONVERT_LD=", "CC=gcc", "CARGO_NET_OFFLINE=true", "CARGO_TARGET_DIR=target", "GOFLAGS=-mod=mod", "GOWORK=off"}}
	for i, value := range values {
		here.Env = append(here.Env, names[i]+"="+value)
	}
	minor := 0 // of rustc's version
	if p.system == "Cargo" {
		expect.Value(fmt.Sscanf(tools.Output(t, "rustc", "--version"), "rustc 1.%d", &minor))(t)
	}
	if minor >= 90 { // which links by its own lld
		here.Env = append(here.Env, "FEATURES=-C linker-features=-lld")
	}
	out, err := here.Try("sh", "-ec", expand.Replace(p.build))
	if err != nil {
		if !ownMessage.MatchString(err.Error()) || !slices.Contains(values, toolchains.LLVM("clang")) {
			t.Errorf("the build fails: %v", tail(err.Error()))
		}
		return
	}
	var images []string
	for _, pattern := range strings.Fields(p.programs) {
		images = append(images, expect.Value(filepath.Glob(filepath.Join(directory, pattern)))(t)...)
	}
	args := []string{"check", "--require", "shop:::placed", "--require", "shop:::put"}
	if report, err := tools.Try(converter, append(args, images...)...); err != nil {
		t.Errorf("%v: %v\n%s", images, err, tools.Shortened(out+report))
	}
}
