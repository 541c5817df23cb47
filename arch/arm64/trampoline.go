package arm64

// The code by which a tracer records hits of a program that runs on. It changes no register and no flag of the program. AAPCS64
// leaves the memory below the stack pointer to whoever comes first, so there is no red zone.

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
)

// threads is the layout of struct user_pt_regs.
var threads = arch.ThreadState{
	Return: []byte{0xc0, 0x03, 0x5f, 0xd6}, Top: 1 << 47,
	Size: 34 * 8, PC: 32 * 8, SP: stackPointer * 8, Link: 30 * 8,
	PointerSet: 0x401, Before: beforePointer, IDs: []int{beforePointer - 0x670}, // NT_ARM_TLS; of glibc 2.36
	Vectors: arch.VectorState{Prefixes: []string{"d", "s", "v", "q"}, Count: 32, Stride: 16},
	Registers: sync.OnceValue(func() map[string]int {
		names := map[string]int{"sp": stackPointer * 8, "wsp": stackPointer * 8}
		arch.AddNumberedRegisters(names, "x", 31, 0, 8)
		arch.AddNumberedRegisters(names, "w", 31, 0, 8)
		return names
	}),
}

const (
	stackPointer = 31
	saved        = 10 // x0 to x9 are saved
	frame        = 96
	flags        = 80 // offset in the frame

	// beforePointer reaches the C library's description of the thread.
	beforePointer = 0x800
)

// SystemCall implements arch.Jumper. The kernel has a call begin again before the thread stops.
func (Machine) SystemCall() *arch.SystemCall {
	return &arch.SystemCall{
		Code:   []byte{0x01, 0x00, 0x00, 0xd4}, // svc #0
		Number: 8 * 8, Arguments: [6]int{0, 8, 16, 24, 32, 40}, Result: 0, NoRestart: -1,
		Mmap: 222, MemfdCreate: 279, Ftruncate: 46, Close: 57, Sigaction: sysSigaction, RestartSyscall: 128,
	}
}

// CallStub implements arch.Jumper: there is none, as no branch leaves all registers alone and goes anywhere.
func (Machine) CallStub(at, registers uint64) []byte { return nil }

// Reach implements arch.Jumper.
func (Machine) Reach() uint64 { return 120 << 20 }

// JumpSite implements arch.Jumper: a NOP or a return, of one word.
func (Machine) JumpSite(form arch.Site, code []byte) (arch.JumpSite, bool) {
	s := arch.JumpSite{Fixed: make([]bool, insnLen)}
	switch {
	case bytes.HasPrefix(code, traits.Nops[0]):
		s.Resume = insnLen
	case form.Form == arch.Tail && bytes.HasPrefix(code, []byte{0xc0, 0x03, 0x5f, 0xd6}): // ret
	default:
		return s, false
	}
	return s, true
}

// Targets implements arch.Jumper. No site has fixed bytes.
func (Machine) Targets(uint64, []byte, arch.JumpSite) iter.Seq[uint64] {
	return func(func(uint64) bool) {}
}

// Jump implements arch.Jumper.
func (Machine) Jump(from, to uint64) []byte {
	distance := int64(to - from)
	if distance < -1<<27 || distance >= 1<<27 {
		return nil
	}
	return binary.LittleEndian.AppendUint32(nil, 0x14000000|uint32(distance>>2)&0x3ffffff) // b to
}

// FarJump implements arch.Jumper: there is none without a register.
func (Machine) FarJump(uint64) []byte { return nil }

// assembly is code that is being written.
type assembly struct {
	*arch.Trampoline
	code   []byte
	states forms.Steps[saveState]
	faults map[int]int // where a thread goes on if the instruction at an offset meets memory that is not there
}

// add adds an instruction whose fields are added up.
func (a *assembly) add(fields ...uint32) {
	insn := uint32(0)
	for _, field := range fields {
		insn |= field
	}
	a.code = binary.LittleEndian.AppendUint32(a.code, insn)
}

// rn and rm are the fields of registers in instructions.
func rn(register uint32) uint32 { return register << 5 }
func rm(register uint32) uint32 { return register << 16 }

// constant loads a number into a register.
func (a *assembly) constant(register uint32, value uint64) {
	a.add(0xd2800000, register, uint32(value&0xffff)<<5) // movz register, #value
	for shift := uint32(1); shift < 4; shift++ {
		if part := uint32(value >> (16 * shift) & 0xffff); part != 0 {
			a.add(0xf2800000, shift<<21, part<<5, register) // movk register, #part, lsl #16*shift
		}
	}
}

// forward adds a branch that land completes.
func (a *assembly) forward(insn uint32) int {
	a.add(insn)
	return len(a.code) - insnLen
}

