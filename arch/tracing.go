package arch

import (
	"encoding/binary"
	"io"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"sync"
)

// What a tracer of Linux programs must know of a machine: how ptrace(2) shows the registers of
// a thread, and the code that it puts into a program.

// ThreadState is the layout of a stopped thread's registers, NT_PRSTATUS. Offsets are in bytes. The
// zero value is of a machine whose programs cannot be traced.
type ThreadState struct {
	Size   int // of all registers
	PC, SP int // offsets
	// Link is the offset of the register that holds the return address of a function without a
	// frame; 0 if a call pushes the return address.
	Link int
	// Flags is the offset of the register with the bits of Mode, which say that the thread executes another instruction set; 0 without
	// one. A return address has the set in Traits.Mode.
	Flags int
	Mode  uint64
	// Pointer is the offset of the thread pointer, or with PointerSet the offset in that register set (NT_*). The thread's ID is
	// in memory near it: IDs are the distances behind Pointer-Before at which C libraries that are known keep it. Without IDs, trampolines do
	// not look there.
	Pointer, PointerSet int
	Before              uint64
	IDs                 []int
	// Segment is the segment register that leads to a thread's memory, as operands name it, and Offset the relocation of a thread-local
	// variable's distance from the thread pointer: %fs:x@tpoff. They are "" on machines where general registers do that.
	Segment, Offset string
	// Selector is the offset of that register, which says which descriptor is the thread's; 0 if Pointer is there whatever it is.
	Selector int
	Return   []byte // an instruction that returns from a function, of at most 4 bytes; nil where nothing needs it
	Top      uint64 // the end of a program's memory, of machines whose sites are armed with jumps
	// Trap is how far behind a breakpoint a thread stops.
	Trap    uint64
	Vectors VectorState
	// Registers returns the offsets by the names that operands of notes have. Few runs need them.
	Registers func() map[string]int
}

// VectorState is the layout of a stopped thread's vector registers, NT_PRFPREG. The zero value has none.
type VectorState struct {
	Prefixes       []string // of names, before the number
	Count          int
	Offset, Stride int // bytes
}

// Number returns the number of a vector register.
func (v *VectorState) Number(name string) (n int, ok bool) {
	for _, prefix := range v.Prefixes {
		if digits, isVector := strings.CutPrefix(name, prefix); isVector {
			n, err := strconv.Atoi(digits)
			return n, err == nil && n >= 0 && n < v.Count && digits == strconv.Itoa(n)
		}
	}
	return 0, false
}

// AddNumberedRegisters adds the offsets of registers that are called prefix0, prefix1 and so on, of a size in bytes, the first at an
// offset.
func AddNumberedRegisters(names map[string]int, prefix string, count, offset, size int) {
	for i := range count {
		names[prefix+strconv.Itoa(i)] = offset + i*size
	}
}

// NumberedRegisters returns a function for ThreadState.Registers: of registers that AddNumberedRegisters adds.
func NumberedRegisters(prefix string, count, offset, size int) func() map[string]int {
	return sync.OnceValue(func() map[string]int {
		names := map[string]int{}
		AddNumberedRegisters(names, prefix, count, offset, size)
		return names
	})
}

// Get reads the register at an offset, of a machine's word size in bytes.
func (t *ThreadState) Get(registers []byte, offset, word int, order binary.ByteOrder) uint64 {
	if word == 4 {
		return uint64(order.Uint32(registers[offset:]))
	}
	return order.Uint64(registers[offset:])
}

// Put writes the register at an offset.
func (t *ThreadState) Put(registers []byte, offset, word int, order binary.ByteOrder, value uint64) {
	if word == 4 {
		order.PutUint32(registers[offset:], uint32(value))
		return
	}
	order.PutUint64(registers[offset:], value)
}

// OperandKind says where an argument is.
type OperandKind uint8

const (
	Constant   OperandKind = iota // Operand.Value
	InRegister                    // Operand.Base
	InMemory                      // at Base + Index*Scale + Value, from the thread pointer on if Thread is set
	InVector                      // the lowest bytes of vector register number Base
)

// Operand is one argument of a site, as its note describes it.
type Operand struct {
	Kind   OperandKind
	Size   int // bytes: 1, 2, 4 or 8
	Signed bool
	Float  bool // the bits are those of a floating-point number
	Value  uint64
	// Address reports that Value is an address of the program.
	Address bool
	// Thread reports that the address is relative to the thread pointer.
	Thread bool
	// Base and Index are offsets in ThreadState, -1 for none.
	Base, Index int
	Scale       uint64
}

