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

const cmakeLists = `
cmake_minimum_required(VERSION 3.13)
project(app C)
add_library(third SHARED sub/third.c)
add_library(second STATIC sub/second.c)
add_executable(program main.c plain.c)
target_link_libraries(program second third)
`

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
