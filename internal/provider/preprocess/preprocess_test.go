//go:build unix

package preprocess

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/process"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var clang = toolchains.Clang.Name

// program writes a script that stands for a compiler.
func program(t *testing.T, text string) string {
	t.Helper()
	tools.Need(t, "sh")
	path := filepath.Join(t.TempDir(), "compiler")
	expect.OK(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o777))
	return path
}

// options returns those of a run with an environment of its own.
func options(t *testing.T, environ ...string) (*Options, *strings.Builder) {
	t.Helper()
	var stderr strings.Builder
	for _, name := range []string{"PATH", "TMPDIR"} {
		environ = append(environ, name+"="+os.Getenv(name))
	}
	return &Options{Process: &process.Process{Stderr: &stderr, Environ: environ}, Target: Target{HasSystem: true}}, &stderr
}

// source writes a provider file into the directory of the test, which becomes the current one.
func source(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	disk.Write(t, "p.d", text)
	return "p.d"
}

func TestNone(t *testing.T) {
	path := source(t, "")
	t.Setenv("PATH", t.TempDir())
	o, _ := options(t)
	if _, err := o.File(path); !errors.Is(err, ErrNone) {
		t.Errorf("%v, want %v", err, ErrNone)
	}
}

// The command line names a preprocessor before CPP does, and that before CC, whose flags say
// what it is for.
func TestNamed(t *testing.T) {
	path := source(t, "")
	show := program(t, `test "$1" = -dumpmachine || echo "$NAME" "$@"`)
	for _, c := range []struct {
		program, want string
		environ       []string
	}{
		{"", "- -E", []string{"CPP=" + show, "CC=none"}},
		{show, "- -E", []string{"CPP=none"}},
		{"", "- -P -E", []string{"CPP=" + show + " -MMD -MF x -P -MP -MT y"}},
		{"", "- -m32 --target=t -E", []string{"CC=" + show, "CFLAGS=-O2 -m32 -DX -MMD --target=t"}},
	} {
		o, _ := options(t, append(c.environ, "NAME=-")...)
		o.Program, o.Flags = c.program, []string{"-DA=b c", "-UA", "-H", "-Id"}
		got, err := o.File(path)
		if want := c.want + " -x c -Ulinux -Uunix -Ui386 -Usun -DA=b c -UA -H -Id p.d\n"; err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// A compiler that does not end is killed, and what it runs with it; one that writes without
// end is, too.
func TestBounds(t *testing.T) {
	path := source(t, "")
	child := filepath.Join(t.TempDir(), "child")
	for script, want := range map[string]string{
		"sleep 1000 & echo $! >" + child + "; wait": "was killed, as it took more than 300ms",
		"yes":    "writes more than 16777216 bytes",
		"exit 7": "exit status 7",
	} {
		o, _ := options(t)
		o.Program, o.Timeout = program(t, "test $1 = -dumpmachine && exit 1\n"+script), time.Minute
		if strings.HasPrefix(script, "sleep") {
			o.Timeout = 300 * time.Millisecond
		}
		started := time.Now()
		_, err := o.File(path)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) || !strings.HasPrefix(err.Error(), "p.d: -C: "+o.Program+" -E: ") {
			t.Errorf("%v, want %s", err, want)
		}
		if took := time.Since(started); took > 30*time.Second {
			t.Errorf("%s: took %v", script, took)
		}
	}
	pid := expect.Value(strconv.Atoi(strings.TrimSpace(string(disk.Read(t, child)))))(t)
	expect.Soon(t, func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) }, "the compiler's child has ended")
}

// zombie reports whether a process has ended that its parent has not waited for.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// probes returns the names of the probes in what was preprocessed.
func probes(t *testing.T, text string) (names []string) {
	t.Helper()
	for _, p := range expect.Value(provider.Parse(provider.NewScanner("p.d", text)))(t).Providers {
		for _, probe := range p.Probes {
			names = append(names, probe.Name)
		}
	}
	return names
}

// systems has a probe for each system and machine.
const systems = `provider p {
#ifdef __linux__
	probe on_linux();
#endif
#if defined(__sun) && defined(__SVR4)
	probe on_sun();
#endif
#ifdef __FreeBSD__
	probe on_freebsd();
#endif
#if defined(__APPLE__) || defined _WIN32
	probe on_others();
#endif
#ifdef __unix__
	probe on_unix();
#endif
`

const machine = `#if __x86_64__
	probe on_amd64();
#elif defined __i386__
	probe on_i386();
#elif defined(__aarch64__)
	probe on_arm64();
#endif
`

