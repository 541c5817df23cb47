package ld

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// without runs a program below a filter in which a system call fails, as the profile of a container
// has it.
func without(t *testing.T, call uint32, errno unix.Errno, name string, args ...string) (string, error) {
	t.Helper()
	const load, equal, ret, allow = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_RET, 0x7fff0000
	program := []unix.SockFilter{
		{Code: load, K: 0}, {Code: equal, K: call, Jf: 1}, {Code: ret, K: 0x00050000 | uint32(errno)}, {Code: ret, K: allow},
	}
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocks: the filter is the thread's
		filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, 2 /* SECCOMP_MODE_FILTER */, uintptr(unsafe.Pointer(&filter)), 0, 0)
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		out, err := exec.Command(name, args...).CombinedOutput()
		done <- result{out, err}
	}()
	r := <-done
	return string(r.out), r.err
}

// What a host forbids is named, with what to do; a link without probes does not need it, and some calls
// have others in their place.
func TestForbiddenCalls(t *testing.T) {
	l := linker("bfd")
	tools.Need(t, "gcc", l.Path)
	enter(t, l.Path)
	compile(t, "sub/second.c", "plain.c")
	link := func(call uint32, object string) (string, error) {
		return without(t, call, unix.EPERM, converter, "ld", "--linker", l.Path, "--", "-shared", "-o", "out.so", object)
	}
	for call, works := range map[uint32]bool{unix.SYS_SECCOMP: false, unix.SYS_PROCESS_VM_READV: true, unix.SYS_PTRACE: true, unix.SYS_OPENAT2: true} {
		out, err := link(call, "plain.o")
		expect.OK(t, err)
		expect.Equal(t, "", out)
		out, err = link(call, "sub/second.o")
		if works {
			expect.OK(t, err)
			expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "not converted")
			continue
		}
		const cures = "so link with --in-place, or compile with sdtconvert cc\n"
		if exitCode(err) != 1 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "is forbidden") || !strings.HasSuffix(out, cures) {
			t.Errorf("%d: %s, %v", call, out, err)
		}
	}
}

// The link of a link is the outer one's: both are right.
func TestLinkWithinLink(t *testing.T) {
	l := linker("bfd")
	tools.Need(t, "gcc", l.Path)
	enter(t, l.Path)
	compile(t, "sub/second.c", "sub/third.c")
	script := program(t, "outer-ld", "#!/bin/sh\nset -e\n'"+converter+"' ld --linker '"+l.Path+"' -- -r -o inner.o sub/third.o\nexec '"+l.Path+"' \"$@\"\n")
	tools.Must(t, converter, "ld", "--linker", script, "--", "-shared", "-o", "out.so", "sub/second.o")
	for _, output := range []string{"out.so", "inner.o"} {
		expect.Lacks(t, tools.Output(t, "nm", noPlugins, output), "__dtrace_probe", "%s: not converted", output)
	}
}

// A tracer of system calls sees the same link.
func TestTracedLink(t *testing.T) {
	l := linker("bfd")
	tools.Need(t, "gcc", l.Path, "strace")
	enter(t, l.Path)
	compile(t, "sub/second.c")
	tools.Must(t, "strace", "-f", "-o", "trace", converter, "ld", "--linker", l.Path, "--", "-shared", "-o", "out.so", "sub/second.o")
	expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "not converted")
}
