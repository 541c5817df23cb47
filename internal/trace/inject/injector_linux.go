package inject

import (
	"encoding/binary"
	"io"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/image"
)

// Process is a process whose threads are stopped. Package ptrace has those of the kernel.
type Process interface {
	io.ReaderAt // its memory
	PID() int
	Read(address uint64, data []byte) error
	Write(address uint64, data []byte) error
	// Mappings returns what is mapped, by address, and where the heap begins.
	Mappings() (maps []image.Mapping, brk uint64, err error)
	// Stopped returns the stopped threads, the first thread of the process before others.
	Stopped() []int
	IsGrouped(tid int) bool
	// OwnID returns the ID that a thread has for itself.
	OwnID(tid int) int32
	Registers(tid, size int) ([]byte, error)
	SetRegisters(tid int, data []byte) error
	// Vectors returns the registers that arch.VectorState describes.
	Vectors(tid int) ([]byte, error)
	ThreadPointer(tid int, state *arch.ThreadState, word int, order binary.ByteOrder) (uint64, error)
	// SystemCall has a thread enter a system call and leave it; or it returns the signal that has come before.
	SystemCall(tid int) (unix.Signal, error)
	// StopAgain lets a thread run on with a signal, up to where it stops for the tracer.
	StopAgain(tid int, sig unix.Signal) error
	// Unfilter returns an error if something may catch or forbid system calls of a thread, up to Filter.
	Unfilter(tid int) error
	Filter(tid int)
	// SignalCode returns the code of the signal for which a thread has stopped (si_code of sigaction(2)).
	SignalCode(tid int) (code int32, ok bool)
	// Critical returns where a thread has to go on if it leaves the restartable sequence that it is in.
	Critical(tid int, pc uint64, order binary.ByteOrder) (abort uint64, inside bool)
	// HasShadowStack reports whether a thread returns from calls alone that were made by call instructions.
	HasShadowStack(tid int) bool
	// TakeFile takes over a descriptor of a thread, of a memory file.
	TakeFile(tid int, fd, length uint64) (*os.File, error)
}

// Injector is what the tracer has put into one process.
type Injector struct {
	Process
	Machine arch.Jumper
	State   *arch.ThreadState
	Order   binary.ByteOrder
	Word    int // bytes
	// IsPrivate reports that rings are in memory which the tracer does not share: what they hold goes away with the process.
	IsPrivate bool
	// LeftArmed reports that a tracer was killed while sites were armed.
	LeftArmed bool

	calls       *arch.SystemCall
	areas       []*Area
	ledger      []entry
	holes       int // entries of kind noEntry
	hops        hopPages
	inUse       map[uint64]bool // shared memory, by address
	threadID    int32           // offset of a thread's ID from its thread pointer, -1 if it is not known
	cachedSpace *addressSpace
	calling     *remoteCalls
	batch       *batch       // nil if code is read and written at once
	handler     *trapHandler // of SIGTRAP, nil for none
	noHandler   bool         // the program may not have one
}

// New returns an injector that has put nothing into a process.
func New(p Process, machine arch.Jumper, order binary.ByteOrder) *Injector {
	traits := machine.Traits()
	return &Injector{
		Process: p, Machine: machine, State: &traits.Threads, Order: order, Word: traits.WordSize(), calls: machine.SystemCall(),
		inUse: map[uint64]bool{}, threadID: -1,
	}
}

// Fork returns the injector of a child, whose memory is a copy of its parent's.
func (in *Injector) Fork(child Process) *Injector {
	c := *in
	c.Process, c.cachedSpace, c.calling, c.batch = child, nil, nil, nil
	c.areas, c.ledger, c.handler = nil, slices.Clone(in.ledger), in.handler.clone()
	c.hops, c.inUse = in.hops.clone(), maps.Clone(in.inUse)
	for _, a := range in.areas {
		copied := *a
		c.areas = append(c.areas, &copied)
	}
	return &c
}

// Begin has a thread make system calls, until End is called. near is an address for the first area. The first time it adopts what an earlier
// tracer has left.
func (in *Injector) Begin(near uint64) error {
	in.cachedSpace = nil // the process has run since
	isNew := in.areas == nil
	if isNew {
		if err := in.adopt(); err != nil {
			return err
		}
	}
	if err := in.beginCalls(); err != nil {
		return err
	}
	if in.findThreadID(); !isNew || len(in.areas) > 0 {
		return nil
	}
	if _, err := in.newArea(near); err != nil {
		return err
	}
	return in.placeStub() // in the area
}

// LacksThreadID reports whether trampolines do not know their thread.
func (in *Injector) LacksThreadID() bool { return len(in.areas) > 0 && in.threadID < 0 }

// HasAreas reports whether the process has code of the tracer.
func (in *Injector) HasAreas() bool { return len(in.areas) > 0 }

// findThreadID looks for where the C library keeps the ID of each thread: all stopped threads have to agree. A place that is not one of
// a known library has to fit two threads.
func (in *Injector) findThreadID() {
	const size, piece = 0x800, 0x100 // the block of a first thread may begin where the memory does
	if in.threadID >= 0 || len(in.State.IDs) == 0 {
		return
	}
	var blocks [][]byte
	var ids []uint32
	var absent [size / piece]bool
	for _, tid := range in.Stopped() {
		pointer, err := in.ThreadPointer(tid, in.State, in.Word, in.Order)
		if err != nil {
			return
		}
		block := make([]byte, size)
		for i := range absent {
			absent[i] = absent[i] || in.Read(pointer-in.State.Before+uint64(i*piece), block[i*piece:][:piece]) != nil
		}
		blocks, ids = append(blocks, block), append(ids, uint32(in.OwnID(tid)))
	}
	candidates := slices.Clone(in.State.IDs)
	if len(blocks) > 1 {
		for at := 0; at < size; at += 4 {
			candidates = append(candidates, at)
		}
	}
	for _, at := range candidates {
		agrees := len(blocks) > 0 && !absent[at/piece]
		for i, block := range blocks {
			agrees = agrees && in.Order.Uint32(block[at:]) == ids[i]
		}
		if agrees {
			in.threadID = int32(at)
			break
		}
	}
	for _, a := range in.areas {
		in.Write(a.start+threadIDAt, binary.NativeEndian.AppendUint32(nil, uint32(in.threadID)))
	}
}