// land makes a conditional branch go to what is added next.
func (a *assembly) land(at int) {
	insn := binary.LittleEndian.Uint32(a.code[at:])
	binary.LittleEndian.PutUint32(a.code[at:], insn|uint32((len(a.code)-at)>>2)<<5)
}

// back adds a conditional branch to an offset of the code.
func (a *assembly) back(to int, insn uint32) {
	a.add(insn, uint32((to-len(a.code))>>2)&0x7ffff<<5)
}

// save saves registers and flags.
func (a *assembly) save() {
	a.add(0xa9800000, uint32(-frame/8&0x7f)<<15, 1<<10, rn(stackPointer)) // stp x0, x1, [sp, #-frame]!
	a.mark(func(s *saveState) { s.saved = 2 })
	for r := uint32(2); r < saved; r += 2 {
		a.add(0xa9000000, r<<15, (r+1)<<10, rn(stackPointer), r) // stp r, r+1, [sp, #8*r]
		a.mark(func(s *saveState) { s.saved += 2 })
	}
	a.add(0xd53b4209)                                   // mrs x9, nzcv
	a.add(0xf9000000, flags/8<<10, rn(stackPointer), 9) // str x9, [sp, #flags]
	a.mark(func(s *saveState) { s.flags = true })
}

// restore undoes save, and leaves. What is added next is reached by branches, with everything saved.
func (a *assembly) restore() {
	a.add(0xf9400000, flags/8<<10, rn(stackPointer), 9) // ldr x9, [sp, #flags]
	a.add(0xd51b4209)                                   // msr nzcv, x9
	for r := uint32(2); r < saved; r += 2 {
		a.add(0xa9400000, r<<15, (r+1)<<10, rn(stackPointer), r) // ldp r, r+1, [sp, #8*r]
	}
	a.add(0xa8c00000, frame/8<<15, 1<<10, rn(stackPointer)) // ldp x0, x1, [sp], #frame
	a.mark(func(s *saveState) { s.saved, s.flags = 0, false })
	if a.Resume == 0 {
		a.add(0xd65f03c0) // ret
	} else {
		a.code = append(a.code, (Machine{}).Jump(a.Address+uint64(len(a.code)), a.Resume)...)
	}
	a.mark(func(s *saveState) { *s = saveState{saved: saved, flags: true} })
}

// ring loads the number of a ring into x0: any will do, and threads have thread pointers of their own.
func (a *assembly) ring() {
	if a.Ring.Count == 1 {
		a.constant(0, 0)
		return
	}
	a.add(0xd53bd040) // mrs x0, tpidr_el0
	last := uint32(12 + bits.Len32(a.Ring.Count-1) - 1)
	a.add(0xd3400000, 12<<16, last<<10) // ubfx x0, x0, #12, #bits
}

// increment counts up what x0 points to, which records the hit.
func (a *assembly) increment() {
	again := len(a.code)
	a.add(0xc85f7c00, rn(0), 1)        // ldxr x1, [x0]
	a.add(0x91000000, 1<<10, rn(1), 1) // add x1, x1, #1
	a.add(0xc8007c00, rm(2), rn(0), 1) // stxr w2, x1, [x0]
	a.mark(func(s *saveState) { s.counted = true })
	a.back(again, 0x35000002) // cbnz w2, again
	a.mark(func(s *saveState) { s.counted, s.recorded = false, true })
}

// Trampoline implements arch.Jumper.
func (Machine) Trampoline(t *arch.Trampoline) []byte { return assemble(t).code }

// assemble writes a trampoline.
func assemble(t *arch.Trampoline) *assembly {
	a := &assembly{Trampoline: t, faults: map[int]int{}}
	a.save()
	switch {
	case t.Bins != nil:
		a.countBins()
		return a
	case t.Counters != 0:
		a.count(t.Counters)
		return a
	}
	dropped, rejected := a.begin()
	a.ring()
	dropped = append(dropped, a.reserve())
	for i := range t.Arguments {
		a.argument(&t.Arguments[i])
	}
	a.add(0xd3607c00, rn(9), 4) // lsl x4, x9, #32
	a.constant(0, uint64(t.Site))
	a.add(0xaa000000, rm(0), rn(4), 4) // orr x4, x4, x0
	a.add(0xc89ffc00, rn(7), 4)        // stlr x4, [x7]: the event is whole
	a.mark(func(s *saveState) { s.reserved, s.recorded = false, true })
	a.restore()
	for _, branch := range dropped {
		a.land(branch)
	}
	a.constant(0, t.Dropped)
	a.increment()
	a.restore()
	a.reject(rejected)
	return a
}

