package i386

import (
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// variadic are functions of C libraries that take variable arguments, whose callers pop them with
// -mrtd too. _FORTIFY_SOURCE has other names for some of them.
var variadic = []string{
	"asprintf", "dprintf", "err", "errx", "error", "error_at_line", "execl", "execle", "execlp", "fcntl", "fcntl64", "fprintf", "fscanf", "fwprintf", "fwscanf", "ioctl",
	"open", "open64", "openat", "openat64", "prctl", "printf", "printk", "_printk", "ptrace", "scanf", "semctl", "snprintf", "sprintf", "sscanf",
	"swprintf", "swscanf", "syscall", "syslog", "ulimit", "warn", "warnx", "wprintf", "wscanf",
}

// isVariadic reports whether a symbol is one of these.
func isVariadic(symbol string) bool {
	if plainName, ok := strings.CutPrefix(symbol, "__isoc99_"); ok {
		symbol = plainName
	}
	if plainName, ok := strings.CutPrefix(symbol, "__"); ok {
		if name, fortified := strings.CutSuffix(plainName, "_chk"); fortified {
			symbol = name
		}
	}
	return slices.Contains(variadic, symbol)
}

// learnCallees finds out what the callees of a function's calls pop, as far as their names or their
// code tell.
func (f *function) learnCallees(frames arch.Frames) {
	for i := range f.insts {
		in := &f.insts[i]
		if _, direct := in.Args[0].(x86asm.Rel); in.Op != x86asm.CALL || !direct || isOwnAddress(in) {
			continue
		}
		symbol, code := frames.Callee(f.start + uint64(in.at+in.Len-wordLen))
		if isVariadic(symbol) {
			in.pops, in.popsKnown = exactly(0), true
		} else if popped, returns := returned(decode(code)); returns {
			in.pops, in.popsKnown = exactly(popped), true
		}
	}
}
