package check_test

import (
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// tapped is a source with a probe that is defined where it is used, and a guard of it.
const tapped = `#include "program.h"
#ifdef __cplusplus
DTRACE_PROBE_DECLARE(app___tap);
#endif
C int tap(int n)
{
	if (DTRACE_PROBE_ENABLED(app___tap))
		DTRACE_PROBE1(app___tap, int, n);
	return n;
}
`

// asWritten are the flags with which sdt.h has the forms that it has by itself.
var asWritten = []string{"-USDT_CALLS", "-USDT_NO_SEMAPHORES"}

// A program whose objects no conversion has met says so, and nothing that leads away from it;
// so does one with a single such object, of each probe.
func TestNotConverted(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled(asWritten...)
		b.write("tap.c", tapped)
		b.compile("tap.o", "tap.c", asWritten...)
		b.run("cp", "tap.o", "early.o")
		b.run("cp", "fire.o", "firek.o")
		b.run("cp", "define.o", "definek.o")
		b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.sdt_unconverted", "early.o") // as earlier headers made it
		b.convert("--stapsdt", "firek.o", "definek.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, mode := range []string{"-pie", "-no-pie", "-shared"} {
				b.link(l, "prog", "fire.o", "define.o", "tap.o", mode)
				b.message(b.finds([]string{"not-converted prog  "}, "prog"), "not converted (3 probes, app___start first): link with -B")
				b.link(l, "prog", "firek.o", "definek.o", "tap.o", mode)
				b.finds([]string{"not-converted prog  app___tap"}, "--allow=early-semaphore", "prog")
			}
			ran := tools.Command{Directory: b.directory}.Result(b, converter, "list", "prog")
			expect.Equal(b, 0, ran.Status, "list: exit status")
			expect.Contains(b, ran.Stderr, "tracepoints of 1 probe are not converted, and not listed: link with -B")
			b.link(l, "lib.so", "early.o", "-shared")
			b.message(b.finds([]string{"not-converted lib.so  "}, "lib.so"), "not converted: link with -B")
			ran = tools.Command{Directory: b.directory}.Result(b, converter, "list", "lib.so")
			expect.Equal(b, 1, ran.Status, "list: exit status")
			expect.Contains(b, ran.Stderr, "lib.so: holds no records of probes, and is not converted: link with -B")
			b.link(l, "prog", "firek.o", "definek.o", "-pie")
			b.clean("--allow=early-semaphore", "prog")
			if left := disk.OpenELF(b, b.path("prog")).Section(".sdt_unconverted"); left != nil && left.Size > 0 {
				b.Errorf("%+v", left)
			}
		})
	})
}

// A library that exports what it defines and has no site is not what it should be, unless a
// program has the sites.
func TestLibraryOfDefinitions(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("only.c", "#include \"program.h\"\nSDT_PROVIDER_DEFINE(app);\nSDT_PROBE_DEFINE1(app, , , start, \"int\");\n")
		b.write("user.c", "#include \"program.h\"\nSDT_PROBE_DECLARE(app, , , start);\nC int fire(int n) { SDT_PROBE1(app, , , start, n); return n; }\n")
		b.compile("only.o", "only.c")
		b.compile("user.o", "user.c")
		b.convert("user.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "libonly.so", "-shared", "only.o")
			b.message(b.finds([]string{"not-converted libonly.so  "}, "libonly.so"), "it defines 1 probe, and no file that was given has a site of any")
			b.link(l, "libuser.so", "-shared", "user.o")
			b.clean("libonly.so", "libuser.so")
			b.clean("libuser.so", "libonly.so")
			// dlopen fails if nothing exports the probe.
			found := b.finds([]string{"unresolved-probe libuser.so fire app___start"}, "libuser.so")
			b.message(found, "add what sdtconvert stubs writes")
			expect.Equal(b, "error", found[0].Severity)
			b.convert("stubs", "-o", "stubs.o", "user.o")
			b.link(l, "libuser.so", "-shared", "user.o", "stubs.o")
			b.clean("libuser.so")
		})
	})
}

// A check of nothing is no check.
func TestNoProbes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("plain.c", "int plain;\n")
		b.compile("plain.o", "plain.c")
		b.run(b.machine.Tool("ar"), "rc", "empty.a")
		for _, name := range []string{"plain.o", "empty.a"} {
			b.finds([]string{"no-probes   "}, name)
			b.clean("--allow=no-probes", name)
		}
		b.program()
		b.clean("plain.o", "fire.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "plain.so", "-shared", "plain.o")
			b.finds([]string{"missing-note plain.so  "}, "--require-notes", "plain.so")
		})
	})
}
