package ld

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// The lines of docs/builds.md, for each build system.

// eachFlags runs a test for each linker with the flags that have a compiler find the
// wrapper.
func eachFlags(t *testing.T, test func(t *testing.T, flags string)) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) { test(t, "-B"+wrappers+" "+l.Use()) })
}

func TestClang(t *testing.T) {
	tools.Need(t, toolchains.OldLLVM("clang"), toolchains.LLVM("clang"))
	for _, l := range linkers {
		enter(t, l.Path)
		for _, clang := range []string{toolchains.OldLLVM("clang"), toolchains.LLVM("clang")} {
			tools.Must(t, clang, "-O2", "--ld-path="+wrappers+"/ld."+l.Family, "-o", "program", "main.c", "sub/second.c")
			checkOutput(t, "program", both)
			tools.Must(t, clang, "-O2", "-B"+wrappers, l.Use(), "-o", "program", "main.c", "sub/second.c")
			checkOutput(t, "program", both)
		}
	}
}

const makefile = `
OBJECTS = main.o sub/second.o plain.o
program: $(OBJECTS) libthird.so
	$(CC) $(LDFLAGS) -o $@ $(OBJECTS)
libthird.so: sub/third.o
	$(LD) $(SHARED) -o $@ sub/third.o
combined.o: $(OBJECTS)
	$(LD) -r -o $@ $(OBJECTS)
sub/third.o: CFLAGS += -fPIC
.PHONY: all
all: program libthird.so combined.o
`

// Objects do not change, so that a second make has nothing to do; and many links at
// once do not meet.
func TestMake(t *testing.T) {
	tools.Need(t, "make")
	eachFlags(t, func(t *testing.T, flags string) {
		disk.Write(t, "Makefile", makefile)
		args := []string{"-j8", "all", "LD=" + wrappers + "/ld", "LDFLAGS=" + flags, "SHARED=-shared"}
		tools.Must(t, "make", args...)
		checkOutput(t, "program", both)
		again := untouched(t, "program", "main.o", "sub/second.o")
		expect.Contains(t, tools.Must(t, "make", args...), "Nothing to be done", "make again")
		again()
		for _, made := range []string{"libthird.so", "combined.o", "program"} {
			if names := tools.Output(t, "nm", noPlugins, made); !strings.Contains(names, " sdt_app___") || strings.Contains(names, "__dtrace_probe") {
				t.Errorf("%s: %s", made, names)
			}
		}
		tools.Must(t, "touch", "sub/second.c")
		if out := tools.Must(t, "make", args...); strings.Contains(out, "main.c") || !strings.Contains(out, "second.c") {
			t.Errorf("make after a change: %s", out)
		}
		checkOutput(t, "program", both)
	})
}

// LD may be a command with arguments, too.
func TestMakeWithCommand(t *testing.T) {
	tools.Need(t, "make")
	enter(t, linker("bfd").Path)
	disk.Write(t, "Makefile", makefile)
	tools.Must(t, "make", "combined.o", "LD="+converter+" ld --")
	expect.Lacks(t, tools.Output(t, "nm", noPlugins, "combined.o"), "__dtrace_probe")
}

const cmakeLists = `
cmake_minimum_required(VERSION 3.13)
project(app C)
add_library(third SHARED sub/third.c)
add_library(second STATIC sub/second.c)
add_executable(program main.c plain.c)
target_link_libraries(program second third)
`

func TestCMake(t *testing.T) {
	tools.Need(t, "cmake", "ninja")
	eachFlags(t, func(t *testing.T, flags string) {
		disk.Write(t, "CMakeLists.txt", cmakeLists)
		t.Setenv("LDFLAGS", flags)
		tools.Must(t, "cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release")
		os.Unsetenv("LDFLAGS") // it is remembered
		tools.Must(t, "cmake", "--build", "build")
		checkOutput(t, "build/program", both)
		if names := tools.Output(t, "nm", noPlugins, "build/libthird.so"); !strings.Contains(names, "sdt_app___third") {
			t.Errorf("libthird.so: %s", names)
		}
		expect.Contains(t, tools.Must(t, "cmake", "--build", "build"), "no work to do", "ninja again")
	})
}

