package ld

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
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

var tracedCall = regexp.MustCompile(`(?m)^(\d+) +(\w+)\(`)

// ownTemporary is a file that lld or mold renames to the output, and leaves behind if it is killed.
var ownTemporary = regexp.MustCompile(`\.mold-\w+|\.out\.so\.\d+|out\.so\.tmp\w+`)

// callsOf returns how often a thread of a traced program makes each call at most.
func callsOf(log string) map[string]int {
	most, count := map[string]int{}, map[string]int{}
	for _, m := range tracedCall.FindAllStringSubmatch(log, -1) {
		count[m[0]]++
		most[m[2]] = max(most[m[2]], count[m[0]])
	}
	return most
}

// A link that is killed at any of its system calls, in the program or in the linker, leaves no file but the
// output, and a link that ends well is whole.
func TestKillAtEachCallOfALink(t *testing.T) {
	tools.Need(t, "strace")
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c")
		if err := os.WriteFile("blob.s", []byte(".data\n.fill 34000000\n.section .note.GNU-stack\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		// Converted bytes of this size are in a file without a name.
		tools.Must(t, "gcc", "-c", "blob.s")
		tools.Must(t, "ld", "-r", "-o", "large.o", "sub/second.o", "blob.o")
		check := untouched(t, "main.o", "large.o")
		before := entries(t)
		link := func(inject ...string) (ok bool, log string) {
			args := append([]string{"-f", "-qq", "-o", os.Getenv("TMPDIR") + "/../log"}, inject...)
			cmd := exec.Command("strace", append(args, converter, "ld", "-j", "2", "--linker", l.Path, "--", "-m", "elf_x86_64", "-shared", "-o", "out.so", "main.o", "large.o")...)
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // few threads: strace counts calls of each by itself
			err := cmd.Run()
			return err == nil, read(t, os.Getenv("TMPDIR")+"/../log")
		}
		ok, log := link()
		if !ok {
			t.Fatal(log)
		}
		type place struct {
			call string
			when int // of the thread's calls of that name
		}
		var places []place
		calls := callsOf(log)
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			for when := range calls[name] {
				places = append(places, place{name, when + 1})
			}
		}
		rand.New(rand.NewPCG(30, uint64(len(l.Name)))).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		killed := 0
		for _, at := range places[:min(len(places), tools.Cases(t, 10))] {
			os.Remove("out.so")
			ok, _ := link("-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", at.call, at.when))
			if ok {
				expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "%v: not converted", at)
			} else {
				killed++
			}
			os.Remove("out.so")
			removeMatching(t, ownTemporary)
			if left := entries(t); left != before {
				t.Fatalf("%v: there were %s, and are %s", at, before, left)
			}
			if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
				t.Fatalf("%v: left behind: %v, %v", at, left, err)
			}
		}
		check()
		if killed == 0 {
			t.Errorf("not killed at any of %d calls", len(places))
		}
		t.Logf("killed at %d of %d calls", killed, len(places))
	})
}

// entries returns the names of the files in this directory.
func entries(t *testing.T) string {
	t.Helper()
	var names []string
	for _, e := range expect.Value(os.ReadDir("."))(t) {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// removeMatching removes files of this directory.
func removeMatching(t *testing.T, names *regexp.Regexp) {
	t.Helper()
	for _, e := range expect.Value(os.ReadDir("."))(t) {
		if names.MatchString(e.Name()) {
			expect.OK(t, os.Remove(e.Name()))
		}
	}
}
