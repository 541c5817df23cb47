package trace

// New threads, children, and programs that a process becomes.

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/trace/ptrace"
)

// forked handles a new thread or process, which stops before its first instruction.
func (t *tracer) forked(p *tracee, tid, event int) {
	if tid == 0 {
		return // the parent was killed
	}
	c, known := t.unannounced[tid]
	delete(t.unannounced, tid)
	if !known {
		if c, known = ptrace.Wait(tid, true); !known {
			return
		}
	}
	if !c.Status.Stopped() {
		return // killed already
	}
	pid := ptrace.ProcessOf(tid)
	shares, known := ptrace.SharesMemory(p.ID, pid)
	if !known { // the kernel, or a container's filter, does not tell: posix_spawn, system and vfork share it
		shares = event == unix.PTRACE_EVENT_VFORK
	}
	switch {
	case pid != p.ID && shares && !t.Follow && !p.HasBreakpoints():
		t.result.Untraced++
		ptrace.Detach(tid, 0) // so that a setuid program which it becomes keeps its privileges
	case pid == p.ID, shares:
		p.Add(tid, p.Stopping)
		t.owners[tid] = p
		if !p.Stopping {
			ptrace.Resume(tid, 0)
		}
	case t.Follow:
		if err := t.fork(p, pid); err != nil {
			t.Warn(err)
			t.undoIn(p, pid)
			ptrace.Detach(tid, 0)
		}
	default:
		t.result.Untraced++
		t.undoIn(p, pid)
		ptrace.Detach(tid, 0)
	}
}

// fork traces a child, which has what its parent has.
func (t *tracer) fork(p *tracee, pid int) error {
	child := t.newTracee(pid)
	if err := child.Open(); err != nil {
		return err
	}
	child.Armer = p.Fork(child.Process)
	th := child.Add(pid, true)
	t.processes[pid], t.owners[pid] = child, child
	if !ptrace.SharePIDs(p.ID, pid) {
		if err := child.Separate(); err != nil {
			t.Warn(fmt.Errorf("process %d: its events show threads of its parent's PID namespace: %w", pid, err))
		}
	}
	th.Stopped = false
	ptrace.Resume(pid, 0)
	return nil
}

// undoIn puts the code back in a child that is not traced. The memory of one that has made itself undumpable cannot be opened, but written.
func (t *tracer) undoIn(p *tracee, pid int) {
	child := ptrace.New(pid)
	child.Open()
	defer child.Close()
	child.Add(pid, true)
	if err := p.UndoIn(child); err != nil {
		t.Warn(fmt.Errorf("process %d, a child of %d, keeps the tracer's code: %w", pid, p.ID, err))
	}
}

// executed handles a process that has become another program.
func (t *tracer) executed(p *tracee, pid int) {
	for tid := range p.Threads {
		if tid == pid || ptrace.ProcessOf(tid) != p.ID && p.ID == pid {
			delete(p.Threads, tid)
			delete(t.owners, tid)
		}
	}
	if p.ID == pid { // and not a child of vfork
		t.forget(p)
	}
	if !t.Follow {
		t.result.Untraced++
		ptrace.Detach(pid, 0)
		return
	}
	if err := t.watchBeginning(pid); err != nil {
		t.Warn(err)
		ptrace.Detach(pid, 0)
		return
	}
	ptrace.Resume(pid, 0)
}