// targetOf returns a target that a triplet names.
func targetOf(t *testing.T, triplet string) Target {
	t.Helper()
	system, err := provider.ParseSystem(triplet)
	abi, ok := machines.Target(triplet)
	if err != nil || !ok {
		t.Fatal(triplet, err)
	}
	return Target{Triplet: triplet, System: system, HasSystem: true, ABI: abi}
}

// The macros are those of the target, whatever compiler is at hand; what only a compiler for
// the target knows is an error without one.
func TestTargets(t *testing.T) {
	tools.Need(t, "gcc", clang, "aarch64-linux-gnu-gcc")
	for _, c := range []struct{ cc, triplet, test, want string }{
		{"gcc", "x86_64-linux-gnu", machine, "on_linux on_unix on_amd64"},
		{"gcc", "i686-linux-gnu", machine, "on_linux on_unix on_i386"},
		{"gcc -m32", "i686-linux-gnu", machine, "on_linux on_unix on_i386"},
		{clang, "x86_64-unknown-freebsd14.0", machine, "on_freebsd on_unix on_amd64"},
		{clang, "aarch64-linux-gnu", machine, "on_linux on_unix on_arm64"},
		{clang, "x86_64-pc-solaris2.11", machine, "on_sun on_unix on_amd64"},
		{"aarch64-linux-gnu-gcc", "aarch64-linux-gnu", machine, "on_linux on_unix on_arm64"},
		{"", "aarch64-linux-gnu", machine, "on_linux on_unix on_arm64"},
		{"gcc", "x86_64-unknown-freebsd14.0", "", "on_freebsd on_unix"},
		{"gcc", "x86_64-pc-solaris2.11", "#ifdef _DTRACE_VERSION\n#endif\n", "on_sun on_unix"},
		{"gcc", "aarch64-linux-gnu", "#if MINE || defined YOURS\n#endif\n", "on_linux on_unix"},
		{"gcc", "aarch64-linux-gnu", machine, "p.d: whether __aarch64__ is defined only a compiler for aarch64-linux-gnu knows; name one with CC or -x cpppath, or give -U __aarch64__"},
		{"gcc", "x86_64-unknown-freebsd14.0", "#ifdef __SIZEOF_POINTER__\n#endif\n", "p.d: whether __SIZEOF_POINTER__ is defined only a compiler for x86_64-unknown-freebsd14.0 knows; name one with CC or -x cpppath, or give -U __SIZEOF_POINTER__"},
		{"gcc", "x86_64-unknown-freebsd14.0", "#include <sys/types.h>\n", "p.d: -C: gcc -E: exit status 1; it is not a compiler for x86_64-unknown-freebsd14.0 and has none of its headers: name one with CC or -x cpppath"},
		{"gcc", "x86_64-unknown-freebsd14.0", "#if __GNUC__ > 3\n#endif\n", "p.d:17:5: whether __GNUC__ is defined only a compiler for x86_64-unknown-freebsd14.0 knows; name one with CC or -x cpppath, or give -U __GNUC__"},
		{"gcc", "x86_64-unknown-freebsd14.0", "#if __FreeBSD__ >= 13\n#endif\n", "p.d: whether __FreeBSD_version is defined only a compiler for x86_64-unknown-freebsd14.0 knows; name one with CC or -x cpppath, or give -U __FreeBSD_version"},
	} {
		path := source(t, systems+c.test+"};\n")
		o, stderr := options(t, "CC="+c.cc)
		o.Target = targetOf(t, c.triplet)
		text, err := o.File(path)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(probes(t, text), " ")
		}
		expect.Equal(t, c.want, got, "%s for %s", c.cc, c.triplet)
		if stderr.Len() > 0 && !strings.Contains(c.want, "exit status") {
			t.Errorf("%s for %s: says %q", c.cc, c.triplet, stderr)
		}
	}
}

// For objects whose triplet is not known clang is not a compiler.
func TestNoCompilerForObjects(t *testing.T) {
	tools.Need(t, clang)
	path := source(t, "")
	o, _ := options(t, "CC="+clang+" --target=x86_64-linux-gnu")
	o.Target = targetOf(t, "aarch64-unknown-freebsd14.0")
	o.Target.Triplet = ""
	want := "p.d: -C needs a C compiler for FreeBSD, EM_AARCH64 of ELFCLASS64, and " + clang + " --target=x86_64-linux-gnu is one for x86_64-unknown-linux-gnu; name one with CC or -x cpppath, or the target with --target"
	if _, err := o.File(path); err == nil || strings.Replace(err.Error(), "for x86_64-linux-gnu;", "for x86_64-unknown-linux-gnu;", 1) != want {
		t.Errorf("%v, want %s", err, want)
	}
}