// Trapper is a Machine whose tracer has other breakpoints than the first of Traits.Breakpoints.
type Trapper interface {
	Machine
	// Breakpoint returns what a tracer puts over a site, nil if there is nothing for its form.
	Breakpoint(s Site) []byte
}

// Jumper is a Machine whose sites a tracer can arm with jumps to code of its own.
type Jumper interface {
	Machine

	// JumpSite says how a jump can be put over a site. code is what follows the recorded address. If ok is
	// false, only a breakpoint fits.
	JumpSite(form Site, code []byte) (s JumpSite, ok bool)
	// Targets returns where a jump at an address may go whose fixed bytes are those of code, which is what is there
	// now.
	Targets(from uint64, code []byte, s JumpSite) iter.Seq[uint64]
	// Jump returns the jump from one address to another, nil if that is too far. It is as long as
	// JumpSite.Fixed.
	Jump(from, to uint64) []byte
	// Reach is how far, in bytes, trampolines may be from their sites.
	Reach() uint64
	// FarJump returns a jump to any address, nil if the machine has none.
	FarJump(to uint64) []byte
	// Trampoline returns the code that an armed site jumps to. It makes no system call.
	Trampoline(t *Trampoline) []byte
	// Leave gives a thread that is in a trampoline the registers that it had at the site, but for PC. registers are as the kernel shows
	// them, and change in place; memory is that of the process.
	Leave(t *Trampoline, registers []byte, memory io.ReaderAt) (Passage, error)
	// SystemCall says how a stopped thread makes a system call.
	SystemCall() *SystemCall
	// CallStub returns code for an address that makes a system call, and then gives the thread the registers of a ThreadState at
	// another address. It is nil if the machine has no such code.
	CallStub(at, registers uint64) []byte
	// TrapHandler returns the code of a handler of SIGTRAP, for a program whose breakpoints have no tracer any more. Code that returns
	// from a handler comes first, then the handler, at TrapHandlerEntry. It looks for the breakpoint in a table: TrapTableSize
	// bytes of entries, up to one with address 0, and a zeroed struct sigaction. A SIGTRAP that is not there has the default action.
	TrapHandler(table uint64) []byte
}

// The table of breakpoints of a TrapHandler. An entry is two words: the address of a breakpoint, and where the program goes on, 0 to
// return from the function.
const (
	TrapEntrySize    = 16
	TrapTableSize    = 256 << 10
	TrapHandlerEntry = 16
)

// Evictor is a Jumper that can make room for the jump of a site: the instruction behind the site moves, and a jump takes its place.
type Evictor interface {
	Jumper
	// Move returns what does at an address what the instruction at the head of code does at another, from. If ok is false, the
	// instruction has to stay.
	Move(code []byte, from, to uint64) (m Moved, ok bool)
}

// Moved is an instruction that has moved.
type Moved struct {
	Length int    // of the instruction
	Code   []byte // that takes its place, and goes on behind it
	// Done is the offset in Code from which on the instruction has been executed. Before that, at an offset that is not 0, the instruction is
	// a Call, which has pushed the return address.
	Done int
	Call bool
	Ends bool // the program does not go on behind the instruction
	NOP  bool
}

// JumpSite says which bytes of a site a jump replaces. A thread may stand between the
// instructions of a site, or behind its first one in the next instruction of the program.
// These bytes have to stay. So the jump is chosen to have the same ones, by where it goes.
type JumpSite struct {
	Offset uint64 // of the jump from the recorded address
	Fixed  []bool // by byte of the jump: it has to be what is there
	// Resume is the distance from the recorded address to where the program goes on, 0 if the trampoline
	// returns from the function.
	Resume uint64
}

// Trampoline describes the code that records a hit.
type Trampoline struct {
	Address uint64 // of the code itself
	Resume  uint64 // address where the program goes on; 0 to return from the function
	Site    uint32 // number of the site, from 1

	// Counters is the address of counters of hits, one each CounterStride bytes for each ring. If it is not 0, the
	// trampoline only counts; of Ring it then needs Count.
	Counters uint64
	// Bins has the trampoline count by an argument: Counters has Bins.Count() counters of 8 bytes for each ring, and Ring.Stride is the distance
	// from one ring's to the next one's. Nil if there is one counter.
	Bins *Bins

	Ring    Ring
	Dropped uint64 // address of the counter of hits that found no room
	// Alive is the address of a word whose lower 30 bits are 0 once the tracer has ended: hits are dropped then.
	Alive uint64
	// ThreadID is the address, near the code, of a 32-bit number: how far behind ThreadState.Pointer-Before the C library
	// keeps the thread's ID. If it is negative, the event has the ID 0.
	ThreadID  uint64
	Arguments []TracedArgument

	// Conditions have to hold, or there is no event. Rejected is the address of counters like Counters, of hits for which they do not.
	Conditions []Condition
	Rejected   uint64
}

