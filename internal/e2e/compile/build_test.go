package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// The lines of docs/builds.md, for each build system.

const program = `
#include "head.h"
#include <stdio.h>

struct probe { void *object; unsigned long address; };
extern struct probe __start_sdt_instances_set[], __stop_sdt_instances_set[];
int guard(int);
int probe(int);

int main(int argc, char **argv)
{
	__dtrace_probe_app___go(argc);
	printf("%d records\n", (int)(__stop_sdt_instances_set - __start_sdt_instances_set));
	return guard(probe(0)) != 1;
}
`

// programBuild is a directory with a program of three sources, and the object that its link
// lacks.
func programBuild(t *testing.T) *build {
	t.Helper()
	b := newBuild(t)
	b.write("main.c", program)
	b.must(converter, "stubs", "-o", "probes.o", b.stubbed())
	return b
}

// stubbed makes an object with all probes of the program.
func (b *build) stubbed() string {
	b.t.Helper()
	b.must("gcc", "-r", "-o", "all.o", "main.c", "guard.c", "probe.c")
	b.must(converter, "all.o")
	return "all.o"
}

// records checks that a program prints how many records it has.
func (b *build) records(program string) {
	b.t.Helper()
	if out := b.must(b.path(program)); out != "4 records\n" {
		b.t.Errorf("%s prints %q", program, out)
	}
}

const makefile = `
OBJECTS = main.o guard.o probe.o
program: $(OBJECTS)
	$(CC) $(LDFLAGS) -o $@ $(OBJECTS) probes.o
%.o: %.c
	$(CC) $(CFLAGS) -MMD -c -o $@ $<
-include $(OBJECTS:.o=.d)
`

func TestMake(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc", "make")
	b := programBuild(t)
	b.write("Makefile", makefile)
	args := []string{"-j4", "CC=" + converter + " cc -- gcc", "CFLAGS=-O2 -Wall"}
	b.must("make", args...)
	b.records("program")
	b.same("guard.o", b.converted("guard.c", []string{"gcc", "-O2", "-Wall"}))
	expect.Contains(t, b.must("make", args...), "up to date", "make again")
	if deps := b.read("guard.d"); !strings.HasPrefix(deps, "guard.o: guard.c head.h") {
		t.Errorf("guard.d: %s", deps)
	}
}

// As the makefiles of Linux: the compiler is asked what it knows, directories are made by
// makes of their own, and their objects are linked into one.
const (
	recursive = `
CC := @CC@
export CC
cc-option = $(shell if $(CC) -Werror $(1) -c -x c /dev/null -o .tmp.o 2>/dev/null; then echo "$(1)"; fi; rm -f .tmp.o)
export KCFLAGS := $(call cc-option,-fno-stack-protector) $(call cc-option,-fno-such-option)
VERSION := $(shell $(CC) -dumpversion)
program: main.o core/built-in.o
	$(CC) -o $@ $^ probes.o
%.o: %.c
	$(CC) $(KCFLAGS) -Wp,-MMD,.$(@F).d -DVERSION=\"$(VERSION)\" -c -o $@ $<
core/built-in.o: FORCE
	$(MAKE) -C core built-in.o
FORCE:
`
	recursivePart = `
OBJECTS := guard.o probe.o
built-in.o: $(OBJECTS)
	$(LD) -r -o $@ $^
%.o: ../%.c
	$(CC) $(KCFLAGS) -Wp,-MMD,.$(@F).d -c -o $@ $<
`
)

func TestRecursiveMake(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc", "make", "ld")
	b := programBuild(t)
	b.must("mkdir", "core")
	b.write("Makefile", strings.ReplaceAll(recursive, "@CC@", converter+" cc -- gcc"))
	b.write("core/Makefile", recursivePart)
	out := b.must("make", "-j4")
	b.records("program")
	b.same("core/probe.o", b.converted("probe.c", []string{"gcc", "-fno-stack-protector"}))
	if strings.Contains(out, "no-such-option") || !strings.Contains(out, "-fno-stack-protector") || strings.Contains(out, `VERSION=\"\"`) {
		t.Errorf("the compiler was not asked: %s", out)
	}
}

