package input

import "sdtconvert/elfreloc"

// Names of FreeBSD's kernel: the variable that tracepoints of its own sys/sdt.h call
// through, and the function that a provider puts into it when the provider is unloaded.
const (
	kernelProbeFunc = "sdt_probe_func"
	kernelProbeStub = "sdt_probe_stub"
)

// HasKernelTracepoints reports whether an object or a module calls FreeBSD's probes as the
// kernel's own header of versions 9 to 14 does, in place of stubs. Providers, which set the
// variable of those calls, do not count, nor does the kernel, which defines it.
func HasKernelTracepoints(o *elfreloc.Object) (bool, error) {
	if found, err := o.NamesContain([][]byte{[]byte(kernelProbeFunc)}); err != nil || !found {
		return false, err
	}
	symbols, err := o.Symbols()
	if err != nil {
		return false, err
	}
	found := false
	for i := range symbols.Len() {
		switch symbols.Name(i) {
		case kernelProbeStub:
			return false, nil
		case kernelProbeFunc:
			found = symbols.At(i).Section == 0
		}
	}
	return found, nil
}
