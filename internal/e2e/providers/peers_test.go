package providers

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// What test suites of other programs that make headers and objects of provider files expect,
// as far as it is about building: each test has the name that it has there.

// Probes by the macros of <sys/sdt.h> alone, and the object of their provider.
func TestLinkpriv(t *testing.T) {
	b := newBuild(t)
	b.write(t, "prov.d", "provider test_prov { probe zero(); probe one(int); probe five(int, int, int, int, int); };\n")
	b.write(t, "test.c", `#include <sys/sdt.h>
int main(int n, char **v)
{
	DTRACE_PROBE(test_prov, zero);
	DTRACE_PROBE1(test_prov, one, n);
	DTRACE_PROBE5(test_prov, five, 1, 2, 3, 4, 5);
	return 0;
}
`)
	b.Must(t, "gcc", "-c", "test.c")
	b.Must(t, b.dtrace, "-G", "-s", "prov.d", "test.o")
	b.Must(t, "gcc", "test.o", "prov.o", "-o", "test")
	b.Must(t, "./test")
	want := []string{"test_prov five -4@ -4@ -4@ -4@ -4@", "test_prov one -4@", "test_prov zero"}
	expect.Equal(t, want, forms(t, filepath.Join(b.Directory, "test")))
}

// A source that only tests whether a probe is traced, without the object and with it.
func TestOnlyenabled(t *testing.T) {
	b := newBuild(t)
	exe := b.program(t, "provider test_prov { probe go(int); };\n", "int main(void) { return TEST_PROV_GO_ENABLED() ? 2 : 0; }\n")
	b.Must(t, exe)
	expect.Equal(t, nil, forms(t, exe), "notes of no probe")
	b.Must(t, "gcc", "main.o", "-o", "alone")
	b.Must(t, "./alone")
}

// The object is made again after it was removed, and the probes are those of before: that of
// a local function, too.
func TestStatic2(t *testing.T) {
	b := newBuild(t)
	for range 2 {
		exe := b.program(t, "provider test_prov { probe probe1(); probe probe2(); };\n", `
static __attribute__((noinline)) void local(void) { TEST_PROV_PROBE2(); }
int main(void) { TEST_PROV_PROBE1(); local(); return 0; }
`)
		b.Must(t, converter, "check", "--require", "test_prov:prog:main:probe1", "--require", "test_prov:prog:local:probe2", exe)
		expect.Lacks(t, b.Output(t, "nm", exe), "dtrace")
		expect.OK(t, os.Remove(filepath.Join(b.Directory, "p.o")))
	}
}

// A program that spoils its environment before anything of it is read.
func TestCorruptenv(t *testing.T) {
	b := newBuild(t)
	exe := b.program(t, "provider test_prov { probe go(int); };\n", `
#include <unistd.h>
static void spoil(int argc, char **argv, char **envp) { if (envp[0]) envp[0] = (char *)1; }
__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = spoil;
int main(void) { TEST_PROV_GO(1); return TEST_PROV_GO_ENABLED(); }
`)
	b.Env = []string{"ANY=1"}
	b.Must(t, exe)
}

// Several providers in a file; one provider in several files, each with a header and an
// object; and probes that nothing fires.
func TestMultiprov(t *testing.T) {
	b := newBuild(t)
	b.write(t, "two.d", "provider a { probe x(); probe dead(); }; provider b { probe x(int); };\n")
	b.write(t, "more.d", "provider a { probe y(int); };\n")
	b.write(t, "test.c", `#include "two.h"
#include "more.h"
int main(int n, char **v) { A_X(); B_X(n); A_Y(n); return A_X_ENABLED() + B_X_ENABLED() + A_Y_ENABLED() + A_DEAD_ENABLED(); }
`)
	for _, name := range []string{"two", "more"} {
		b.Must(t, b.dtrace, "-h", "-s", name+".d")
		b.Must(t, b.dtrace, "-G", "-s", name+".d")
	}
	b.Must(t, "gcc", "-Wall", "-Werror", "test.c", "two.o", "more.o", "-o", "test")
	b.Must(t, "./test")
	b.Must(t, converter, "check", "--require", "a:::x", "--require", "b:::x", "--require", "a::main:y", "test")
	b.Refuses(t, "[missing-probe]", converter, "check", "--require", "a:::dead", "test")
	expect.Equal(t, []string{"a x", "a y -4@", "b x -4@"}, forms(t, filepath.Join(b.Directory, "test")))
}

// A translation says what D programs see: notes tell the arguments of the source.
func TestArgmap(t *testing.T) {
	exe := newBuild(t).program(t, "provider test_prov { probe place(int i, int j) : (int j, int i, int i, int j); };\n",
		"int main(int n, char **v) { TEST_PROV_PLACE(10, n); return 0; }\n")
	expect.Equal(t, []string{"test_prov place -4@ -4@"}, forms(t, exe))
}
