package compile

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// ccacheBuild is a build with ccache, which runs sdtconvert-cc as docs/builds.md says.
// calls counts how often it does.
func ccacheBuild(t *testing.T) (b *build, calls func() int) {
	t.Helper()
	tools.Need(t, "gcc", "ccache")
	b = newBuild(t)
	b.write("prefix", "#!/bin/sh\necho >>calls\nexec "+launcher+" \"$@\"\n")
	b.Env = []string{"CCACHE_DIR=" + t.TempDir(), "CCACHE_PREFIX=" + b.path("prefix")}
	return b, func() int {
		calls := strings.Count(b.readIfAny("calls"), "\n")
		b.remove("calls")
		return calls
	}
}

func (b *build) readIfAny(name string) string {
	data, _ := os.ReadFile(b.path(name))
	return string(data)
}

// settings returns the build with variables of the environment that docs/builds.md sets
// for flags.
func (b *build) settings(program, flags string) *build {
	b.t.Helper()
	version := strings.TrimSpace(b.must(program, "version"))
	with := *b
	with.Env = append(b.Env[:len(b.Env):len(b.Env)], "SDTCONVERT_FLAGS="+flags, "CCACHE_NAMESPACE="+version+" "+flags)
	return &with
}

// A hit has the converted object, and runs nothing. Other flags, and another version of
// sdtconvert, are a miss.
func TestCcache(t *testing.T) {
	t.Parallel()
	b, calls := ccacheBuild(t)
	other := buildOther(t, filepath.Join(t.TempDir(), "sdtconvert"))
	gcc := []string{"gcc", "-O2"}
	plain, stapsdt := b.converted("probe.c", gcc), b.converted("probe.c", gcc, "--stapsdt")
	for i, step := range []struct {
		program, flags, want string
		calls                int
	}{
		{converter, "", plain, 1}, {converter, "", plain, 0},
		{converter, "--stapsdt", stapsdt, 1}, {converter, "", plain, 0}, {converter, "--stapsdt", stapsdt, 0},
		{other, "", plain, 1}, {other, "", plain, 0}, {converter, "", plain, 0},
	} {
		b.remove("probe.o")
		b.settings(step.program, step.flags).must("ccache", "gcc", "-O2", "-c", "probe.c")
		b.same("probe.o", step.want)
		expect.Equal(t, step.calls, calls(), "step %d: runs of sdtconvert", i)
	}
}

// buildOther builds sdtconvert of another version.
func buildOther(t *testing.T, path string) string {
	t.Helper()
	command := tools.Command{Directory: tools.Root(), Env: []string{"CGO_ENABLED=0"}}
	command.Must(t, "go", "build", "-ldflags=-X main.release=0.0.other", "-o", path, "./cmd/sdtconvert")
	return path
}

// A refusal is not cached, and neither is a failure.
func TestCcacheRefusal(t *testing.T) {
	t.Parallel()
	b, calls := ccacheBuild(t)
	for range 2 {
		for _, source := range []string{"refused.c", "broken.c"} {
			out, err := b.Try("ccache", "gcc", "-c", source)
			if object := strings.TrimSuffix(source, ".c") + ".o"; err == nil || b.exists(object) || !strings.Contains(out, source[:4]) {
				t.Errorf("%s: %v, %s", source, err, out)
			}
		}
		if n := calls(); n == 0 {
			t.Error("a refusal comes from the cache")
		}
	}
}

// Before ccache, sdtconvert converts what comes out of it, and what is in it stays.
func TestBeforeCcache(t *testing.T) {
	t.Parallel()
	b, _ := ccacheBuild(t)
	for _, links := range []string{"CCACHE_NOHARDLINK=1", "CCACHE_HARDLINK=1"} {
		b.Env = []string{"CCACHE_DIR=" + b.path("cache"), "CCACHE_NOCOMPRESS=1", links}
		want := b.converted("probe.c", []string{"gcc"})
		for range 3 {
			b.remove("probe.o")
			b.must(converter, "cc", "--", "ccache", "gcc", "-c", "probe.c")
			b.same("probe.o", want)
		}
		b.must("ccache", "gcc", "-c", "probe.c", "-o", "plain.o")
		if b.read("plain.o") == want {
			t.Error("the object in the cache is converted")
		}
	}
}