// Bins says how a trampoline counts an argument, by the range that holds its value.
type Bins struct {
	Ranges
	Operand       // of size 0 if nothing tells where the argument is
	MayFault bool // it is in memory that may not be there
}

// Ranges are the ranges of a histogram: of one width from Low up to High, or powers of two if Width is 0.
type Ranges struct{ Low, High, Width int64 }

// powers is how many powers of two a number of 64 bits may have.
const powers = 64

// Count returns how many counters there are: one for each range, and Unread.
func (r *Ranges) Count() int { return r.Unread() + 1 }

// Unread is the counter of values that could not be read.
func (r *Ranges) Unread() int {
	if r.Width == 0 {
		return 2*powers + 1
	}
	return r.above() + 1
}

// above is the counter of values from High on.
func (r *Ranges) above() int {
	return int((uint64(r.High-r.Low)+uint64(r.Width)-1)/uint64(r.Width)) + 1
}

// Of returns the counter of a value. Of powers of two, counter 64 is that of zero, 64+n that of the values from 2^(n-1) on, and the negative ones
// mirror that. Of others, counter 0 is that of the values below Low.
func (r *Ranges) Of(value uint64, signed bool) int {
	isNegative := signed && int64(value) < 0
	isBelow := func(bound int64) bool {
		return isNegative && int64(value) < bound || !isNegative && bound > 0 && value < uint64(bound)
	}
	switch {
	case r.Width == 0 && isNegative:
		return powers - bits.Len64(-value)
	case r.Width == 0:
		return powers + bits.Len64(value)
	case isBelow(r.Low):
		return 0
	case !isBelow(r.High):
		return r.above()
	}
	return int((value-uint64(r.Low))/uint64(r.Width)) + 1
}

// Passage is how far a thread has come in a trampoline.
type Passage struct {
	Recorded bool // the hit is counted, dropped, or a whole event
	// Slot is the address of the event that the thread has begun and not finished, 0 for none. Position is the event's position in the ring.
	Slot, Position uint64
	// Landing is where the thread goes on if its instruction has met memory that is not there, 0 if the code does not provide for that.
	Landing uint64
}

// AliveMask are the bits of Trampoline.Alive that count: those of a thread's ID in a robust futex (set_robust_list(2)).
const AliveMask = 0x3fffffff

// Condition compares an argument, extended to 64 bits, with a number. The comparison is signed if the argument is.
type Condition struct {
	Operand
	Comparison Comparison
	Number     uint64
}

// Comparison is an operator.
type Comparison uint8

const (
	Equal Comparison = iota
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
)

// CounterStride is the distance between counters, a line of the cache.
const CounterStride = 64

// Ring is the layout of the rings that events go through. Each begins with three words: how many events were begun
// and how many were read, and one that is not used. Events follow at RingHeader.
type Ring struct {
	Address uint64
	Count   uint32 // of rings, a power of two
	Stride  uint32 // from one ring to the next, bytes
	Slots   uint32 // events in a ring, a power of two
	Size    uint32 // of an event, bytes
}

// RingHeader is the offset of the first event in a ring.
const RingHeader = 64

// The offsets in an event. Its first word holds the number of the site and, in the upper half, the lower half of
// the event's position. It is written last.
const (
	Discarded = ^uint32(0) // in place of the number: the event was recorded otherwise

	EventTime      = 8  // of the processor's clock
	EventThread    = 16 // 32 bits
	EventArguments = 24
)

// TracedArgument says what a trampoline writes of an argument.
type TracedArgument struct {
	Operand
	At uint32 // offset in the event of its word
	// MayFault reports that the operand is in memory that may not be there.
	MayFault bool
	// Copy is how many bytes are copied of the text that the argument points to, 0 for none. CopyAt is the offset in the event of a word that
	// says how many bytes of the text were read; it is -1 if the argument itself could not be read. The text follows. CopyAt is 0 for other
	// arguments.
	Copy, CopyAt uint32
}

// SystemCall says how to make a stopped thread call the kernel. Offsets are in ThreadState.
type SystemCall struct {
	Code      []byte // of the instruction
	Number    int
	Arguments [6]int
	Result    int
	// NoRestart is the offset of the number of the call that the thread was in, negative if it was in none: the kernel restarts the
	// call if its result asks for that. It is -1 for a machine whose kernel does so before the thread stops.
	NoRestart int

	Mmap, MemfdCreate, Ftruncate, Close, Sigaction, RestartSyscall uint64 // numbers
}
