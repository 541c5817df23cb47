package amd64

// The code by which a tracer records hits of a program that runs on. It runs between two instructions of the
// program, so it changes no register, no flag and nothing of the red zone. It may be interrupted anywhere, also by a
// signal whose handler hits the site.

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/arch/internal/x86"
)

// The registers as the kernel numbers them in user_regs_struct, in the order of instructions' numbers.
var hardware = [...]string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"}

// wordsOf are the offsets in user_regs_struct, in words, by the number of the register in instructions.
var wordsOf = [...]int{10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0}

const (
	rax, rcx, rdx, rsp, rsi, rdi, r8, r9, r10 = 0, 1, 2, 4, 6, 7, 8, 9, 10

	word    = 8
	rip     = 16 * word // offset in user_regs_struct
	origRAX = 15 * word
	flagsAt = 18 * word
)

// threads is the layout of user_regs_struct.
var threads = arch.ThreadState{
	Return: []byte{x86.OpRet}, Top: 1 << 47,
	Size: 27 * word, PC: rip, SP: 19 * word, Trap: 1, Registers: sync.OnceValue(threadRegisters),
	Pointer: 21 * word, Segment: "fs", Offset: "tpoff", // fs_base
	IDs:     []int{0x2d0, 0x30}, // of glibc and musl
	Vectors: arch.VectorState{Prefixes: []string{"xmm"}, Count: 16, Offset: 160, Stride: 16},
}

func threadRegisters() map[string]int {
	names := map[string]int{}
	for i, at := range wordsOf {
		var all []string
		switch {
		case i >= 8:
			number := []string{"8", "9", "10", "11", "12", "13", "14", "15"}[i-8]
			all = []string{"r" + number, "r" + number + "d", "r" + number + "w", "r" + number + "b"}
		case i >= 4:
			all = []string{"r" + hardware[i], "e" + hardware[i], hardware[i], hardware[i] + "l"}
		default:
			all = []string{"r" + hardware[i], "e" + hardware[i], hardware[i], hardware[i][:1] + "l"}
			names[hardware[i][:1]+"h"] = at*word + 1
		}
		for _, name := range all {
			names[name] = at * word
		}
	}
	return names
}

// SystemCall implements arch.Jumper.
func (machine) SystemCall() *arch.SystemCall {
	at := func(register int) int { return wordsOf[register] * word }
	return &arch.SystemCall{
		Code:   []byte{0x0f, 0x05}, // syscall
		Number: at(rax), Arguments: [6]int{at(rdi), at(rsi), at(rdx), at(r10), at(r8), at(r9)}, Result: at(rax), NoRestart: origRAX,
		Mmap: 9, MemfdCreate: 319, Ftruncate: 77, Close: 3, Sigaction: sysSigaction, RestartSyscall: 219,
	}
}

// CallStub implements arch.Jumper.
func (machine) CallStub(at, registers uint64) []byte {
	a := &assembly{}
	field := func(offset int, code ...byte) { // an instruction with an operand in memory
		end := at + uint64(len(a.code)+len(code)) + 4
		a.add32(uint32(registers+uint64(offset)-end), code...)
	}
	a.add(0x0f, 0x05) // syscall
	for register, index := range wordsOf {
		if register != rsp {
			field(index*word, 0x48|byte(register>>3)<<2, 0x8b, 0x05|byte(register&7)<<3) // mov saved(%rip),register
		}
	}
	field(threads.SP, 0x48, 0x8b, 0x25)                 // mov saved(%rip),%rsp
	a.add32(^uint32(redZone-1), 0x48, 0x8d, 0xa4, 0x24) // lea -128(%rsp),%rsp
	field(flagsAt, 0xff, 0x35)                          // push saved(%rip)
	a.add(0x9d)                                         // popf
	field(threads.SP, 0x48, 0x8b, 0x25)                 // mov saved(%rip),%rsp
	field(threads.PC, 0xff, 0x25)                       // jmp *saved(%rip)
	return a.code
}

