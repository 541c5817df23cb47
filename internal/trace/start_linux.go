package trace

// How tracing of a process begins.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
)

// attachProcess traces a process that runs.
func (t *tracer) attachProcess(pid int) error {
	if processOf(pid) != pid {
		return explainSeize(pid, unix.ESRCH)
	}
	if processStatus(pid, "Seccomp") == "1" {
		return fmt.Errorf("process %d: strict seccomp would kill it for what the tracer has it do: it cannot be traced", pid)
	}
	p, err := newTracee(t, pid)
	if err != nil {
		return explainOpen(pid, err)
	}
	t.processes[pid] = p
	for found := true; found; {
		found = false
		for _, tid := range threadIDs(pid) {
			if p.threads[tid] != nil {
				continue
			}
			if err := seize(tid); err != nil {
				if tid == pid && !isZombie(tid) {
					delete(t.processes, pid)
					return explainSeize(pid, err)
				}
				continue // it has gone
			}
			p.threads[tid], t.owners[tid] = &thread{tid: tid}, p
			found = true
		}
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		t.attach(p)
		switch {
		case t.processes[pid] != p || !p.isLent:
			return nil
		case time.Since(begun) > stopPatience:
			return fmt.Errorf("process %d: a child of vfork runs in its memory: try again when that has ended", pid)
		}
	}
}

// explainOpen explains why the memory of a process cannot be opened.
func explainOpen(pid int, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return explainSeize(pid, unix.EPERM)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		return explainSeize(pid, unix.ESRCH)
	}
	return err
}

// startProgram starts the program, traced from its first instruction on.
func (t *tracer) startProgram() (err error) {
	path, err := exec.LookPath(t.Program[0])
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec(path, t.Program, &syscall.ProcAttr{Env: t.Environ, Files: t.Files, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return explainStart(path, err)
	}
	defer func() {
		if err != nil { // it has not begun
			unix.Kill(pid, unix.SIGKILL)
		}
	}()
	t.child = pid
	if c, ok := wait(pid, true); !ok || !c.status.Stopped() {
		return explainEnd(path, c.status)
	}
	// What the child has asked for does not let the tracer stop threads. So it stops, and is traced in the other way.
	if err := detach(pid, unix.SIGSTOP); err != nil {
		return explainSeize(pid, err)
	}
	if err := seize(pid); err != nil {
		return explainSeize(pid, err)
	}
	for {
		c, ok := wait(pid, true)
		if !ok || !c.status.Stopped() {
			return explainEnd(path, c.status)
		}
		if c.event() == unix.PTRACE_EVENT_STOP {
			break
		}
		resume(pid, c.status.StopSignal())
	}
	return t.watchBeginning(pid)
}

// watchBeginning has a new program run to its first instruction.
func (t *tracer) watchBeginning(pid int) error {
	p, err := newTracee(t, pid)
	if err != nil {
		return err
	}
	t.processes[pid], t.owners[pid] = p, p
	p.threads[pid] = &thread{tid: pid, stopped: true}
	process, err := image.OpenProcess(pid)
	if err == nil {
		defer process.Close()
		err = p.setMachine(process)
	}
	if err != nil {
		t.warn(err)
	} else if entry, ok := p.entryPoint(); ok {
		p.breakAt(entry)
	}
	if pid == t.child {
		unix.Kill(pid, unix.SIGCONT)
	}
	resume(pid, 0)
	p.threads[pid].stopped = false
	return nil
}

// breakAt sets a breakpoint at the first instruction of the program.
func (p *tracee) breakAt(entry uint64) {
	traits := p.machine.Traits()
	trap := traits.Breakpoints[0]
	if entry&traits.Mode != 0 {
		trap = traits.Breakpoints[len(traits.Breakpoints)-1] // of Thumb
	}
	entry &^= traits.Mode
	old := make([]byte, len(trap))
	if p.read(entry, old) == nil && p.write(entry, trap) == nil {
		p.entry = &armedSite{at: entry, old: old, new: trap}
	}
}