const cmakeLists = `
cmake_minimum_required(VERSION 3.13)
project(app C CXX)
add_library(guard STATIC guard.c plus.cc)
add_executable(program main.c probe.c)
target_link_libraries(program guard ${CMAKE_SOURCE_DIR}/probes.o)
`

func TestCMake(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc", "g++", "cmake", "ninja")
	b := programBuild(t)
	b.write("CMakeLists.txt", cmakeLists)
	prefix := converter + ";cc;--"
	b.must("cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_C_COMPILER_LAUNCHER="+prefix, "-DCMAKE_CXX_COMPILER_LAUNCHER="+prefix)
	b.must("cmake", "--build", "build")
	b.records("build/program")
	for _, object := range []string{"guard.c.o", "plus.cc.o"} {
		if names := b.must(converter, "inspect", "build/CMakeFiles/guard.dir/"+object); !strings.Contains(names, " disabled ") {
			t.Errorf("%s: %s", object, names)
		}
	}
	expect.Contains(t, b.must("cmake", "--build", "build"), "no work to do", "ninja again")
}

const mesonBuild = `
project('app', 'c')
guard = static_library('guard', 'guard.c')
executable('program', 'main.c', 'probe.c', objects: 'probes.o', link_with: guard)
`

func TestMeson(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc", "meson", "ninja")
	b := programBuild(t)
	b.write("meson.build", mesonBuild)
	b.write("native.ini", "[binaries]\nc = ['"+converter+"', 'cc', '--', 'gcc']\n")
	environment := *b
	environment.Env = []string{"CC=" + converter + " cc -- gcc"}
	environment.must("meson", "setup", "environment")
	b.must("meson", "setup", "--native-file", "native.ini", "native")
	for _, directory := range []string{"environment", "native"} {
		b.must("ninja", "-C", directory)
		b.records(directory + "/program")
		expect.Contains(t, b.must("ninja", "-C", directory), "no work to do", "ninja again")
	}
}

// Converted objects go through sdtconvert ld as they are, and the program is the one that a
// link of unconverted objects makes.
func TestLink(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc")
	b := newBuild(t)
	b.write("main.c", program)
	b.write("linker", "#!/bin/sh\necho \"$@\" >words\nexec ld \"$@\"\n")
	wrapper := filepath.Join(t.TempDir(), "ld")
	expect.OK(t, os.Symlink(converter, wrapper))
	link := func(name string) {
		linked := *b
		linked.Env = []string{"SDTCONVERT_LD=" + b.path("linker")}
		linked.must("gcc", "-B"+filepath.Dir(wrapper), "-o", name, "main.o", "guard.o", "probe.o")
		b.records(name)
	}
	b.must("gcc", "-c", "main.c", "guard.c", "probe.c")
	link("late")
	expect.Contains(t, b.read("words"), "guard.o", "the linker's words")
	b.must(converter, "cc", "--", "gcc", "-c", "main.c", "guard.c", "probe.c")
	link("early")
	expect.Contains(t, b.read("words"), " main.o guard.o probe.o ", "a copy is linked")
	if b.read("late") != b.read("early") {
		t.Error("the programs are different")
	}
}

// Versions of compilers and compilers for other machines, and a compiler in the current
// directory.
func TestCompilers(t *testing.T) {
	t.Parallel()
	b := newBuild(t)
	for _, m := range toolchains.Machines {
		for _, c := range m.Compilers() {
			if c != toolchains.GCC && !m.Native() {
				continue
			}
			words := m.CC(c)
			tools.Need(t, words[0])
			b.remove("probe.o")
			b.must(converter, append(append([]string{"cc", "--"}, words...), "-O2", "-c", "probe.c")...)
			b.same("probe.o", b.converted("probe.c", append(words[:len(words):len(words)], "-O2")))
		}
	}
	tools.Need(t, "gcc")
	b.write("own", "#!/bin/sh\nexec gcc \"$@\"\n")
	b.remove("probe.o")
	b.Env = []string{"PATH=:" + os.Getenv("PATH")}
	b.must(converter, "cc", "--", "own", "-O2", "-c", "probe.c")
	b.same("probe.o", b.converted("probe.c", []string{"gcc", "-O2"}))
}
