package trace

// New threads, children, and programs that a process becomes.

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
)

// forked handles a new thread or process, which stops before its first instruction.
func (t *tracer) forked(p *tracee, tid, event int) {
	c, known := t.early[tid]
	delete(t.early, tid)
	if !known {
		if c, known = wait(tid, true); !known {
			return
		}
	}
	if !c.status.Stopped() {
		return // killed already
	}
	pid := processOf(tid)
	shares, known := sharesMemory(p.pid, pid)
	if !known { // the kernel, or a container's filter, does not tell: posix_spawn, system and vfork share it
		shares = event == unix.PTRACE_EVENT_VFORK
	}
	switch {
	case pid != p.pid && shares && !t.Follow && len(p.traps) == 0:
		detach(tid, 0) // so that a setuid program which it becomes keeps its privileges
	case pid == p.pid, shares:
		th := &thread{tid: tid, stopped: p.stopping}
		p.threads[tid], t.owners[tid] = th, p
		if !p.stopping {
			resume(tid, 0)
		}
	case t.Follow:
		if err := p.fork(pid); err != nil {
			t.warn(err)
			detach(tid, 0)
		}
	default:
		p.undoIn(pid)
		detach(tid, 0)
	}
}

// fork makes the tracee of a child, which has what its parent has.
func (p *tracee) fork(pid int) error {
	child, err := newTracee(p.t, pid)
	if err != nil {
		return err
	}
	own := *child
	*child = *p
	child.pid, child.memory, child.filters, child.sharesPIDs = pid, own.memory, own.filters, own.sharesPIDs
	child.stopping, child.cachedSpace = false, nil
	child.modules, child.traps, child.semaphores = maps.Clone(p.modules), maps.Clone(p.traps), maps.Clone(p.semaphores)
	child.hops, child.sharedInUse, child.rings = maps.Clone(p.hops), maps.Clone(p.sharedInUse), maps.Clone(p.rings)
	child.armed, child.ledger, child.counters = slices.Clone(p.armed), slices.Clone(p.ledger), slices.Clone(p.counters)
	child.tables, child.areas, child.handler = slices.Clone(p.tables), nil, p.handler.clone()
	for _, a := range p.areas {
		copied := *a
		child.areas = append(child.areas, &copied)
	}
	child.threads = map[int]*thread{pid: {tid: pid}}
	p.t.collector.share(slices.Collect(maps.Values(child.rings)), child.tables)
	p.t.processes[pid], p.t.owners[pid] = child, child
	resume(pid, 0)
	return nil
}

// undoIn puts the code back in a child that is not traced.
func (p *tracee) undoIn(pid int) {
	memory, err := os.OpenFile(image.ProcessDirectory(pid)+"/mem", os.O_RDWR, 0)
	if err != nil { // as of one that has made itself undumpable
		for _, s := range slices.Backward(p.armed) {
			if _, err := unix.PtracePokeText(pid, uintptr(s.at), s.old); err != nil {
				p.t.warn(fmt.Errorf("process %d, a child of %d, keeps the tracer's code: %w", pid, p.pid, err))
				return
			}
		}
		return
	}
	defer memory.Close()
	child := &tracee{t: p.t, pid: pid, memory: memory, order: p.order, threads: map[int]*thread{pid: {tid: pid, stopped: true}}, armed: p.armed}
	child.restore()
	if p.entry != nil {
		child.write(p.entry.at, p.entry.old)
	}
	for address := range p.semaphores {
		child.addToSemaphore(address, -1)
	}
}

// executed handles a process that has become another program.
func (t *tracer) executed(p *tracee, pid int) {
	for tid := range p.threads {
		if tid == pid || processOf(tid) != p.pid && p.pid == pid {
			delete(p.threads, tid)
			delete(t.owners, tid)
		}
	}
	if p.pid == pid { // and not a child of vfork
		for tid := range p.threads {
			delete(t.owners, tid)
		}
		delete(t.processes, pid)
		t.release(p)
	}
	if !t.Follow {
		detach(pid, 0)
		return
	}
	if err := t.watchBeginning(pid); err != nil {
		t.warn(err)
		detach(pid, 0)
	}
}
