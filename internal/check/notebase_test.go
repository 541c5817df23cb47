package check_test

import (
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
