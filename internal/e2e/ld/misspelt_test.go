package ld

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// A probe that nothing defines is a warning where a source defines others of its provider,
// and an error with a flag. A provider without any definition is no reason for either.
func TestMisspeltProbe(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "shop.c", `#include <unistd.h>
#include <sdt.h>
SDT_PROVIDER_DEFINE(shop);
SDT_PROBE_DEFINE1(shop, , , placed, "int");
void use(int n);
int main(void) { SDT_PROBE1(shop, , , placed, 1); use(1); return 0; }
`)
		disk.Write(t, "use.c", "void __dtrace_probe_shop___placde(int), __dtrace_probe_other___free(int);\n"+
			"void use(int n) { __dtrace_probe_shop___placde(n); __dtrace_probe_other___free(n); }\n")
		tools.Must(t, "gcc", "-O2", "-c", "-I"+tools.Root("include"), "shop.c", "use.c")
		const found = "use.o: nothing defines sdt_shop___placde, and the link defines other probes of shop; correct the name or define the probe\n"
		out := gcc(t, l, "-o", "program", "shop.o", "use.o")
		expect.Equal(t, "sdtconvert: warning: "+found, out, "says")
		run(t, "program")
		// What the first link added is not a definition in a source.
		tools.Must(t, converter, "stubs", "-o", "stubs.o", "use.o")
		expect.Equal(t, "", gcc(t, l, "-o", "program", "shop.o", "use.o", "stubs.o"), "says")
		tools.Must(t, "rm", "program")
		t.Setenv("SDTCONVERT_FLAGS", "--no-undefined-probes")
		out, err := tools.Try("gcc", "-B"+wrappers, l.Use(), "-o", "program", "shop.o", "use.o")
		if err == nil || !strings.Contains(out, "sdtconvert: "+found) || strings.Contains(out, "placed\n") {
			t.Errorf("says %q, %v", out, err)
		}
		if _, err := tools.Try("test", "!", "-e", "program"); err != nil {
			t.Error("it was linked")
		}
	})
}

// Records of another prefix name probe objects that the link would not define.
func TestOtherProbePrefix(t *testing.T) {
	enter(t, linker("bfd").Path)
	tools.Need(t, "ar")
	compile(t, "main.c", "sub/second.c")
	tools.Must(t, converter, "--probe-object-prefix", "xx_", "sub/second.o")
	tools.Must(t, "ar", "rcs", "libsecond.a", "sub/second.o")
	for _, second := range []string{"sub/second.o", "libsecond.a"} {
		out, err := tools.Try("gcc", "-B"+wrappers, "-o", "program", "main.o", second)
		if err == nil || !strings.Contains(out, "converted before with another --probe-object-prefix: its records name xx_app___second; ") {
			t.Errorf("%s: %s, %v", second, out, err)
		}
	}
	// If nothing is converted, the link is refused only where it has no definition of the names.
	tools.Must(t, converter, "--probe-object-prefix", "xx_", "main.o")
	disk.Write(t, "define.c", "int xx_app___second, xx_app___start;\n")
	tools.Must(t, "gcc", "-c", "define.c")
	for _, flag := range []string{"", "--in-place"} {
		t.Setenv("SDTCONVERT_FLAGS", flag)
		for _, output := range [][]string{{"-o", "library.so", "-shared", "sub/second.o"}, {"-o", "program", "main.o", "sub/second.o"}} {
			out, err := tools.Try("gcc", append([]string{"-B" + wrappers}, output...)...)
			if err == nil || !strings.Contains(out, "its records name xx_app___second; ") || strings.Contains(out, "undefined") {
				t.Errorf("%s %s: %s, %v", flag, output, out, err)
			}
		}
		tools.Must(t, "gcc", "-B"+wrappers, "-o", "program", "main.o", "sub/second.o", "define.o")
	}
	t.Setenv("SDTCONVERT_FLAGS", "")
	if out, err := combined(converter, "sub/second.o"); exitCode(err) != 1 || !strings.Contains(out, "another --probe-object-prefix") {
		t.Errorf("%s, %v", out, err)
	}
	// All of one prefix go together.
	t.Setenv("SDTCONVERT_FLAGS", "--probe-object-prefix=xx_")
	tools.Must(t, "gcc", "-B"+wrappers, "-o", "program", "main.o", "sub/second.o")
}
