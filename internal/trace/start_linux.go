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
	"sdtconvert/internal/trace/ptrace"
)

// attachProcess traces a process that runs.
func (t *tracer) attachProcess(pid int) error {
	if t.processes[pid] != nil {
		return nil
	}
	if ptrace.ProcessOf(pid) != pid {
		return ptrace.ExplainSeize(pid, unix.ESRCH)
	}
	p := t.newTracee(pid)
	t.processes[pid] = p
	if err := t.seizeAll(p, pid); err != nil {
		return err
	}
	for _, other := range ptrace.Sharers(pid) { // processes that run in its memory, and would meet its breakpoints
		if err := t.seizeAll(p, other); err != nil {
			return fmt.Errorf("process %d shares its memory with process %d, which cannot be traced: %w", pid, other, err)
		}
	}
	if err := p.Open(); err != nil {
		return explainOpen(pid, err)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		found, err := p.Look()
		if err != nil {
			t.Warn(err)
		}
		t.attachSites(p, found)
		switch {
		case t.processes[pid] != p || !p.isLent:
			return nil
		case time.Since(begun) > ptrace.Patience:
			return fmt.Errorf("process %d: a child of vfork runs in its memory: try again when that has ended", pid)
		}
	}
}

// attachChildren traces the children that a process has already, and theirs. One that cannot be traced is left alone.
func (t *tracer) attachChildren(pid int) {
	for _, child := range ptrace.Children(pid) {
		err := t.attachProcess(child)
		if p := t.processes[child]; err != nil && p != nil {
			for tid := range p.Threads {
				ptrace.LetGo(tid)
			}
			t.forget(p)
		}
		if err == nil {
			t.attachChildren(child)
		} else if !ptrace.IsZombie(child) && ptrace.ProcessOf(child) == child {
			t.Warn(err)
		}
	}
}

// seizeAll seizes the threads of a process. A thread that ends before it is seized may leave its ID to another process.
func (t *tracer) seizeAll(p *tracee, pid int) error {
	for found := true; found; {
		found = false
		for _, tid := range ptrace.ThreadIDs(pid) {
			if p.Threads[tid] != nil {
				continue
			}
			if err := ptrace.Seize(tid); err != nil {
				if tid == pid && !ptrace.IsZombie(tid) {
					return ptrace.ExplainSeize(pid, err)
				}
				continue // it has gone
			}
			if ptrace.ProcessOf(tid) != pid {
				ptrace.LetGo(tid)
				continue
			}
			p.Add(tid, false)
			t.owners[tid] = p
			found = true
		}
	}
	if len(p.Threads) == 0 {
		return ptrace.ExplainSeize(pid, unix.ESRCH)
	}
	return nil
}

// explainOpen explains why the memory of a process cannot be opened.
func explainOpen(pid int, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return ptrace.ExplainSeize(pid, unix.EPERM)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		return ptrace.ExplainSeize(pid, unix.ESRCH)
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
		return ptrace.ExplainStart(path, err)
	}
	defer func() {
		if err != nil { // it has not begun
			unix.Kill(pid, unix.SIGKILL)
		}
	}()
	t.child = pid
	if c, ok := ptrace.Wait(pid, true); !ok || !c.Status.Stopped() {
		return ptrace.ExplainEnd(path, c.Status)
	}
	// What the child has asked for does not let the tracer stop threads. So it stops, and is traced in the other way.
	if err := ptrace.Detach(pid, unix.SIGSTOP); err != nil {
		return ptrace.ExplainSeize(pid, err)
	}
	if err := ptrace.Seize(pid); err != nil {
		return ptrace.ExplainSeize(pid, err)
	}
	for {
		c, ok := ptrace.Wait(pid, true)
		if !ok || !c.Status.Stopped() {
			return ptrace.ExplainEnd(path, c.Status)
		}
		if c.Event() == unix.PTRACE_EVENT_STOP {
			break
		}
		ptrace.Resume(pid, c.Status.StopSignal())
	}
	if err := t.watchBeginning(pid); err != nil {
		return err
	}
	unix.Kill(pid, unix.SIGCONT)
	return ptrace.Resume(pid, 0)
}

// watchBeginning has a new program, which is stopped, stop where its dynamic linker has mapped the libraries, and at its first instruction.
func (t *tracer) watchBeginning(pid int) error {
	p := t.newTracee(pid)
	if err := p.Open(); err != nil {
		return err
	}
	th := p.Add(pid, true)
	defer func() { th.Stopped = false }()
	t.processes[pid], t.owners[pid] = p, p
	auxv := ptrace.ReadText(image.ProcessDirectory(pid) + "/auxv")
	if err := p.WatchBeginning([]byte(auxv)); err != nil {
		t.Warn(fmt.Errorf("process %d: %w", pid, err))
	}
	return nil
}
