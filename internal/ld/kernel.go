package ld

import (
	"fmt"

	"sdtconvert/internal/message"
)

// warnOfKernelTracepoints warns of objects of FreeBSD's kernel that were compiled with its
// own sys/sdt.h, as some of its makefiles' rules do if they can. Their tracepoints call no
// stub, so the link would leave them out without a word.
func (l *link) warnOfKernelTracepoints(inputs []*linkInput) {
	first, count := "", 0
	for _, in := range inputs {
		switch {
		case in == nil || !in.kernelTracepoints:
		case first == "":
			first = in.name
		default:
			count++
		}
	}
	if first == "" {
		return
	}
	if count > 0 {
		first += fmt.Sprintf(" and %d more", count)
	}
	message.Warning(l.Stderr, fmt.Errorf("%s: compiled with the kernel's own sys/sdt.h, whose tracepoints call sdt_probe_func and are not converted; give the compiler the -I of sdtconvert's header first, in CC", first))
}
