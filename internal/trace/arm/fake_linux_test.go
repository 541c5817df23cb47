package arm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/image"
	"sdtconvert/internal/trace/ptrace"
)

const page = 4096

// fakeProcess is a process of amd64 whose memory and threads the test has. It makes the system calls of the tracer.
type fakeProcess struct {
	pid     int
	pages   map[uint64]*[page]byte
	maps    []image.Mapping
	next    uint64         // address of the next mapping
	threads map[int][]byte // registers
	action  [32]byte       // of SIGTRAP

	writes, calls       int            // made
	failWrite, failCall int            // fails, from 1; 0 for none
	dieAt               int            // the call at which the process ends
	failed              string         // the callers of the write that failed
	inside              map[int]uint64 // threads in restartable sequences: where these abort
	dispatched          map[int]bool
}

var errFake = errors.New("fake fault")

func newFake(pid int, tids ...int) *fakeProcess {
	p := &fakeProcess{pid: pid, pages: map[uint64]*[page]byte{}, next: 0x7f0000000000, threads: map[int][]byte{}, inside: map[int]uint64{}, dispatched: map[int]bool{}}
	for _, tid := range tids {
		p.threads[tid] = make([]byte, amd64.Machine.Traits().Threads.Size)
	}
	return p
}

// fork returns a child with a copy of the memory, and one thread.
func (p *fakeProcess) fork(pid int) *fakeProcess {
	child := newFake(pid, pid)
	for at, data := range p.pages {
		copied := *data
		child.pages[at] = &copied
	}
	child.maps, child.next, child.action = slices.Clone(p.maps), p.next, p.action
	return child
}

func (p *fakeProcess) mapPages(start, length uint64, m image.Mapping) {
	for at := start; at < start+length; at += page {
		p.pages[at] = &[page]byte{}
	}
	m.Start, m.End = start, start+length
	p.maps = append(p.maps, m)
	slices.SortFunc(p.maps, func(a, b image.Mapping) int { return cmp.Compare(a.Start, b.Start) })
}

func (p *fakeProcess) PID() int { return p.pid }

func (p *fakeProcess) copy(address uint64, data []byte, f func(memory, data []byte)) (n int, err error) {
	for n < len(data) {
		at := address + uint64(n)
		memory := p.pages[at&^(page-1)]
		if memory == nil {
			return n, unix.EIO
		}
		piece := memory[at&(page-1):]
		k := min(len(piece), len(data)-n)
		f(piece[:k], data[n:n+k])
		n += k
	}
	return n, nil
}

func (p *fakeProcess) ReadAt(data []byte, address int64) (int, error) {
	return p.copy(uint64(address), data, func(memory, data []byte) { copy(data, memory) })
}

func (p *fakeProcess) Read(address uint64, data []byte) error {
	_, err := p.ReadAt(data, int64(address))
	return err
}

func (p *fakeProcess) Write(address uint64, data []byte) error {
	if p.writes++; p.writes == p.failWrite {
		var pcs [6]uintptr
		n := runtime.Callers(2, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		p.failed = ""
		for {
			f, more := frames.Next()
			p.failed += " " + f.Function[strings.LastIndex(f.Function, ".")+1:]
			if !more {
				break
			}
		}
		return errFake
	}
	_, err := p.copy(address, data, func(memory, data []byte) { copy(memory, data) })
	return err
}

func (p *fakeProcess) Mappings() ([]image.Mapping, uint64, error) {
	return slices.Clone(p.maps), 0, nil
}

func (p *fakeProcess) Stopped() (tids []int) {
	for tid := range p.threads {
		tids = append(tids, tid)
	}
	slices.Sort(tids)
	return tids
}

func (p *fakeProcess) IsGrouped(int) bool  { return false }
func (p *fakeProcess) OwnID(tid int) int32 { return int32(tid) }

func (p *fakeProcess) Registers(tid, size int) ([]byte, error) {
	if p.threads[tid] == nil {
		return nil, unix.ESRCH
	}
	return slices.Clone(p.threads[tid]), nil
}

func (p *fakeProcess) SetRegisters(tid int, data []byte) error {
	p.threads[tid] = slices.Clone(data)
	return nil
}

func (p *fakeProcess) ThreadPointer(int, *arch.ThreadState, int, binary.ByteOrder) (uint64, error) {
	return 0, errFake
}

// SystemCall makes the calls of an injector.
func (p *fakeProcess) SystemCall(tid int) (unix.Signal, error) {
	if p.calls++; p.calls == p.dieAt {
		clear(p.threads)
		return 0, ptrace.ErrGone
	}
	if p.dispatched[tid] {
		return unix.SIGSYS, nil
	}
	call, registers := amd64.Machine.(arch.Jumper).SystemCall(), p.threads[tid]
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(registers[at:]) }
	args := [6]uint64{}
	for i, at := range call.Arguments {
		args[i] = word(at)
	}
	result := p.call(call, word(call.Number), args)
	if p.calls == p.failCall {
		result = -int64(unix.ENOMEM)
	}
	binary.LittleEndian.PutUint64(registers[call.Result:], uint64(result))
	return 0, nil
}

func (p *fakeProcess) call(call *arch.SystemCall, number uint64, args [6]uint64) int64 {
	switch number {
	case call.Mmap:
		at, length := args[0], (args[1]+page-1)&^(page-1)
		if at == 0 {
			at, p.next = p.next, p.next+length+page
		}
		overlaps := slices.ContainsFunc(p.maps, func(m image.Mapping) bool { return m.Start < at+length && at < m.End })
		if overlaps && args[3]&unix.MAP_FIXED == 0 {
			return -int64(unix.EEXIST)
		}
		m := image.Mapping{Executable: args[2]&unix.PROT_EXEC != 0}
		if args[3]&unix.MAP_SHARED != 0 {
			m.Path = "/dev/zero (deleted)"
		}
		if !overlaps {
			p.mapPages(at, length, m)
		}
		return int64(at)
	case call.MemfdCreate:
		return -int64(unix.EPERM) // so rings are in memory of the process
	case call.Sigaction:
		if args[2] != 0 {
			p.copy(args[2], p.action[:], func(memory, data []byte) { copy(memory, data) })
		}
		if args[1] != 0 {
			p.copy(args[1], p.action[:], func(memory, data []byte) { copy(data, memory) })
		}
		return 0
	}
	panic(fmt.Sprintf("system call %d of a tracer", number))
}

func (p *fakeProcess) StopAgain(int, unix.Signal) error { return nil }

func (p *fakeProcess) Unfilter(int) error { return nil }
func (p *fakeProcess) Filter(int)         {}

func (p *fakeProcess) SignalCode(tid int) (int32, bool) {
	return map[bool]int32{true: 2, false: 1}[p.dispatched[tid]], true
}

func (p *fakeProcess) Critical(tid int, pc uint64, _ binary.ByteOrder) (uint64, bool) {
	abort, inside := p.inside[tid]
	return abort, inside
}

func (p *fakeProcess) Vectors(int) ([]byte, error) { return nil, errFake }

func (p *fakeProcess) HasShadowStack(int) bool { return false }

func (p *fakeProcess) TakeFile(int, uint64, uint64) (*os.File, error) { return nil, errFake }

func imageMapping(path string, isCode bool) image.Mapping {
	return image.Mapping{Path: path, Executable: isCode}
}

// indexes yields 0 up to n.
func indexes(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