// begin returns the branches that are taken if the tracer has ended, and those for conditions that do not hold.
func (a *assembly) begin() (dropped, rejected []int) {
	a.constant(0, a.Alive)
	a.add(0xb9400000, rn(0))               // ldr w0, [x0]
	a.add(0x12007400, rn(0))               // and w0, w0, #0x3fffffff
	dropped = []int{a.forward(0x34000000)} // cbz w0, dropped
	for i := range a.Conditions {
		rejected = append(rejected, a.condition(&a.Conditions[i]))
	}
	return dropped, rejected
}

// reject counts the hits for which conditions do not hold.
func (a *assembly) reject(branches []int) {
	if len(branches) == 0 {
		return
	}
	for _, branch := range branches {
		a.land(branch)
	}
	a.count(a.Rejected)
}

// count counts in one of counters, one for each ring, and leaves.
func (a *assembly) count(counters uint64) {
	a.ring()
	a.constant(1, counters)
	a.add(0x8b000000, rm(0), 6<<10, rn(1)) // add x0, x1, x0, lsl #6
	a.increment()
	a.restore()
}

// otherwise are the conditions of branches that are taken if a comparison is false, of unsigned and of signed numbers.
var otherwise = [...][2]uint32{
	arch.Equal: {1, 1}, arch.NotEqual: {0, 0}, // ne, eq
	arch.Less: {2, 10}, arch.LessOrEqual: {8, 12}, // hs, ge; hi, gt
	arch.Greater: {9, 13}, arch.GreaterOrEqual: {3, 11}, // ls, le; lo, lt
}

// extend extends the value of an operand in x0 to 64 bits.
func (a *assembly) extend(o *arch.Operand) {
	if o.Size < 8 {
		extension := map[bool]uint32{false: 0xd3400000, true: 0x93400000}[o.Signed]
		a.add(extension, uint32(8*o.Size-1)<<10) // ubfx or sbfx x0, x0, #0, #8*Size
	}
}

// condition returns the branch that is taken if a condition does not hold.
func (a *assembly) condition(c *arch.Condition) (branch int) {
	signed := map[bool]int{true: 1}[c.Signed]
	a.value(&c.Operand)
	a.extend(&c.Operand)
	a.constant(1, c.Number)
	a.add(0xeb00001f, rm(1), rn(0)) // cmp x0, x1
	return a.forward(0x54000000 | otherwise[c.Comparison][signed])
}

// reserve takes the next event of the ring: x7 is its address, and x9 its position. It writes the time and the thread, and returns
// the branch for a ring that is full.
func (a *assembly) reserve() (full int) {
	a.constant(1, uint64(a.Ring.Stride))
	a.constant(2, a.Ring.Address)
	a.add(0x9b000000, rm(1), 2<<10, rn(0), 2) // madd x2, x0, x1, x2
	a.constant(5, uint64(a.Ring.Slots))
	again := len(a.code)
	a.add(0xc85f7c00, rn(2), 9)        // ldxr x9, [x2]
	a.add(0xf9400000, 1<<10, rn(2), 4) // ldr x4, [x2, #8]
	a.add(0xcb000000, rm(4), rn(9), 4) // sub x4, x9, x4
	a.add(0xeb00001f, rm(5), rn(4))    // cmp x4, x5
	full = a.forward(0x54000002)       // b.hs full
	a.add(0x91000000, 1<<10, rn(9), 4) // add x4, x9, #1
	a.add(0xc8007c00, rm(6), rn(2), 4) // stxr w6, x4, [x2]
	a.mark(func(s *saveState) { s.undecided = true })
	a.back(again, 0x35000006) // cbnz w6, again
	a.mark(func(s *saveState) { s.undecided, s.reserved = false, true })
	a.add(0xd1000000, 1<<10, rn(5), 5) // sub x5, x5, #1
	a.add(0x8a000000, rm(5), rn(9), 4) // and x4, x9, x5
	a.constant(6, uint64(a.Ring.Size))
	a.add(0x91000000, arch.RingHeader<<10, rn(2), 7) // add x7, x2, #64
	a.add(0x9b000000, rm(6), 7<<10, rn(4), 7)        // madd x7, x4, x6, x7
	a.mark(func(s *saveState) { s.hasSlot = true })
	a.add(0xd53be044)                                 // mrs x4, cntvct_el0
	a.add(0xf9000000, arch.EventTime/8<<10, rn(7), 4) // str x4, [x7, #8]
	a.threadID()
	a.add(0xb9000000, arch.EventThread/4<<10, rn(7)) // str w0, [x7, #16]
	return full
}

