package check_test

import (
	"debug/elf"
	"os"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// systemTap is the directory of sys/sdt.h, which compilers for other machines do not look
// into by themselves.
const systemTap = "/usr/include/x86_64-linux-gnu"

// theirs compiles a source with SystemTap's macros.
func (b *build) theirs(out, function string, flags ...string) {
	b.Helper()
	if _, err := os.Stat(systemTap + "/sys/sdt.h"); err != nil {
		tools.Unavailable(b, "no sys/sdt.h")
	}
	b.compile(out, "theirs.c", append([]string{"-idirafter", systemTap, "-DFUNCTION=" + function}, flags...)...)
}

// definedIn returns the flags that define the semaphore in a section, with words before
// it.
func definedIn(where, section string) []string {
	return []string{"-DSEMAPHORES=1", "-DWHERE=" + where, `-DSECTION="` + section + `"`}
}

// programs links with each linker what a test has compiled.
func (b *build) programs(names []string, flags []string, test func(b *build, l toolchains.Linker)) {
	b.Helper()
	b.write("main.c", "int main(void) { return 0; }\n")
	b.compile("main.o", "main.c")
	b.eachLinker(func(b *build, l toolchains.Linker) {
		b.link(l, "prog", append(append(names, "main.o"), flags...)...)
		test(b, l)
	})
}

// One semaphore and several sites, some of a source that knows of none.
func TestCleanSemaphores(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.theirs("one.o", "one", definedIn("", ".probes")...)
		b.theirs("two.o", "two", "-DSEMAPHORES=1")
		b.theirs("three.o", "three")
		all := []string{"one.o", "two.o", "three.o"}
		b.clean(all...)
		for _, mode := range []string{"-pie", "-no-pie", "-shared"} {
			b.programs(all, []string{mode}, func(b *build, l toolchains.Linker) {
				b.clean("--allow=early-semaphore", "prog")
				b.run(b.machine.Tool("strip"), "prog")
				b.clean("--allow=early-semaphore", "prog")
			})
		}
	})
}

// lld and mold map the page of the data twice, unless it is the section's own.
// internal/e2e/attach has the proof that tracers count there.
func TestEarlySemaphore(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.theirs("one.o", "one", definedIn("", ".probes")...)
		b.write("align.s", ".section .probes, \"aw\", %progbits\n.balign 4096\n.zero 4\n")
		b.run(b.machine.Tool("as"), "-o", "align.o", "align.s")
		b.programs([]string{"one.o"}, nil, func(b *build, l toolchains.Linker) {
			want := []string{}
			if l.Family == "lld" || l.Family == "mold" {
				want = append(want, "early-semaphore prog  app:::hit")
			}
			for _, f := range b.finds(want, "prog") {
				if f.Severity != "note" || !strings.Contains(f.Message, " app_hit_semaphore ") {
					b.Errorf("%+v", f)
				}
			}
		})
		b.programs([]string{"align.o", "one.o"}, nil, func(b *build, l toolchains.Linker) { b.clean("prog") })
	})
}

// Where the source has put a semaphore.
func TestSemaphorePlace(t *testing.T) {
	for _, c := range []struct{ section, how, want, message string }{
		{".rodata.sem", "CONSTANT", "semaphore-place", "in memory that cannot be written"},
		{".data.rel.ro", "WRITABLE", "semaphore-place", "once the program has started"},
		{".bss.sem", "WRITABLE", "semaphore-place", "in no place of the file"},
		{".data.sem", "WRITABLE", "semaphore-section", "is in .data; bcc"},
	} {
		t.Run(c.section, func(t *testing.T) {
			eachToolchain(t, func(b *build) {
				b.theirs("one.o", "one", append(definedIn("", c.section), "-D"+c.how)...)
				b.clean("one.o")
				// Nothing else fills the pages that are protected, so the section does.
				b.write("fill.c", "__attribute__((section(\".data.rel.ro\"), used)) char *fill[4096] = { (char *)fill };\n")
				b.compile("fill.o", "fill.c")
				b.programs([]string{"one.o", "fill.o"}, []string{"-Wl,-z,relro,-z,now", "-pie"}, func(b *build, l toolchains.Linker) {
					b.message(b.finds([]string{c.want + " prog  app:::hit"}, "--allow=early-semaphore", "prog"), c.message)
				})
			})
		})
	}
}

// Each of two sources has a semaphore of its own.
func TestSemaphoreMismatch(t *testing.T) {
	eachToolchain(t, func(b *build) {
		own := definedIn("static", ".probes")
		b.theirs("one.o", "one", own...)
		b.theirs("two.o", "two", own...)
		b.programs([]string{"one.o", "two.o"}, nil, func(b *build, l toolchains.Linker) {
			found := b.finds([]string{"semaphore-mismatch prog two app:::hit"}, "--allow=early-semaphore", "prog")
			if len(found) == 1 && (found[0].Line == 0 || !strings.Contains(found[0].Message, "that of one at ")) {
				b.Errorf("%+v", found)
			}
		})
		b.theirs("one.o", "one", "-DSEMAPHORES=1")
		b.theirs("two.o", "two", "-DSEMAPHORES=1", "-Dapp_hit_semaphore=other_semaphore")
		b.message(b.finds([]string{"semaphore-mismatch two.o two app:::hit"}, "one.o", "two.o"), "other_semaphore, and that of one at ")
	})
}

