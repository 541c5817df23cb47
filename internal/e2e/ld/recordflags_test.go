package ld

import (
	"os"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// recordSources call probes with arguments that notes leave out, and use one probe in two objects.
var recordSources = map[string]string{
	"a.c": "#include <sdt.h>\nint a(int x) { DTRACE_PROBE1(shop___both, int, x); return x; }\nint unused(int x) { DTRACE_PROBE1(shop___unused, int, x); return x; }\n",
	"b.c": "#include <sdt.h>\nint a(int); int b(int x) { DTRACE_PROBE1(shop___both, int, x); return a(x); }\n",
	"main.c": "struct large { long words[5]; };\nvoid __dtrace_probe_shop___price(double, int), __dtrace_probe_shop___item(struct large, int);\n" +
		"int b(int); int main(int c, char **v) { struct large l = {{c}}; __dtrace_probe_shop___price(c * 1.5, c); __dtrace_probe_shop___item(l, c); return b(c) != 1; }\n",
}

// Flags that move records apart are refused, those that dissolve groups or drop operands are named for what they do, and calls whose
// notes leave out arguments are no mismatch.
func TestFlagsForRecords(t *testing.T) {
	l := linker("bfd")
	tools.Need(t, "gcc", l.Path)
	enter(t, l.Path)
	for name, text := range recordSources {
		disk.Write(t, name, text)
	}
	tools.Must(t, "gcc", "-O1", "-g", "-ffunction-sections", "-I"+tools.Root("include"), "-c", "main.c", "a.c", "b.c")
	inputs := []string{"-o", "program", "main.o", "a.o", "b.o"}
	refuse := func(want string, args ...string) {
		t.Helper()
		out, err := tools.Try("gcc", append([]string{"-B" + wrappers, l.Use()}, args...)...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
		disk.Absent(t, "program")
	}
	refuse("__start_sdt_instances_set leads to one", append(inputs, "-Wl,--unique")...)
	refuse("__start_sdt_instances_set leads to one", append(inputs, "-Wl,--unique=sdt_*")...)
	gcc(t, l, append(inputs, "-Wl,--unique=.text.*")...)
	tools.Must(t, converter, "check", "--require-notes", "program")
	expect.OK(t, os.Remove("program"))

	for _, object := range []string{"a", "b"} {
		gcc(t, l, "-r", "-Wl,--force-group-allocation", "-o", object+".one.o", object+".o")
	}
	gcc(t, l, "-o", "program", "main.o", "a.one.o", "b.one.o")
	out := tools.Must(t, converter, "check", "--require-notes", "program")
	expect.Lacks(t, out, "duplicate-probe")
	expect.OK(t, os.Remove("program"))

	tools.Must(t, l.Path, "-r", "--gc-sections", "-e", "a", "-o", "a.gc.o", "a.o")
	refuse("ld -r --gc-sections does", "-o", "program", "main.o", "a.gc.o", "b.o")
	gcc(t, l, "-r", "-Wl,--gc-sections", "-Wl,-e,a", "-o", "a.gc.o", "a.o")
	gcc(t, l, "-o", "program", "main.o", "a.gc.o", "b.o")
	expect.Lacks(t, tools.Must(t, converter, "list", "--names", "program"), "unused")
}