// threadID loads the ID of the thread into w0.
func (a *assembly) threadID() {
	distance := a.ThreadID - a.Address - uint64(len(a.code))
	a.add(0x98000000, uint32(distance>>2)&0x7ffff<<5) // ldrsw x0, ThreadID
	unknown := a.forward(0xb7f80000)                  // tbnz x0, #63, unknown
	a.add(0xd53bd044)                                 // mrs x4, tpidr_el0
	a.add(0xd1000000, beforePointer<<10, rn(4), 4)    // sub x4, x4, #0x800
	a.add(0xb8606800, rm(0), rn(4))                   // ldr w0, [x4, x0]
	known := a.forward(0x5400000e)                    // b.al known
	a.land(unknown)
	a.constant(0, 0)
	a.land(known)
}

// value loads an operand into x0.
func (a *assembly) value(o *arch.Operand) {
	switch o.Kind {
	case arch.Constant:
		a.constant(0, o.Value)
	case arch.InRegister:
		a.load(o.Base)
	case arch.InVector:
		a.add(0x9e660000, rn(uint32(o.Base))) // fmov x0, d
	default:
		a.address(o)
		a.dereference(o.Size)
	}
}

// address computes the address of an operand in x0.
func (a *assembly) address(o *arch.Operand) {
	a.constant(1, o.Value)
	if o.Index >= 0 {
		a.load(o.Index)
		a.add(0x8b000021, uint32(bits.TrailingZeros64(o.Scale))<<10) // add x1, x1, x0, lsl #bits
	}
	if o.Base >= 0 {
		a.load(o.Base)
	} else {
		a.constant(0, 0)
	}
	a.add(0x8b000000, rm(1), rn(0)) // add x0, x0, x1
}

// dereference loads what x0 points to.
func (a *assembly) dereference(size int) {
	a.add(0x39400000 | uint32(bits.TrailingZeros(uint(size)))<<30) // ldr of the size x0, [x0]
}

// guardedValue loads an operand from memory that may not be there. x1 is then 0, else -1.
func (a *assembly) guardedValue(o *arch.Operand) {
	a.address(o)
	a.add(0x92800001) // mov x1, #-1
	at := len(a.code)
	a.dereference(o.Size)
	a.constant(1, 0)
	a.faults[at] = len(a.code)
}

// argument writes an argument, and copies what is to be copied.
func (a *assembly) argument(arg *arch.TracedArgument) {
	var lost []int
	if arg.MayFault {
		a.guardedValue(&arg.Operand)
	} else {
		a.value(&arg.Operand)
	}
	a.add(0xf9000000, arg.At/8<<10, rn(7)) // str x0, [x7, #At]
	if arg.Copy > 0 {
		if arg.MayFault {
			lost = append(lost, a.forward(0xb5000001)) // cbnz x1, done
		}
		a.copy(arg, lost)
	}
	if arg.CopyAt > 0 {
		a.add(0xf9000000, arg.CopyAt/8<<10, rn(7), 1) // str x1, [x7, #CopyAt]
	}
}

// copy copies the text that x0 points to, which need not be there: x1 becomes its length. Branches land behind it.
func (a *assembly) copy(arg *arch.TracedArgument, branches []int) {
	a.constant(1, 0)
	a.constant(3, uint64(arg.CopyAt+8))
	a.add(0x8b000000, rm(3), rn(7), 3)                 // add x3, x7, x3
	a.add(0xf140001f, 1<<10, rn(0))                    // cmp x0, #4096: the kernel lets programs map nothing below
	branches = append(branches, a.forward(0x54000003)) // b.lo done
	again := len(a.code)
	a.add(0x38606800, rm(1), rn(0), 4)                 // ldrb w4, [x0, x1]
	a.add(0x38206800, rm(1), rn(3), 4)                 // strb w4, [x3, x1]
	a.add(0x91000000, 1<<10, rn(1), 1)                 // add x1, x1, #1
	branches = append(branches, a.forward(0x34000004)) // cbz w4, done
	a.add(0xf100001f, arg.Copy<<10, rn(1))             // cmp x1, #Copy
	a.back(again, 0x54000003)                          // b.lo again
	for _, branch := range branches {
		a.land(branch)
	}
	a.faults[again] = len(a.code)
}

// load loads into x0 what the program had in a register.
func (a *assembly) load(offset int) {
	switch r := uint32(offset / 8); {
	case r < saved:
		a.add(0xf9400000, r<<10, rn(stackPointer)) // ldr x0, [sp, #8*r]
	case r == stackPointer:
		a.add(0x91000000, frame<<10, rn(stackPointer)) // add x0, sp, #frame
	default:
		a.add(0xaa0003e0, rm(r)) // mov x0, r
	}
}