// jumpLen is the length of jmp rel32.
const jumpLen = 5

// JumpSite implements arch.Jumper. A NOP of 5 bytes and more has room for a jump. Of a site that begins with a NOP
// or a return of one byte, that byte alone becomes the jump's opcode: what follows stays as it is, and is the distance.
// It may change where it is the operand of a NOP, or never executed.
func (machine) JumpSite(form arch.Site, code []byte) (arch.JumpSite, bool) {
	s := arch.JumpSite{Fixed: make([]bool, jumpLen)}
	fix := func(from, to int) {
		for i := max(from, 1); i < min(to, jumpLen); i++ {
			s.Fixed[i] = true
		}
	}
	length := len(form.Code)
	switch {
	case bytes.HasPrefix(code, nopNop10[:6]):
		s.Offset, s.Resume = 1, uint64(len(nopNop10))
	case len(code) > 0 && code[0] == x86.OpNop && bytes.HasPrefix(code[1:], nop5):
		s.Offset, s.Resume = 1, uint64(1+len(nop5))
	case bytes.HasPrefix(code, slices.Concat([]byte{x86.OpNop}, nop4)):
		s.Resume = uint64(1 + len(nop4))
		fix(1, len(nop4)) // its operand is free
	case len(code) > 1 && code[0] == x86.OpNop:
		s.Resume = 1
		fix(1, jumpLen)
		if form.Form == arch.Tail && code[1] == x86.OpRet {
			freePadding(&s, code, 2, length)
		}
	case len(code) > 0 && code[0] == x86.OpRet && form.Form != arch.Call:
		fix(1, jumpLen)
		if form.Form == arch.Tail {
			freePadding(&s, code, 1, length)
		}
	case form.Form == arch.Call && length > 1 && bytes.HasPrefix(code, form.Code) && slices.ContainsFunc(mode.Nops[2:], func(nop []byte) bool { return bytes.Equal(nop, form.Code) }):
		s.Resume = uint64(length)
		fix(length, jumpLen)
	default:
		return s, false
	}
	return s, len(code) >= int(s.Offset)+jumpLen
}

// freePadding frees the bytes of int3 behind a return.
func freePadding(s *arch.JumpSite, code []byte, from, to int) {
	for i := from; i < min(to, jumpLen, len(code)) && code[i] == 0xcc; i++ {
		s.Fixed[i] = false
	}
}

// farthest is the order in which Targets tries the highest byte of a distance: the nearest first.
func farthest(i int) byte { return byte((i + 1) / 2 * (1 - i%2*2)) }

// Targets implements arch.Jumper. Of the free bytes it tries all values of the two highest.
func (machine) Targets(from uint64, code []byte, s arch.JumpSite) iter.Seq[uint64] {
	distance := append([]byte{}, code[1:jumpLen]...)
	var free []int
	for i := jumpLen - 1; i > 0 && len(free) < 2; i-- {
		if !s.Fixed[i] {
			free = append(free, i-1)
		}
	}
	count := 1 << (8 * len(free))
	return func(yield func(uint64) bool) {
		for n := range count {
			for k, i := range free {
				distance[i] = farthest(n >> (8 * k) & 0xff)
			}
			if !yield(from + jumpLen + uint64(int32(binary.LittleEndian.Uint32(distance)))) {
				return
			}
		}
	}
}

// Jump implements arch.Jumper.
func (machine) Jump(from, to uint64) []byte {
	distance := int64(to - from - jumpLen)
	if distance != int64(int32(distance)) {
		return nil
	}
	return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(distance)) // jmp to
}

// Reach implements arch.Jumper.
func (machine) Reach() uint64 { return 1<<31 - 1<<22 }

// FarJump implements arch.Jumper.
func (machine) FarJump(to uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0xff, 0x25, 0, 0, 0, 0}, to) // jmp *0(%rip)
}

