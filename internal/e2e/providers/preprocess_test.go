package providers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// macrosOf returns the macros that fire a probe, of a header.
func macrosOf(text string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#define (P_\w+)\(`).FindAllStringSubmatch(text, -1) {
		if !strings.HasSuffix(m[1], "_ENABLED") {
			names = append(names, m[1])
		}
	}
	return names
}

func (b build) read(t *testing.T, name string) string {
	t.Helper()
	return string(disk.Read(t, filepath.Join(b.Directory, name)))
}

// Macros, headers of the project and of the system, and -D, -U, -I, -H and their forms of -x.
func TestMacros(t *testing.T) {
	b := newBuild(t)
	expect.OK(t, os.Mkdir(filepath.Join(b.Directory, "inc"), 0o777))
	b.write(t, "inc/t.h", "#pragma once\n#include <sys/types.h>\n#define T pid_t *\n")
	b.write(t, "-p.d", `#include "t.h"
#include <t.h>
#define PROBE(n, ...) probe n(__VA_ARGS__)
#define JOIN(a, b) a##__##b
#pragma D attributes Evolving/Evolving/Common provider p provider
provider p { /* it's */
	PROBE(JOIN(a, b), T, int) ; // it's
#if A == 2 && !defined(B) && defined C && !defined(D)
	PROBE(c);
#endif
	probe linux(size_t unix);
};
`)
	out := b.Must(t, b.dtrace, "-hs", "-p.d", "-C", "-Iinc", "-DA=1", "-UA", "-D", "A=2", "-D B", "-x", "undef=B", "-xdefine=C", "-xundef=D", "-H", "-o", "p.h")
	if !regexp.MustCompile(`(?m)^\. inc/t.h$`).MatchString(out) {
		t.Errorf("-H shows %s", out)
	}
	expect.Equal(t, []string{"P_A_B", "P_C", "P_LINUX"}, macrosOf(b.read(t, "p.h")))
}

// A compiler that writes dependencies writes them not over the provider file.
func TestDependencies(t *testing.T) {
	b := newBuild(t)
	b.write(t, "p.d", "provider p { probe a(); };\n")
	for _, env := range []string{"CC=gcc -MMD", "CC=gcc -MD -MP -MF p.d", "CPP=gcc -E -MMD"} {
		b.Env = []string{env, "CFLAGS=-MMD"}
		b.Must(t, b.dtrace, "-C", "-h", "-s", "p.d")
		if text := b.read(t, "p.d"); text != "provider p { probe a(); };\n" {
			t.Fatalf("%s: %s", env, text)
		}
	}
	b.holds(t, "p.d", "p.h")
}

// Faults are told with the lines of the original, those of the compiler and those of D.
func TestPlaces(t *testing.T) {
	b := newBuild(t)
	b.write(t, "x.d", "#include \"d.h\"\n")
	b.write(t, "d.h", "\n\nprovider q { probe x(); probe x(); };\n")
	b.write(t, "e.d", "#define M(x) x\n/* a\n b */\n#error no\n")
	b.write(t, "f.d", "#define T int\n#include <sys/types.h>\nprovider f {\n\tprobe a(T);\n\tprobe a(T);\n\tprobe (T);\n};\n")
	for name, want := range map[string]string{
		"x.d": "^sdtconvert: d.h:3:31: probe x is declared twice, first at d.h:3:20; remove one\n$",
		"e.d": "(?s)^e.d:4:2: error: #error no\n.*sdtconvert: e.d: -C: cc -E: exit status 1\n$",
		"f.d": "^sdtconvert: f.d:6:8: a probe has a name, and here is \"\\(\"\n$",
	} {
		out, err := b.Try(b.dtrace, "-C", "-h", "-s", name, "-o", "out.h")
		if err == nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: %v, %s, want %s", name, err, out, want)
		}
	}
	disk.Absent(t, filepath.Join(b.Directory, "out.h"))
}

// A signal that ends the program ends the compiler and what that runs.
func TestCompilerIsEnded(t *testing.T) {
	b := newBuild(t)
	b.write(t, "p.d", "provider p { probe a(); };\n")
	b.write(t, "cpp", "#!/bin/sh\ntest $1 = -dumpmachine && exit 1\nsleep 1000 & echo $! >child.tmp; mv child.tmp child; wait\n")
	expect.OK(t, os.Chmod(filepath.Join(b.Directory, "cpp"), 0o777))
	cmd := exec.Command(b.dtrace, "-C", "-h", "-s", "p.d", "-x", "cpppath=./cpp")
	cmd.Dir = b.Directory
	expect.OK(t, cmd.Start())
	child := ""
	expect.Soon(t, func() bool {
		text, err := os.ReadFile(filepath.Join(b.Directory, "child"))
		child = strings.TrimSpace(string(text))
		return err == nil
	}, "the compiler has started")
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err == nil {
		t.Error("ended well")
	}
	expect.Soon(t, func() bool {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, "the compiler's child has ended")
	b.holds(t, "child", "cpp", "p.d")
}
