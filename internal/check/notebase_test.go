package check_test

import (
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestCollectedBase links SystemTap's macros with --gc-sections. GNU ld keeps what only notes refer to, and other
// linkers do not: gdb, which looks for the base, says which program has lost it.
func TestCollectedBase(t *testing.T) {
	tools.Need(t, "gdb-multiarch", "readelf", "objcopy")
	eachToolchain(t, func(b *build) {
		b.theirs("one.o", "one")
		b.write("main.c", `#ifdef __cplusplus
extern "C"
#endif
int one(int n);
int main(void) { return one(0); }
`)
		b.compile("main.o", "main.c")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, flag := range []string{"-Wl,--gc-sections", "-Wl,--gc-sections,-u,_.stapsdt.base", "-Wl,--no-gc-sections"} {
				b.link(l, "prog", "one.o", "main.o", flag)
				b.run(b.machine.Tool("objcopy"), "--only-keep-debug", "prog", "prog.debug")
				b.finds([]string{}, "--allow=no-probes", "prog.debug")
				found := b.output("gdb-multiarch", "-q", "-nx", "-batch", "-ex", "info probes stap", "prog")
				if !strings.Contains(found, "No probes matched") {
					b.clean("--allow=early-semaphore", "prog")
					continue
				}
				if flag != "-Wl,--gc-sections" || l.Family == "bfd" {
					b.Errorf("%s: gdb finds no probe", flag)
				}
				b.message(b.finds([]string{"broken-note prog  "}, "--allow=early-semaphore", "prog"), "the linker has collected it (--gc-sections); link with -Wl,-u,_.stapsdt.base")
			}
		})
	})
}

// TestLocalizedBase makes the symbols of a converted object local, as vendored libraries are made. llvm-objcopy takes the flag from
// COMDAT groups, too, so that each linker keeps two bases.
func TestLocalizedBase(t *testing.T) {
	const external = "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
	eachToolchain(t, func(b *build) {
		for _, name := range []string{"one", "two"} {
			b.write(name+".c", "#include <sdt.h>\nDTRACE_PROBE_DECLARE(shop___"+name+");\n"+external+"int "+name+"(int n) { DTRACE_PROBE1(shop___"+name+", int, n); return n; }\n")
			b.compile(name+".o", name+".c")
		}
		b.write("main.c", external+"int one(int n);\n"+external+"int two(int n);\nint main(void) { return one(0) + two(0); }\n")
		b.compile("main.o", "main.c")
		b.convert("--stapsdt", "one.o", "two.o")
		b.run(toolchains.LLVM("llvm-objcopy"), "--localize-hidden", "two.o")
		b.message(b.check("two.o").of("broken-note"), "convert the object after objcopy, too")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "one.o", "two.o", "main.o")
			b.message(b.check("prog").of("broken-note"), "at wrong addresses")
		})
		b.convert("--stapsdt", "two.o")
		b.clean("two.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "again", "one.o", "two.o", "main.o")
			b.clean("again")
		})
	})
}

// of returns the findings of a rule.
func (r report) of(rule string) []finding {
	return slices.DeleteFunc(r.Findings, func(f finding) bool { return f.Rule != rule })
}