// assembly is code that is being written.
type assembly struct {
	*arch.Trampoline
	code   []byte
	pushed []int // registers that save has pushed, -1 for the flags
	states forms.Steps[saveState]
	faults map[int]int // where a thread goes on if the instruction at an offset meets memory that is not there
}

func (a *assembly) add(code ...byte) { a.code = append(a.code, code...) }

// add32 adds an instruction that ends with 32 bits.
func (a *assembly) add32(value uint32, code ...byte) {
	a.code = binary.LittleEndian.AppendUint32(append(a.code, code...), value)
}

// add64 adds an instruction that ends with 64 bits.
func (a *assembly) add64(value uint64, code ...byte) {
	a.code = binary.LittleEndian.AppendUint64(append(a.code, code...), value)
}

// forward adds a jump whose 32-bit distance land fills in.
func (a *assembly) forward(code ...byte) int {
	a.add32(0, code...)
	return len(a.code)
}

// land makes a jump go to what is added next.
func (a *assembly) land(jump int) {
	binary.LittleEndian.PutUint32(a.code[jump-4:], uint32(len(a.code)-jump))
}

// back adds a jump to an offset of the code.
func (a *assembly) back(to int, code ...byte) {
	a.add32(uint32(to-len(a.code)-len(code)-4), code...)
}

// push saves a register.
func (a *assembly) push(register int) {
	if register >= 8 {
		a.add(0x41) // REX.B
	}
	a.add(0x50 | byte(register&7)) // push register
	a.isPushed(register)
}

// isPushed notes what was pushed.
func (a *assembly) isPushed(register int) {
	a.pushed = append(a.pushed, register)
	a.mark(func(s *saveState) { s.saved++ })
}

const redZone = 128

// save makes room on the stack, and saves the flags and registers.
func (a *assembly) save(registers ...int) {
	a.add(0x48, 0x8d, 0x64, 0x24, 0x80) // lea -128(%rsp),%rsp
	a.mark(func(s *saveState) { s.room = true })
	a.push(rax)
	a.add(0x9f)             // lahf
	a.add(0x0f, 0x90, 0xc0) // seto %al
	a.add(0x50)             // push %rax
	a.isPushed(-1)
	for _, r := range registers {
		a.push(r)
	}
}

// restore undoes save, and leaves. What is added next is reached by jumps, with everything saved.
func (a *assembly) restore() {
	saved := a.states.Last()
	for _, r := range slices.Backward(a.pushed) {
		switch {
		case r < 0:
			a.add(0x58) // pop %rax
			a.mark(func(s *saveState) { s.saved, s.flagsPopped = s.saved-1, true })
			a.add(0x04, 0x7f) // add $0x7f,%al: the overflow flag
			a.add(0x9e)       // sahf: the others
			a.mark(func(s *saveState) { s.flagsPopped = false })
			continue
		case r >= 8:
			a.add(0x41, 0x58|byte(r&7)) // pop register
		default:
			a.add(0x58 | byte(r)) // pop register
		}
		a.mark(func(s *saveState) { s.saved-- })
	}
	a.add32(redZone, 0x48, 0x8d, 0xa4, 0x24) // lea 128(%rsp),%rsp
	a.mark(func(s *saveState) { s.room = false })
	switch jump := (machine{}).Jump(a.Address+uint64(len(a.code)), a.Resume); {
	case a.Resume == 0:
		a.add(0xc3) // ret
	case jump != nil:
		a.add(jump...)
	default:
		a.add((machine{}).FarJump(a.Resume)...)
	}
	a.mark(func(s *saveState) { *s = saveState{saved: saved.saved, room: saved.room} })
}

// ring loads the number of a ring into %eax: that of the processor, as far as there are rings. Whatever the
// instruction yields, the number is in range.
func (a *assembly) ring() {
	a.add32(0x7b, 0xb8)           // mov $0x7b,%eax: the selector whose limit holds it
	a.add(0x0f, 0x03, 0xc0)       // lsl %eax,%eax
	a.add32(a.Ring.Count-1, 0x25) // and $Count-1,%eax
}