// A guard that was linked as the compiler has made it.
func TestDeadGuard(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compile("guard.o", "guard.c")
		b.theirs("one.o", "one", definedIn("", ".probes")...)
		b.theirs("three.o", "three")
		b.alone("app___hit", "the probe has no site")
		b.compile("twice.o", "guard.c", "-Dguarded=twice")
		b.finds([]string{"dead-guard guard.o guarded app___hit"}, "guard.o", "twice.o")
		for object, message := range map[string]string{
			"one.o": "the notes of the probe name app_hit_semaphore;", "three.o": "the notes of the probe name no semaphore;",
		} {
			found := b.finds([]string{"dead-guard guard.o  app___hit"}, "guard.o", object)
			b.programs([]string{"guard.o", object}, nil, func(b *build, l toolchains.Linker) {
				found = append(found, b.finds([]string{"dead-guard prog  app___hit"}, "--allow=early-semaphore", "prog")...)
			})
			for _, f := range found {
				if !strings.Contains(f.Message, "__dtrace_semaphore_app___hit") || !strings.Contains(f.Message, message) {
					b.Errorf("%+v", f)
				}
			}
		}
		b.run(toolchains.LLVM("llvm-objcopy"), "--redefine-sym=__dtrace_semaphore_app___hit=app_hit_semaphore", "guard.o")
		b.alone("app_hit", "which no note names")
		b.theirs("two.o", "two", "-DSEMAPHORES=1")
		b.clean("guard.o", "two.o")
		b.programs([]string{"guard.o", "two.o"}, nil, func(b *build, l toolchains.Linker) { b.clean("--allow=early-semaphore", "prog") })
	})
}

// A guard with a misspelt name, in a linked program: its semaphore is there, and no note names it.
func TestMisspeltGuard(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		b.convert("--stapsdt", "fire.o", "define.o")
		b.compile("guard.o", "guard.c")
		b.run(toolchains.LLVM("llvm-objcopy"), "--redefine-sym=__dtrace_semaphore_app___hit=app_hit_semaphore", "guard.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o", "guard.o")
			b.message(b.finds([]string{"dead-guard prog  app_hit"}, "--allow=early-semaphore", "prog"), "a guard reads app_hit_semaphore, which no note names")
		})
	})
}

// alone checks guard.o by itself: its probe has no site.
func (b *build) alone(probe, message string) {
	b.Helper()
	for _, f := range b.finds([]string{"dead-guard guard.o guarded " + probe}, "guard.o") {
		if !strings.Contains(f.Message, message) || b.machine != toolchains.ARM && (!strings.HasSuffix(f.Source, "/guard.c") || f.Line == 0) { // a literal of code has no line
			b.Errorf("%+v", f)
		}
	}
}

// Tests that load the semaphore which the notes of their probe name, and one that loads
// none.
func TestTests(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		b.write("more.c", `
#include "program.h"
SDT_PROBE_DECLARE(app, , , start);
C int more(int n);
C int more(int n) { return SDT_PROBE_ENABLED(app, , , start) ? n : 0; }
`)
		b.compile("more.o", "more.c", "-DSDT_CALLS", "-DSDT_NO_SEMAPHORES")
		b.convert("--stapsdt", "fire.o", "define.o")
		b.clean("fire.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, mode := range []string{"-pie", "-no-pie", "-shared"} {
				b.link(l, "prog", "fire.o", "define.o", mode)
				b.clean("prog")
				b.run(b.machine.Tool("strip"), "prog")
				b.clean("--allow=unanchored-site", "prog")
			}
			if !l.Can(toolchains.GroupsWithR) {
				return
			}
			b.link(l, "all.o", "fire.o", "define.o", "-r", "-nostdlib")
			b.clean("all.o")
		})
		b.convert("more.o")
		b.finds([]string{"dead-guard more.o more app___start"}, "--allow=mixed-flags", "fire.o", "define.o", "more.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o", "more.o")
			b.message(b.finds([]string{"dead-guard prog more app___start"}, "prog"), "never true, and the notes of the probe name app_start_semaphore;")
		})
	})
}

// A note that puts the base elsewhere than the others do.
func TestNotesOfDifferentBases(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.theirs("two.o", "one")
		b.theirs("one.o", "other")
		b.programs([]string{"one.o", "two.o"}, nil, func(b *build, l toolchains.Linker) {
			b.run(b.machine.Tool("objcopy"), "--dump-section", ".note.stapsdt=notes", "prog")
			notes := []byte(disk.Read(b, b.path("notes")))
			word := 8
			if disk.OpenELF(b, b.path("prog")).Class == elf.ELFCLASS32 {
				word = 4
			}
			notes[20+word+2] ^= 1 // the third byte of the first note's base, behind its head, owner and address
			b.write("notes", string(notes))
			b.run(b.machine.Tool("objcopy"), "--update-section", ".note.stapsdt=notes", "prog")
			b.message(b.finds([]string{"broken-note prog  "}, "--allow=early-semaphore", "--allow=stray-note", "--allow=semaphore-place", "--allow=unknown-site", "prog"), "has notes that put .stapsdt.base at ")
		})
	})
}

// Notes that something has cut off, in an object and in a program.
func TestBrokenNote(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.theirs("one.o", "one", definedIn("", ".probes")...)
		b.programs([]string{"one.o"}, nil, func(b *build, l toolchains.Linker) {
			b.run(b.machine.Tool("objcopy"), "--dump-section", ".note.stapsdt=notes", "prog")
			notes := disk.Read(b, b.path("notes"))
			b.write("notes", string(notes[:len(notes)-8]))
			b.run(b.machine.Tool("objcopy"), "--update-section", ".note.stapsdt=notes", "prog")
			found := b.finds([]string{"broken-note prog  "}, "--allow=early-semaphore", "prog")
			if len(found) == 1 && !strings.HasPrefix(found[0].Message, ".note.stapsdt+0x0: a note ends ") {
				b.Errorf("%+v", found)
			}
		})
	})
}
