package ld

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// Objects that were compiled with the header of FreeBSD's kernel have nothing to convert,
// and a link of a kernel or a module says so, whether it converts others or not.
func TestKernelHeader(t *testing.T) {
	const hook = "extern void (*sdt_probe_func)(unsigned, long);\n"
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		for name, source := range map[string]string{
			"arc":    hook + "void arc(long n) { sdt_probe_func(7, n); }\n",
			"dmu":    hook + "void dmu(long n) { sdt_probe_func(8, n); }\n",
			"tcp":    "void __dtrace_probe_tcp___send(int);\nvoid _start(void) { __dtrace_probe_tcp___send(1); }\n",
			"kernel": "void sdt_probe_stub(unsigned id, long n) {}\nvoid (*sdt_probe_func)(unsigned, long) = sdt_probe_stub;\n",
		} {
			disk.Write(t, name+".c", source)
			tools.Must(t, "gcc", "-O2", "-fno-pic", "-c", name+".c")
		}
		for _, link := range []struct{ layout, objects, want string }{
			{"freebsd", "tcp.o arc.o dmu.o kernel.o", "arc.o and 1 more: compiled with the kernel's own sys/sdt.h"},
			{"freebsd", "-r tcp.o dmu.o", "dmu.o: compiled with the kernel's own sys/sdt.h"},
			{"freebsd", "-r dmu.o", "dmu.o: compiled with the kernel's own sys/sdt.h"},
			{"freebsd", "tcp.o kernel.o", ""},
			{"pairs", "tcp.o arc.o kernel.o", ""},
		} {
			args := append([]string{"--layout=" + link.layout, "--", "-o", "kernel"}, strings.Fields(link.objects)...)
			out, err := wrapped(l, args...)
			if err != nil {
				t.Fatal(args, err, out)
			}
			expect.Equal(t, link.want != "", strings.Contains(out, "sdt_probe_func"), "%v: warns:\n%s", args, out)
			expect.Contains(t, out, link.want, "%v", args)
		}
	})
}
