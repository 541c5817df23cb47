package check_test

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
)

// manifest converts objects and writes the manifest of that.
func (b *build) manifest(name string, objects ...string) {
	b.Helper()
	b.write(name, b.output(append([]string{converter, "--layout=pairs", "--json"}, objects...)...))
}

// compared is the program in testdata, with its manifest.
func (b *build) compared(flags ...string) {
	b.Helper()
	b.compiled(flags...)
	b.manifest("m.json", "fire.o", "define.o")
}

func TestAllReached(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compared()
		b.clean("--manifest", "m.json", "fire.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			all := []string{"fire.o", "define.o"}
			for _, mode := range []string{"-pie", "-static", "-shared"} {
				b.link(l, "prog", append(all, mode)...)
				b.clean("--manifest", "m.json", "prog")
			}
			b.link(l, "all.o", append(all, "-r", "-nostdlib")...)
			b.clean("--manifest", "m.json", "all.o")
			b.run(b.machine.Tool("strip"), "prog")
			if r := b.check("--manifest", "m.json", "prog"); len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "has no symbols") {
				b.Errorf("%+v", r)
			}
		})
	})
}

// Linkers drop dead functions together with their records, or keep both. nm knows
// what they have done.
func TestDroppedFunction(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compared("-ffunction-sections")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o", "-Wl,--gc-sections")
			want := []string{}
			if !b.defines("prog", "unused") {
				want = append(want, "dropped-site fire.o unused app___start")
			} else if l.Family == "lld" {
				b.Error("lld keeps a dead function, so this test tests nothing")
			}
			for _, f := range b.finds(want, "--manifest", "m.json", "prog") {
				if f.Severity != "note" || f.Section != ".text.unused" || !strings.HasSuffix(f.Source, "/fire.c") || f.Line != 15 {
					b.Errorf("%+v", f)
				}
			}
		})
	})
}

// defines reports whether a file has a symbol.
func (b *build) defines(name, symbol string) bool {
	b.Helper()
	for _, line := range strings.Split(b.output(b.machine.Tool("nm"), name), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[2] == symbol {
			return true
		}
	}
	return false
}

// Records that a tool has removed from the image.
func TestRemovedRecords(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compared()
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o", "-no-pie")
			b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=sdt_instances_set", "prog")
			found := b.finds([]string{
				"lost-site prog fire app___start", "lost-site prog main app___start", "lost-site prog stop app___stop", "lost-site prog unused app___start",
			}, "--manifest", "m.json", "--allow=unused-probe", "prog")
			for _, f := range found {
				if f.Line == 0 || f.Address == "" {
					b.Errorf("%+v", f)
				}
			}
		})
	})
}

// The object as it was compiled was linked, and not the converted one.
func TestForgottenObject(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compared()
		b.compile("define.o", "define.c")
		b.convert("stubs", "-o", "stubs.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o", "stubs.o")
			b.finds([]string{"live-call prog stop app___stop", "lost-site prog stop app___stop"}, "--manifest", "m.json", "prog")
		})
	})
}

// Functions of one name, each local to its source file.
func TestLocalFunctions(t *testing.T) {
	eachToolchain(t, func(b *build) {
		for _, n := range []string{"1", "2", "3"} {
			b.write("local"+n+".c", `
#include "program.h"
SDT_PROBE_DECLARE(app, , , start);
static int __attribute__((noinline)) local(int n) { SDT_PROBE1(app, , , start, n); return n; }
C int call`+n+`(int n) { return local(n) + `+n+`; }
`)
			b.compile("local"+n+".o", "local"+n+".c", "-ffunction-sections")
		}
		b.compile("define.o", "define.c")
		b.write("main.c", "#include \"program.h\"\nC int call1(int);\nC int call3(int);\nint main(void) { return call1(1) + call3(3); }\n")
		b.compile("main.o", "main.c")
		b.manifest("m.json", "local1.o", "local2.o", "local3.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			all := []string{"main.o", "local1.o", "local2.o", "local3.o", "define.o"}
			b.link(l, "prog", all...)
			b.clean("--manifest", "m.json", "prog")
			if l.Family == "lld" {
				local := "local"
				if b.cxx {
					local = "_ZL5locali"
				}
				b.link(l, "prog", append(all, "-Wl,--gc-sections")...)
				b.finds([]string{"dropped-site define.o stop app___stop", "dropped-site local2.o " + local + " app___start"},
					"--manifest", "m.json", "--allow=unused-probe", "prog")
			}
			// Identical functions are one afterwards, and their probes are the same.
			if l.Name == "gold" || l.Family == "lld" {
				b.link(l, "prog", append(all, "-Wl,--icf=all")...)
				b.clean("--manifest", "m.json", "--allow=duplicate-record", "prog")
			}
		})
	})
}

