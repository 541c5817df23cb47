package ptrace

// What forbids tracing, and what to do.

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
)

// ExplainStart says why a program cannot be started traced.
func ExplainStart(path string, err error) error {
	tracer := Status(os.Getpid(), "TracerPid")
	switch {
	case errors.Is(err, unix.EPERM) && tracer != "" && tracer != "0":
		return fmt.Errorf("%s: %s traces sdtconvert and what it starts: run it without", path, processName(tracer))
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EACCES) && securityProfile() != "":
		return explainDenied(path, 0, err)
	}
	return fmt.Errorf("%s: cannot be started: %w", path, err)
}

// ExplainEnd says how a program has ended that has not begun.
func ExplainEnd(path string, status unix.WaitStatus) error {
	switch {
	case status.Signaled() && status.Signal() == unix.SIGSYS:
		return fmt.Errorf("%s: killed by a seccomp filter, which forbids ptrace: allow it in the profile of the container or service", path)
	case status.Signaled():
		return fmt.Errorf("%s: killed by %s before its first instruction", path, unix.SignalName(status.Signal()))
	}
	return fmt.Errorf("%s: has ended before its first instruction", path)
}

// ExplainSeize says why a process cannot be traced, and what to do.
func ExplainSeize(pid int, err error) error {
	name := fmt.Sprintf("process %d", pid)
	tracer := Status(pid, "TracerPid")
	switch exists := unix.Kill(pid, 0); {
	case tracer != "" && tracer != "0":
		return fmt.Errorf("%s: %s traces it already: end that first", name, processName(tracer))
	case IsZombie(pid):
		return fmt.Errorf("%s: has ended, and waits for its parent to notice", name)
	case errors.Is(err, unix.ESRCH) && ProcessOf(pid) == pid:
		return fmt.Errorf("%s: is a thread of the kernel", name)
	case errors.Is(err, unix.ESRCH) && (exists == nil || errors.Is(exists, unix.EPERM)):
		return fmt.Errorf("%s: is hidden in /proc, or is a thread: run as its user or as root", name)
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("%s: no such process", name)
	}
	return explainDenied(name, pid, err)
}

// processName returns how messages call a process.
func processName(pid string) string {
	return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(ReadText("/proc/"+pid+"/comm")))
}

// explainDenied says what forbids ptrace, of a process or, with 0, of a program that is started.
func explainDenied(name string, pid int, err error) error {
	if errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%s: the kernel has no ptrace: trace outside of the emulator (qemu-user) or sandbox", name)
	}
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%s: ptrace: %w", name, err)
	}
	user := strconv.Itoa(os.Geteuid())
	owner := user
	if pid != 0 {
		owner = strings.Fields(Status(pid, "Uid") + " ?")[0]
	}
	scope := strings.TrimSpace(ReadText("/proc/sys/kernel/yama/ptrace_scope"))
	switch {
	case scope == "3":
		return fmt.Errorf("%s: Yama forbids all tracing until the next boot (kernel.yama.ptrace_scope is 3): set kernel.yama.ptrace_scope=1 in /etc/sysctl.conf and reboot", name)
	case owner != user && user != "0":
		return fmt.Errorf("%s: belongs to user %s: run sdtconvert trace as that user or as root", name, owner)
	case scope == "2" && !mayTraceAll():
		return fmt.Errorf("%s: Yama forbids it (kernel.yama.ptrace_scope is 2): run as root", name)
	case Status(os.Getpid(), "Seccomp") == "2" && (pid == 0 || user == "0"):
		return fmt.Errorf("%s: the seccomp filter of this container or service forbids ptrace: give the container CAP_SYS_PTRACE, or allow ptrace in the profile", name)
	case securityProfile() != "":
		return fmt.Errorf("%s: the security profile %q forbids ptrace: allow it there", name, securityProfile())
	case pid != 0 && !sharesUsers(pid):
		return fmt.Errorf("%s: is in another user namespace: trace it from outside of both, or from inside", name)
	case user == "0" && !mayTraceAll():
		return fmt.Errorf("%s: root has no CAP_SYS_PTRACE here: give it to the container", name)
	case pid != 0 && isUndumpable(pid, owner):
		return fmt.Errorf("%s: is setuid, its file cannot be read, or it has made itself undumpable (prctl PR_SET_DUMPABLE): run as root", name)
	case scope == "1" && pid != 0:
		return fmt.Errorf("%s: Yama forbids it (kernel.yama.ptrace_scope is 1): start the program with sdtconvert trace -- PROGRAM, or run as root", name)
	}
	return fmt.Errorf("%s: %w: a security module or sandbox forbids ptrace: allow it there", name, err)
}

// mayTraceAll reports whether the tracer has CAP_SYS_PTRACE.
func mayTraceAll() bool {
	effective, err := strconv.ParseUint(Status(os.Getpid(), "CapEff"), 16, 64)
	return err == nil && effective&(1<<unix.CAP_SYS_PTRACE) != 0
}

// securityProfile returns the profile of a security module that confines the tracer, "" for none.
func securityProfile() string {
	profile := strings.Trim(ReadText("/proc/self/attr/current"), "\x00\n ")
	if profile == "unconfined" || profile == "kernel" || strings.Contains(profile, "unconfined_t:") {
		return ""
	}
	return profile
}

// sharesUsers reports whether a process is in the tracer's user namespace, as far as that can be told.
func sharesUsers(pid int) bool {
	own, err1 := os.Readlink("/proc/self/ns/user")
	its, err2 := os.Readlink(image.ProcessDirectory(pid) + "/ns/user")
	return err1 != nil || err2 != nil || own == its
}

// isUndumpable reports whether the kernel gives a process's files in /proc to root instead of its owner.
func isUndumpable(pid int, owner string) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/status", pid)) // the directory is always its owner's
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && strconv.Itoa(int(stat.Uid)) != owner
}
