package check

import (
	"debug/elf"

	"sdtconvert/internal/input"
)

// KernelTracepoint is a rule for objects and modules of FreeBSD that were compiled with the
// kernel's own sys/sdt.h. Its tracepoints call no stub, so no conversion meets them.
var KernelTracepoint = &Rule{"kernel-tracepoint", Error, "a FreeBSD object has the tracepoints of the kernel's header",
	"The compiler has found the kernel's sys/sdt.h first. Its tracepoints call no stubs, so they have no records.",
	"Put the -I of sdtconvert's header into CC, so that the compiler searches that directory first for every file."}

// kernelTracepoints applies KernelTracepoint.
func (c *fileChecker) kernelTracepoints() error {
	if c.OSABI() != elf.ELFOSABI_FREEBSD {
		return nil
	}
	found, err := input.HasKernelTracepoints(c.Object.Object)
	if err == nil && found {
		c.addWhole(KernelTracepoint, "", "compiled with the kernel's own sys/sdt.h, whose tracepoints call sdt_probe_func; give the compiler the -I of sdtconvert's header first, in CC")
	}
	return err
}