// Trampoline implements arch.Jumper.
func (machine) Trampoline(t *arch.Trampoline) []byte { return assemble(t).code }

// assemble writes a trampoline.
func assemble(t *arch.Trampoline) *assembly {
	a := &assembly{Trampoline: t, faults: map[int]int{}}
	switch {
	case t.Bins != nil:
		a.countBins()
		return a
	case t.Counters != 0:
		a.save(rcx)
		a.count(t.Counters)
		return a
	}
	a.save(rcx, rdx, rsi, rdi)
	dropped, rejected := a.begin()
	dropped = append(dropped, a.reserve())
	a.stamp()
	for _, arg := range t.Arguments {
		a.argument(&arg)
	}
	a.add(0x48, 0x89, 0xf0)       // mov %rsi,%rax
	a.add(0x48, 0xc1, 0xe0, 0x20) // shl $32,%rax
	a.add32(t.Site, 0x48, 0x0d)   // or $Site,%rax
	a.add(0x48, 0x89, 0x07)       // mov %rax,(%rdi): the event is whole
	a.isRecorded()
	a.restore()
	for _, jump := range dropped {
		a.land(jump)
	}
	a.add64(t.Dropped, 0x48, 0xb9) // movabs $Dropped,%rcx
	a.add(0xf0, 0x48, 0xff, 0x01)  // lock incq (%rcx)
	a.isRecorded()
	a.restore()
	a.reject(rejected)
	return a
}

// begin returns the jumps that are taken if the tracer has ended, and those for conditions that do not hold.
func (a *assembly) begin() (dropped, rejected []int) {
	a.add64(a.Alive, 0x48, 0xb9)           // movabs $Alive,%rcx
	a.add32(arch.AliveMask, 0xf7, 0x01)    // testl $0x3fffffff,(%rcx)
	dropped = []int{a.forward(0x0f, 0x84)} // je dropped
	for i := range a.Conditions {
		rejected = append(rejected, a.condition(&a.Conditions[i]))
	}
	return dropped, rejected
}

// reject counts the hits for which conditions do not hold.
func (a *assembly) reject(jumps []int) {
	if len(jumps) == 0 {
		return
	}
	for _, jump := range jumps {
		a.land(jump)
	}
	a.count(a.Rejected)
}

// isRecorded notes that the hit has been recorded.
func (a *assembly) isRecorded() {
	a.mark(func(s *saveState) { s.reserved, s.recorded = false, true })
}

// count counts in one of counters, one for each ring, and leaves.
func (a *assembly) count(counters uint64) {
	a.ring()
	a.add(0xc1, 0xe0, 0x06)             // shl $6,%eax
	a.add64(counters, 0x48, 0xb9)       // movabs $counters,%rcx
	a.add(0xf0, 0x48, 0xff, 0x04, 0x01) // lock incq (%rcx,%rax)
	a.isRecorded()
	a.restore()
}

// otherwise are the second bytes of jumps that are taken if a comparison is false, of unsigned and of signed numbers.
var otherwise = [...][2]byte{
	arch.Equal: {0x85, 0x85}, arch.NotEqual: {0x84, 0x84}, // jne, je
	arch.Less: {0x83, 0x8d}, arch.LessOrEqual: {0x87, 0x8f}, // jae, jge; ja, jg
	arch.Greater: {0x86, 0x8e}, arch.GreaterOrEqual: {0x82, 0x8c}, // jbe, jle; jb, jl
}

// extend extends the value of an operand in %rax to 64 bits.
func (a *assembly) extend(o *arch.Operand) {
	a.add([][2][]byte{
		{{0x0f, 0xb6, 0xc0}, {0x48, 0x0f, 0xbe, 0xc0}}, // movzbl %al,%eax; movsbq %al,%rax
		{{0x0f, 0xb7, 0xc0}, {0x48, 0x0f, 0xbf, 0xc0}}, // movzwl %ax,%eax; movswq %ax,%rax
		{{0x89, 0xc0}, {0x48, 0x63, 0xc0}},             // mov %eax,%eax; movslq %eax,%rax
		{},
	}[bits.TrailingZeros(uint(o.Size))][map[bool]int{true: 1}[o.Signed]]...)
}