// ninja takes an object for outdated whose time is not that of its compilation.
func TestNinjaInPlace(t *testing.T) {
	tools.Need(t, "cmake", "ninja", "ar")
	enter(t, linker("bfd").Path)
	disk.Write(t, "CMakeLists.txt", cmakeLists)
	// Versions of CMake from 3.27 on have linkers write dependency files.
	flags := "-Wl,--dependency-file=program.d -B" + wrappers
	tools.Must(t, "cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_C_ARCHIVE_CREATE=<CMAKE_AR> qcT <TARGET> <OBJECTS>",
		"-DCMAKE_EXE_LINKER_FLAGS="+flags, "-DCMAKE_SHARED_LINKER_FLAGS=-B"+wrappers)
	t.Setenv("SDTCONVERT_FLAGS", "--in-place")
	tools.Must(t, "cmake", "--build", "build")
	checkOutput(t, "build/program", both)
	expect.Contains(t, tools.Must(t, "cmake", "--build", "build"), "no work to do", "ninja again")
	// If CMake has a flag of its own, that is the one that counts, and ninja has read the file.
	dependencies, err := os.ReadFile("build/program.d")
	if err == nil && (regexp.MustCompile(`sdtconvert-\d+\.o`).Match(dependencies) || !strings.Contains(string(dependencies), converter)) {
		t.Errorf("the dependencies are %s", dependencies)
	}
	for _, object := range []string{"program.dir/main.c.o", "second.dir/sub/second.c.o"} {
		if names := tools.Output(t, "nm", noPlugins, "build/CMakeFiles/"+object); strings.Contains(names, "__dtrace_probe") {
			t.Errorf("%s is not converted: %s", object, names)
		}
	}
}

const mesonBuild = `
project('app', 'c', default_options: ['buildtype=release'])
third = shared_library('third', 'sub/third.c')
second = static_library('second', 'sub/second.c')
executable('program', 'main.c', 'plain.c', link_with: [second, third])
`

// Meson makes thin archives, and asks the linker what it is.
func TestMeson(t *testing.T) {
	t.Setenv("CC", "cc") // which Meson takes as it is, without a cache that it finds
	tools.Need(t, "meson", "ninja")
	eachFlags(t, func(t *testing.T, flags string) {
		disk.Write(t, "meson.build", mesonBuild)
		t.Setenv("LDFLAGS", flags)
		tools.Must(t, "meson", "setup", "build")
		os.Unsetenv("LDFLAGS")
		tools.Must(t, "ninja", "-C", "build")
		checkOutput(t, "build/program", both)
		expect.Contains(t, tools.Must(t, "ninja", "-C", "build"), "no work to do", "ninja again")
	})
}

const goMain = `package main

// int main_in_c(int);
// #include "show.h"
// void __dtrace_probe_app___start(int);
// void second(int);
// static void work(int n) { __dtrace_probe_app___start(n); second(n); show("main"); fflush(stdout); }
import "C"

func main() { C.work(1) }
`

func TestGo(t *testing.T) {
	tools.Need(t, "go")
	eachFlags(t, func(t *testing.T, flags string) {
		if strings.Contains(flags, "lld") {
			flags += " -no-pie" // Go forgets it for lld, with a wrapper or without
		}
		disk.Write(t, "go.mod", "module app\n")
		disk.Write(t, "main.go", goMain)
		for _, file := range []string{"main.c", "defined.c", "plain.c"} {
			os.Remove(file)
		}
		expect.OK(t, os.Rename("sub/second.c", "second.c"))
		// Each package with C in it is linked once by itself, to see what it lacks: so
		// the compiler is told for all links, and not with -extldflags for the last.
		t.Setenv("CGO_LDFLAGS", flags)
		t.Setenv("CGO_ENABLED", "1")
		tools.Must(t, "go", "build", "-o", "program", "-ldflags=-linkmode=external -extld=gcc", ".")
		checkOutput(t, "program", both)
	})
}

// A compiler for another machine runs the wrapper as ld, and has a linker of its own,
// which is not the one along PATH.
func TestCrossCompiler(t *testing.T) {
	gcc, nm := toolchains.ARM64.Tool("gcc"), toolchains.ARM64.Tool("nm")
	tools.Need(t, gcc, nm)
	enter(t, linker("bfd").Path)
	os.Unsetenv("SDTCONVERT_LD")
	tools.Must(t, gcc, "-B"+wrappers, "-O2", "-o", "program", "main.c", "sub/second.c")
	if names := tools.Output(t, nm, "program"); strings.Contains(names, "__dtrace") || !strings.Contains(names, "sdt_app___second") {
		t.Error(names)
	}
}

// autoconf's scripts compile and link programs before they know anything.
func TestEnvironment(t *testing.T) {
	eachFlags(t, func(t *testing.T, flags string) {
		disk.Write(t, "conftest.c", "int main(void) { return 0; }\n")
		args := append(strings.Fields(flags), "-o", "conftest", "conftest.c")
		expect.Equal(t, "", tools.Must(t, "gcc", args...), "says")
		run(t, "conftest")
		if out := tools.Must(t, "gcc", append(strings.Fields(flags), "-Wl,--version")...); !strings.Contains(out, "GNU") {
			t.Errorf("--version: %s", out)
		}
	})
}
