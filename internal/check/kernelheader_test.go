package check_test

import (
	"fmt"
	"testing"
)

// An object that was compiled with the header of FreeBSD's kernel, and what is linked from
// it. The kernel, which defines the hook, and a provider, which sets it, are clean.
func TestKernelTracepoint(t *testing.T) {
	b := newBuild(t, combinations[0])
	const hook = "void (*sdt_probe_func)(unsigned, long)"
	for name, text := range map[string]string{
		"arc":      "extern " + hook + ";\nvoid arc(long n) { SDT_PROBE1(arc, , , hit, n); sdt_probe_func(7, n); }\n",
		"kernel":   "void sdt_probe_stub(unsigned id, long n) { SDT_PROBE1(kernel, , , hit, n); }\n" + hook + " = sdt_probe_stub;\n",
		"provider": "extern " + hook + ";\nvoid sdt_probe_stub(unsigned, long);\nvoid unload(long n) { SDT_PROBE1(provider, , , hit, n); sdt_probe_func = sdt_probe_stub; }\n",
	} {
		b.write(name+".c", fmt.Sprintf("#include \"sdt.h\"\nSDT_PROVIDER_DEFINE(%s);\nSDT_PROBE_DEFINE1(%[1]s, , , hit, \"long\");\n%s", name, text))
		b.compile(name+".o", name+".c")
		b.convert(name + ".o")
		b.clean(name + ".o") // of no system
		b.brandFreeBSD(name + ".o")
	}
	b.finds([]string{"kernel-tracepoint arc.o  "}, "arc.o", "kernel.o", "provider.o")
	b.clean("--allow=kernel-tracepoint", "arc.o")

	l := b.machine.Linker("lld")
	b.link(l, "arc.so", "arc.o", "-shared", "-nostdlib") // as arm64 has its modules
	b.brandFreeBSD("arc.so")
	b.finds([]string{"kernel-tracepoint arc.so  "}, "arc.so")
	b.link(l, "zfs.ko", "arc.o", "-r", "-nostdlib")
	b.brandFreeBSD("zfs.ko")
	b.finds([]string{"kernel-tracepoint zfs.ko  "}, "zfs.ko")
	b.link(l, "kernel", "arc.o", "kernel.o", "-shared", "-nostdlib")
	b.brandFreeBSD("kernel")
	b.clean("kernel")
}