// condition returns the jump that is taken if a condition does not hold.
func (a *assembly) condition(c *arch.Condition) (jump int) {
	signed := map[bool]int{true: 1}[c.Signed]
	a.value(&c.Operand)
	a.extend(&c.Operand)
	a.add64(c.Number, 0x48, 0xb9) // movabs $Number,%rcx
	a.add(0x48, 0x39, 0xc8)       // cmp %rcx,%rax
	return a.forward(0x0f, otherwise[c.Comparison][signed])
}

// reserve takes the next event of the ring: %rdi is its address, and %rsi its position. It returns the jump for a
// ring that is full.
func (a *assembly) reserve() (full int) {
	a.ring()
	a.add32(a.Ring.Stride, 0x48, 0x69, 0xc0) // imul $Stride,%rax,%rax
	a.add64(a.Ring.Address, 0x48, 0xbf)      // movabs $Address,%rdi
	a.add(0x48, 0x01, 0xc7)                  // add %rax,%rdi
	a.add(0x48, 0x8b, 0x07)                  // mov (%rdi),%rax
	again := len(a.code)
	a.add(0x48, 0x89, 0xc6)                 // mov %rax,%rsi
	a.add(0x48, 0x89, 0xc1)                 // mov %rax,%rcx
	a.add(0x48, 0x2b, 0x4f, 0x08)           // sub 8(%rdi),%rcx
	a.add32(a.Ring.Slots, 0x48, 0x81, 0xf9) // cmp $Slots,%rcx
	full = a.forward(0x0f, 0x83)            // jae full
	a.add(0x48, 0x8d, 0x50, 0x01)           // lea 1(%rax),%rdx
	a.add(0xf0, 0x48, 0x0f, 0xb1, 0x17)     // lock cmpxchg %rdx,(%rdi)
	a.mark(func(s *saveState) { s.undecided = true })
	a.back(again, 0x0f, 0x85) // jne again
	a.mark(func(s *saveState) { s.undecided, s.reserved = false, true })
	a.add32(a.Ring.Slots-1, 0x25)                  // and $Slots-1,%eax
	a.add32(a.Ring.Size, 0x48, 0x69, 0xc0)         // imul $Size,%rax,%rax
	a.add(0x48, 0x8d, 0x7c, 0x07, arch.RingHeader) // lea 64(%rdi,%rax),%rdi
	a.mark(func(s *saveState) { s.hasSlot = true })
	return full
}

// stamp writes the time and the thread of the event.
func (a *assembly) stamp() {
	a.add(0x0f, 0x31)                                 // rdtsc
	a.add(0x48, 0xc1, 0xe2, 0x20)                     // shl $32,%rdx
	a.add(0x48, 0x09, 0xd0)                           // or %rdx,%rax
	a.add(0x48, 0x89, 0x47, arch.EventTime)           // mov %rax,8(%rdi)
	end := a.Address + uint64(len(a.code)) + 7        // of the next instruction
	a.add32(uint32(a.ThreadID-end), 0x48, 0x63, 0x05) // movslq ThreadID(%rip),%rax
	a.add(0x48, 0x85, 0xc0)                           // test %rax,%rax
	unknown := a.forward(0x0f, 0x88)                  // js unknown
	a.add(0x64, 0x8b, 0x00)                           // mov %fs:(%rax),%eax
	known := a.forward(0xe9)                          // jmp known
	a.land(unknown)
	a.add(0x31, 0xc0) // xor %eax,%eax
	a.land(known)
	a.add(0x89, 0x47, arch.EventThread) // mov %eax,16(%rdi)
}
