package ld

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// A FreeBSD kernel asks for the bounds of its records by name, and nothing in it refers
// to them: they are in a final link in the freebsd layout, whether the objects were
// converted before or in the link, and in no other link.
func TestBounds(t *testing.T) {
	const source = "void __dtrace_probe_tcp___send(int);\nint test(void);\n" +
		"void _start(void)\n{\n\t__dtrace_probe_tcp___send(1);\n\ttest();\n}\nint test(void) { return 0; }\n"
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "kernel.c", source)
		tools.Must(t, "gcc", "-O2", "-fno-pic", "-c", "kernel.c")
		tools.Must(t, "gcc", "-O2", "-fno-pic", "-c", "-o", "before.o", "kernel.c")
		tools.Must(t, converter, "--layout", "freebsd", "before.o")
		tools.Must(t, converter, "stubs", "-o", "stubs.o", "before.o")
		for _, link := range []struct {
			flags, object, more string
			has                 bool
		}{
			{"--layout=freebsd", "kernel.o", "", true},
			{"--layout=freebsd", "before.o", "", true},
			{"--layout=freebsd", "before.o", "stubs.o", true}, // which needs nothing else
			{"--layout=freebsd", "kernel.o", "-r", false},
			{"--layout=pairs", "kernel.o", "", false},
		} {
			args := append([]string{link.flags, "--", "-o", "kernel", link.object}, strings.Fields(link.more)...)
			if out, err := wrapped(l, args...); err != nil {
				t.Fatal(args, err, out)
			}
			symbols := tools.Must(t, "readelf", "-sW", "kernel")
			for _, bound := range []string{"start", "stop"} {
				name := " __" + bound + "_set_sdt_instances_set\n"
				expect.Equal(t, link.has, strings.Contains(symbols, name), "%v: has %s:\n%s", args, name, symbols)
			}
			expect.Lacks(t, symbols, "UND __s", "%v: a bound is undefined", args)
		}
	})
}
