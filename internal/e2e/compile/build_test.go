package compile

import (
	"os"
	"path/filepath"
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
