package providers

import (
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// What test suites of other programs that make headers and objects of provider files expect,
// as far as it is about building: each test has the name that it has there.

// A source that only tests whether a probe is traced, without the object and with it.
func TestOnlyenabled(t *testing.T) {
	b := newBuild(t)
	exe := b.program(t, "provider test_prov { probe go(int); };\n", "int main(void) { return TEST_PROV_GO_ENABLED() ? 2 : 0; }\n")
	b.Must(t, exe)
	expect.Equal(t, nil, forms(t, exe), "notes of no probe")
	b.Must(t, "gcc", "main.o", "-o", "alone")
	b.Must(t, "./alone")
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
