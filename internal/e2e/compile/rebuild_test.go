package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// Objects that a command of the build, or of the user, converts between compilation and link.
// The build system has to take them for what its compiler wrote: an object that it compiles
// again has no probes, and the program links without them.

const ninjaFile = `
rule cc
  command = gcc -MMD -MF $out.d -c -o $out $in
  deps = gcc
  depfile = $out.d
rule link
  command = gcc -o $out $in
build main.o: cc main.c
build guard.o: cc guard.c
build probe.o: cc probe.c
build program: link main.o guard.o probe.o probes.o
`

// Custom commands of CMake see the objects of a library, and run after they are compiled.
const cmakeBetween = `
cmake_minimum_required(VERSION 3.13)
project(app C)
add_library(parts OBJECT main.c guard.c probe.c)
add_custom_command(OUTPUT converted COMMAND @SDTCONVERT@ $<TARGET_OBJECTS:parts> COMMAND ${CMAKE_COMMAND} -E touch converted
	DEPENDS parts $<TARGET_OBJECTS:parts> COMMAND_EXPAND_LISTS)
add_custom_target(conversion DEPENDS converted)
add_executable(program $<TARGET_OBJECTS:parts>)
target_link_libraries(program ${CMAKE_SOURCE_DIR}/probes.o)
add_dependencies(program conversion)
`

const mesonBetween = `
project('app', 'c')
parts = static_library('parts', 'main.c', 'guard.c', 'probe.c')
executable('program', objects: [parts.extract_all_objects(recursive: false), 'probes.o'])
`

// buildSystem builds a program of three sources in steps.
type buildSystem struct {
	name    string
	tools   []string
	files   map[string]string
	setup   []string
	objects []string // the command that only compiles
	convert []string // objects, by a command of the user; none if the build itself converts
	program []string // the command that links
	output  string
	nothing string // what the command says if nothing is to be done
}

var mainObjects = []string{"main.o", "guard.o", "probe.o"}

var buildSystems = []buildSystem{
	{
		name: "make", tools: []string{"make"}, files: map[string]string{"Makefile": makefile},
		objects: append([]string{"make"}, mainObjects...), convert: mainObjects,
		program: []string{"make", "program"}, output: "program", nothing: "up to date",
	}, {
		name: "ninja", tools: []string{"ninja"}, files: map[string]string{"build.ninja": ninjaFile},
		objects: append([]string{"ninja"}, mainObjects...), convert: mainObjects,
		program: []string{"ninja", "-v", "program"}, output: "program", nothing: "no work to do",
	}, {
		name: "CMake, Ninja", tools: []string{"cmake", "ninja"}, files: map[string]string{"CMakeLists.txt": cmakeBetween},
		setup:   []string{"cmake", "-G", "Ninja", "-S", ".", "-B", "build"},
		program: []string{"cmake", "--build", "build", "-v"}, output: "build/program", nothing: "no work to do",
	}, {
		name: "CMake, make", tools: []string{"cmake", "make"}, files: map[string]string{"CMakeLists.txt": cmakeBetween},
		setup:   []string{"cmake", "-G", "Unix Makefiles", "-S", ".", "-B", "build"},
		program: []string{"cmake", "--build", "build", "-v"}, output: "build/program", nothing: "",
	}, {
		name: "Meson", tools: []string{"meson", "ninja"}, files: map[string]string{"meson.build": mesonBetween},
		// With $CC, Meson has no sccache in front of it, whose server may not start in time.
		setup:   []string{"env", "CC=gcc", "meson", "setup", "build"},
		objects: []string{"ninja", "-C", "build", "libparts.a.p/main.c.o", "libparts.a.p/guard.c.o", "libparts.a.p/probe.c.o"},
		convert: []string{"build/libparts.a.p/main.c.o", "build/libparts.a.p/guard.c.o", "build/libparts.a.p/probe.c.o"},
		program: []string{"ninja", "-v", "-C", "build", "program"}, output: "build/program", nothing: "no work to do",
	},
}

func TestConversionRebuildsNothing(t *testing.T) {
	t.Parallel()
	for _, s := range buildSystems {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, append(s.tools, "gcc")...)
			s.build(programBuild(t))
		})
	}
}

func (s *buildSystem) build(b *build) {
	for name, text := range s.files {
		b.write(name, strings.ReplaceAll(text, "@SDTCONVERT@", converter))
	}
	run := func(words []string) string {
		if len(words) == 0 {
			return ""
		}
		return b.must(words[0], words[1:]...)
	}
	run(s.setup)
	for _, changed := range []string{"", "guard.c"} {
		if changed != "" {
			time.Sleep(20 * time.Millisecond) // a tick of the kernel's clock
			b.write(changed, b.read(changed)+"\n")
		}
		run(s.objects)
		if len(s.convert) > 0 {
			b.must(converter, s.convert...)
		}
		out := run(s.program)
		b.records(s.output)
		if compiled := strings.Count(out, ".c.o -c") + strings.Count(out, " -c -o "); len(s.objects) > 0 && compiled > 0 {
			b.t.Errorf("objects are compiled again: %s", out)
		}
		// A second conversion, by the same or another sdtconvert, leaves objects as they are.
		if len(s.convert) > 0 {
			b.must(converter, s.convert...)
		}
		expect.Contains(b.t, run(s.program), s.nothing, "a second build")
		b.records(s.output)
	}
}

// The time of an archive is its own, too.
func TestConversionKeepsTimes(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc", "ar")
	b := newBuild(t)
	b.must("gcc", "-c", "guard.c", "probe.c")
	b.must("ar", "rcs", "lib.a", "guard.o", "probe.o")
	b.must("ar", "rcsT", "thin.a", "probe.o")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	files := []string{"guard.o", "probe.o", "lib.a"}
	for _, name := range files {
		expect.OK(t, os.Chtimes(b.path(name), old, old))
	}
	before := map[string]string{}
	for _, name := range files {
		before[name] = b.read(name)
	}
	b.must(converter, "guard.o", "-o", "new.o")
	if info := expect.Value(os.Stat(b.path("new.o")))(t); info.ModTime().Equal(old) {
		t.Error("a new file has the time of the input")
	}
	b.must(converter, "guard.o", "-o", "./guard.o")
	b.must(converter, "lib.a", "thin.a")
	for _, name := range files {
		if b.read(name) == before[name] {
			t.Errorf("%s is not converted", filepath.Base(name))
		}
		if info := expect.Value(os.Stat(b.path(name)))(t); !info.ModTime().Equal(old) {
			t.Errorf("%s has the time %v, want %v", name, info.ModTime(), old)
		}
	}
}
