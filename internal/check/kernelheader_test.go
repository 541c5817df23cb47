package check_test

import "testing"

// An object that was compiled with the header of FreeBSD's kernel, and what is linked from
// it. The kernel, which defines the hook, and a provider, which sets it, are clean.
func TestKernelTracepoint(t *testing.T) {
	b := newBuild(t, combinations[0])
	const hook = "void (*sdt_probe_func)(unsigned, long)"
	b.write("arc.c", "extern "+hook+";\nvoid arc(long n) { sdt_probe_func(7, n); }\n")
	b.write("kernel.c", "void sdt_probe_stub(unsigned id, long n) {}\n"+hook+" = sdt_probe_stub;\n")
	b.write("provider.c", "extern "+hook+";\nvoid sdt_probe_stub(unsigned, long);\nvoid unload(void) { sdt_probe_func = sdt_probe_stub; }\n")
	for _, source := range []string{"arc", "kernel", "provider"} {
		b.compile(source+".o", source+".c", "-Wno-missing-prototypes")
		b.clean(source + ".o") // of no system
		b.brandFreeBSD(source + ".o")
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