// distccBuild is a build with a server of distcc, whose log it returns, and sdtconvert-cc
// where the server, which gives up being root, may read it.
func distccBuild(t *testing.T) (b *build, launcher string, log func() string) {
	t.Helper()
	tools.Need(t, "gcc", "distcc", "distccd", "cp")
	b = newBuild(t)
	public := expect.Value(os.MkdirTemp("", "sdtconvert-distcc-"))(t)
	t.Cleanup(func() { os.RemoveAll(public) })
	launcher = filepath.Join(public, "sdtconvert-cc")
	b.must("cp", converter, launcher)
	b.must("chmod", "777", public)
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	server := exec.Command("distccd", "--no-detach", "--daemon", "--allow", "127.0.0.1", "--listen", "127.0.0.1", "--port", port,
		"--enable-tcp-insecure", "--log-stderr", "--log-level=info", "--jobs", "2")
	out := expect.Value(os.Create(b.path("log")))(t)
	defer out.Close()
	server.Dir, server.Stderr, server.Env = b.Directory, out, append(os.Environ(), "TMPDIR="+public)
	expect.OK(t, server.Start())
	t.Cleanup(func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	})
	expect.Soon(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, "distccd answers")
	b.Env = []string{"DISTCC_HOSTS=" + address, "DISTCC_DIR=" + t.TempDir(), "DISTCC_FALLBACK=0"}
	return b, launcher, func() string { return b.read("log") }
}

// freeAddress is where no server is now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

// Objects are converted where they are wanted, where they are compiled, and in a cache.
func TestDistcc(t *testing.T) {
	t.Parallel()
	b, launcher, log := distccBuild(t)
	want := b.converted("probe.c", []string{"gcc", "-O2"})
	for _, c := range []struct{ words, server string }{
		{converter + " cc -- distcc gcc", "gcc"},
		{"distcc " + launcher + " gcc", "sdtconvert-cc"},
	} {
		before := len(log())
		words := strings.Fields(c.words + " -O2 -c probe.c -o probe.o")
		b.remove("probe.o")
		b.must(words[0], words[1:]...)
		b.same("probe.o", want)
		done := c.server + " probe.c on localhost completed ok"
		expect.Soon(t, func() bool { return strings.Contains(log()[before:], done) }, "%s: %s", c.words, done)
	}
	tools.Need(t, "ccache")
	cached := *b
	cached.Env = append(b.Env[:len(b.Env):len(b.Env)], "CCACHE_DIR="+t.TempDir(), "CCACHE_PREFIX="+launcher+" distcc")
	compiled := func() int { return strings.Count(log(), "COMPILE_OK") }
	expect.Soon(t, func() bool { return compiled() == 2 }, "the server has compiled twice")
	for range 2 {
		b.remove("probe.o")
		cached.must("ccache", "gcc", "-O2", "-c", "probe.c")
		b.same("probe.o", want)
	}
	expect.Soon(t, func() bool { return compiled() >= 3 }, "the server has compiled for ccache")
	expect.Equal(t, 3, compiled(), "compilations of the server")
}

// sccache takes a script for a compiler. Its text is a part of the key, so it names the
// version and the flags.
func TestSccache(t *testing.T) {
	b := parallelBuild(t, "sccache")
	_, port, _ := strings.Cut(freeAddress(t), ":")
	b.Env = []string{"SCCACHE_DIR=" + t.TempDir(), "SCCACHE_SERVER_PORT=" + port, "SCCACHE_IDLE_TIMEOUT=60"}
	t.Cleanup(func() { b.Try("sccache", "--stop-server") })
	// It waits ten seconds for its server, which is not enough on a busy machine.
	expect.Soon(t, func() bool { _, err := b.Try("sccache", "--show-stats"); return err == nil }, "sccache's server answers")
	want := b.converted("probe.c", []string{"gcc"})
	for range 2 {
		b.remove("probe.o")
		b.must(converter, "cc", "--", "sccache", "gcc", "-c", "probe.c", "-o", "probe.o")
		b.same("probe.o", want)
	}
	for i, flags := range []string{"", "--stapsdt", ""} {
		directory := fmt.Sprint("bin", i)
		b.must("mkdir", directory)
		b.write(directory+"/gcc", "#!/bin/sh\n# sdtconvert 0.1.0\nexec "+converter+" cc "+flags+" -- gcc \"$@\" 2>>"+b.path("calls")+"\n")
		want := b.converted("probe.c", []string{"gcc"}, strings.Fields(flags)...)
		for range 2 {
			b.remove("probe.o")
			b.must("sccache", b.path(directory+"/gcc"), "-c", "probe.c", "-o", "probe.o")
			b.same("probe.o", want)
		}
	}
	stats := b.must("sccache", "--show-stats")
	expect.Equal(t, "5", statistic(stats, "Cache hits"), "hits: %s", stats)
}

// statistic returns the number of a line.
func statistic(text, name string) string {
	for line := range bytes.Lines([]byte(text)) {
		if value, ok := strings.CutPrefix(string(line), name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

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
	b := parallelBuild(t, "ar")
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