// An inline function of two objects: the linker keeps one.
func TestCOMDAT(t *testing.T) {
	eachToolchain(t, func(b *build) {
		if !b.cxx {
			return
		}
		b.write("inline.h", `
#include "program.h"
SDT_PROBE_DECLARE(app, , , start);
inline int __attribute__((noinline)) twice(int n) { SDT_PROBE1(app, , , start, n); return 2 * n; }
`)
		b.write("one.c", "#include \"inline.h\"\nint one(int n) { return twice(n) + 1; }\n")
		b.write("two.c", "#include \"inline.h\"\nint two(int n) { return twice(n) + 2; }\n")
		b.write("main.c", "int one(int);\nint two(int);\nint main() { return one(1) + two(2); }\n")
		for _, name := range []string{"one", "two", "main"} {
			b.compile(name+".o", name+".c", "-I"+b.directory)
		}
		b.compile("none.o", "one.c", "-I"+b.directory, "-DSDT_DISABLE")
		b.compile("define.o", "define.c")
		b.run("cp", "one.o", "plain.o")
		b.manifest("m.json", "one.o", "two.o", "define.o")
		b.convert("stubs", "-o", "stubs.o", "plain.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "main.o", "one.o", "two.o", "define.o")
			found := b.finds([]string{"dropped-site two.o _Z5twicei app___start"}, "--manifest", "m.json", "prog")
			if len(found) == 1 && found[0].Message != "prog has another copy of its function" {
				b.Errorf("%+v", found)
			}
			// The copy that is kept is of an object that was not converted.
			b.link(l, "prog", "main.o", "plain.o", "two.o", "define.o", "stubs.o")
			b.finds([]string{
				"dropped-site two.o _Z5twicei app___start", "live-call prog _Z5twicei app___start", "lost-site prog _Z5twicei app___start",
			}, "--manifest", "m.json", "--allow=duplicate-probe", "--allow=leftover-probe", "--allow=unused-probe", "prog")
			// That copy has no probe, whose definition was made for the other.
			b.link(l, "prog", "main.o", "none.o", "two.o", "stubs.o")
			b.finds([]string{"not-converted prog  "}, "prog")
		})
	})
}

// Objects that are converted in an archive have its name in the manifest.
func TestManifestOfArchive(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		b.run(b.machine.Tool("ar"), "rcs", "libdefine.a", "define.o")
		b.convert("fire.o")
		b.manifest("m.json", "fire.o", "libdefine.a")
		b.clean("--manifest", "m.json", "fire.o", "libdefine.a")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "libdefine.a")
			b.clean("--manifest", "m.json", "prog")
			b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=sdt_instances_set", "prog")
			if r := b.check("--manifest", "m.json", "prog"); len(r.Findings) < 4 {
				b.Errorf("%+v", r)
			}
		})
	})
}

// Members of an archive may have one name. A document tells of each, and a later document of the
// archive replaces them all.
func TestManifestOfMembersOfOneName(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		b.run("mkdir", "-p", "a", "b")
		for directory, name := range map[string]string{"a": "fire", "b": "define"} {
			b.run("cp", name+".o", directory+"/x.o")
			b.convert("-o", name+"k.o", name+".o")
		}
		b.run(b.machine.Tool("ar"), "rc", "lib.a", "a/x.o")
		b.run(b.machine.Tool("ar"), "q", "lib.a", "b/x.o")
		b.write("m.json", b.output(converter, "--layout=pairs", "--json", "-n", "lib.a"))
		b.convert("stubs", "-o", "stubs.o", "fire.o", "define.o")
		lost := []string{"lost-site prog fire app___start", "lost-site prog fire app___start", "lost-site prog main app___start", "lost-site prog unused app___start"}
		allow := []string{"--allow=live-call", "--allow=unused-probe", "--manifest", "m.json", "prog"}
		b.run("sh", "-c", "cat m.json m.json >twice.json")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "firek.o", "definek.o")
			b.clean("--manifest", "m.json", "prog")
			b.clean("--manifest", "twice.json", "prog")
			b.link(l, "prog", "fire.o", "definek.o", "stubs.o")
			b.finds(lost, allow...)
			b.link(l, "prog", "firek.o", "define.o", "stubs.o")
			b.finds([]string{"lost-site prog stop app___stop"}, allow...)
		})
	})
}

// A site that no function holds is lost also where another function of the image has one of the
// same probe.
func TestManifestOfNamelessCode(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.compiled()
	b.write("bare.s", "\t.text\n\tcall __dtrace_probe_app___start\n\tret\n\t.section .note.GNU-stack,\"\",@progbits\n")
	b.run("as", "--64", "-o", "bare.o", "bare.s")
	b.convert("stubs", "-o", "stubs.o", "bare.o")
	b.run("cp", "bare.o", "plain.o")
	b.write("m.json", b.output(converter, "--layout=pairs", "--json", "bare.o"))
	b.convert("fire.o", "define.o")
	b.eachLinker(func(b *build, l toolchains.Linker) {
		b.link(l, "prog", "fire.o", "define.o", "bare.o")
		b.clean("--manifest", "m.json", "--allow=unanchored-site", "prog")
		b.link(l, "prog", "fire.o", "define.o", "plain.o", "stubs.o")
		b.finds([]string{"lost-site bare.o  app___start"}, "--manifest", "m.json", "--allow=live-call", "--allow=duplicate-probe", "--allow=leftover-probe", "--allow=unused-probe", "prog")
	})
}

// Two programs have a main each, of objects in one manifest.
func TestSeveralImages(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compared()
		b.write("other.c", "int main(void) { return 1; }\n")
		b.compile("other.o", "other.c")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o")
			b.link(l, "other", "other.o")
			b.clean("--manifest", "m.json", "prog", "other")
			b.clean("--manifest", "m.json", "other", "prog")
		})
	})
}

// Manifests add up, one file may hold several, and the last word on an object
// counts.
func TestManifests(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.compiled()
	b.manifest("old.json", "define.o")
	b.compile("define.o", "define.c", "-DSDT_DISABLE")
	b.manifest("new.json", "define.o")
	b.manifest("fire.json", "fire.o")
	b.run("sh", "-c", "cat old.json new.json fire.json >all.json")
	allow := []string{"--allow=undefined-probe", "fire.o", "define.o"}
	b.clean(append([]string{"--manifest=all.json"}, allow...)...)
	b.clean(append([]string{"--manifest=old.json", "--manifest=new.json"}, allow...)...)
	b.finds([]string{"lost-site define.o stop app___stop"}, append([]string{"--manifest=new.json", "--manifest=old.json"}, allow...)...)
}
