package trace

// A seccomp filter may kill a program for a system call that it does not make by itself. So the tracer has a filtered program make
// none, unless it knows that the filters allow what jumps need: as root it can read them; and if it has the same filters, as in a container,
// it tries the calls.

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The results of filters that let a call pass (seccomp(2)).
const (
	seccompAllow = 0x7fff0000
	seccompLog   = 0x7ffc0000
)

// seccompState returns what changes if a thread gets another filter.
func seccompState(tid int) string {
	mode := processStatus(tid, "Seccomp")
	if mode == "" || mode == "0" {
		return ""
	}
	return mode + " " + processStatus(tid, "Seccomp_filters")
}

// filterStates returns the states of the threads of a process that have filters.
func filterStates(pid int) (states []string) {
	for _, tid := range threadIDs(pid) {
		if state := seccompState(tid); state != "" && !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	return states
}

// callsForbidden returns an error if a filter of a stopped process may forbid the tracer's calls; else whether trampolines may copy texts.
func (p *tracee) callsForbidden() (canCopy bool, err error) {
	if state := seccompState(p.pid); state != "" && !slices.Contains(p.filters, state) {
		p.filters = append(p.filters, state)
	}
	if len(p.filters) == 0 {
		return true, nil
	}
	filters, known := p.readFilters()
	allowed := known && p.allow(filters, p.armingCalls())
	canCopy = known && p.allow(filters, [][]uint64{{p.calls.ProcessVMReadv, uint64(p.pid), somewhere, 1, somewhere, 1, 0}})
	if !known && p.hasOwnFilters() {
		allowed, canCopy = ownCallsWork(), ownCopiesWork()
	}
	switch {
	case allowed:
		return canCopy, nil
	case known:
		return false, errors.New("its seccomp filter forbids the system calls that jumps need")
	}
	return false, errors.New("its seccomp filter may forbid the system calls that jumps need: as root, sdtconvert can tell")
}

// hasOwnFilters reports whether the tracer has the same filters.
func (p *tracee) hasOwnFilters() bool {
	own := seccompState(os.Getpid())
	return !slices.ContainsFunc(p.filters, func(state string) bool { return state != own })
}

// readFilters reads the filters of all threads. known is false if the tracer may not.
func (p *tracee) readFilters() (filters []*bpf.VM, known bool) {
	for _, th := range p.threads {
		if !th.stopped {
			continue
		}
		for n := uintptr(0); ; n++ {
			filter, err := readFilter(th.tid, n)
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) && n == 0 { // the last, or a thread without filters
				break
			}
			if err != nil {
				return nil, false
			}
			filters = append(filters, filter)
		}
	}
	return filters, true
}

// allow reports whether filters allow calls: their numbers and arguments.
func (p *tracee) allow(filters []*bpf.VM, calls [][]uint64) bool {
	return !slices.ContainsFunc(filters, func(filter *bpf.VM) bool { return !p.allows(filter, calls) })
}

// readFilter reads one filter of a thread, the newest first.
func readFilter(tid int, n uintptr) (*bpf.VM, error) {
	const getFilter = 0x420c // PTRACE_SECCOMP_GET_FILTER
	var instructions [4096]unix.SockFilter
	count, _, errno := unix.Syscall6(unix.SYS_PTRACE, getFilter, uintptr(tid), n, uintptr(unsafe.Pointer(&instructions)), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	var program []bpf.Instruction
	for _, i := range instructions[:count] {
		program = append(program, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K}.Disassemble())
	}
	return bpf.NewVM(program)
}

// somewhere stands for addresses.
const somewhere = 0x7f0000000000

// armingCalls returns the calls that the tracer has a program make, and that all trampolines may make.
func (p *tracee) armingCalls() [][]uint64 {
	const fd = 3
	c := p.calls
	return [][]uint64{
		{c.Mmap, somewhere, areaSize, unix.PROT_READ | unix.PROT_EXEC, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0},
		{c.Mmap, 0, tableLength, unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, ^uint64(0), 0},
		{c.Mmap, 0, ringBytes, unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED, fd, 0},
		{c.Mmap, somewhere, ringBytes, unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_FIXED, fd, 0},
		{c.MemfdCreate, somewhere, unix.MFD_CLOEXEC},
		{c.Close, fd},
		{c.Sigaction, uint64(unix.SIGTRAP), 0, somewhere, wordBytes},
		{c.Sigreturn},
		{c.Gettid},
	}
}

// allows reports whether a filter allows calls.
func (p *tracee) allows(filter *bpf.VM, calls [][]uint64) bool {
	for _, call := range calls {
		// struct seccomp_data: the number, the machine, the address, six arguments. The virtual machine reads big-endian words.
		words := []uint32{uint32(call[0]), p.calls.Audit, 0, 0}
		for i := range 6 {
			argument := uint64(0)
			if i+1 < len(call) {
				argument = call[i+1]
			}
			words = append(words, uint32(argument), uint32(argument>>32))
		}
		var data []byte
		for _, word := range words {
			data = binary.BigEndian.AppendUint32(data, word)
		}
		if result, err := filter.Run(data); err != nil || result != seccompAllow && result != seccompLog {
			return false
		}
	}
	return true
}

// ownCallsWork tries the calls in the tracer.
var ownCallsWork = sync.OnceValue(func() bool {
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer unix.Munmap(code)
	fd, err := unix.MemfdCreate(memoryName, unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
})

// ownCopiesWork tries the call that copies texts.
var ownCopiesWork = sync.OnceValue(func() bool {
	var from, to [wordBytes]byte
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from)), Len: len(from)}}
	_, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	return err == nil
})
