package ld

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// without runs a program below a filter in which system calls fail, as the profile of a container
// has it.
func without(t *testing.T, calls map[uint32]unix.Errno, name string, args ...string) (string, error) {
	t.Helper()
	const load, equal, ret, allow = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_RET, 0x7fff0000
	program := []unix.SockFilter{{Code: load, K: 0}}
	for call, errno := range calls {
		program = append(program, unix.SockFilter{Code: equal, K: call, Jf: 1}, unix.SockFilter{Code: ret, K: 0x00050000 | uint32(errno)})
	}
	program = append(program, unix.SockFilter{Code: ret, K: allow})
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
		return without(t, map[uint32]unix.Errno{call: unix.EPERM}, converter, "ld", "--linker", l.Path, "--", "-shared", "-o", "out.so", object)
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

// The default profiles of containers, for a process without capabilities, answer what they forbid with
// EPERM, or with ENOSYS, for which libraries take an older call.
func TestProfilesOfContainers(t *testing.T) {
	forbidden := []uint32{
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PTRACE,
		unix.SYS_PIDFD_GETFD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
		unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_FUTEX_WAITV, unix.SYS_MEMFD_SECRET, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_VMSPLICE,
	}
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "sub/second.c")
		for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
			calls := map[uint32]unix.Errno{unix.SYS_CLONE3: unix.ENOSYS}
			for _, call := range forbidden {
				calls[call] = errno
			}
			if out, err := without(t, calls, converter, "ld", "--linker", l.Path, "--", "-shared", "-o", "out.so", "sub/second.o"); err != nil {
				t.Fatalf("%v: %s, %v", errno, out, err)
			}
			expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "%v: not converted", errno)
		}
	})
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
