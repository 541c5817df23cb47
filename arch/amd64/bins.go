package amd64

// How a trampoline counts by the value of an argument.

import (
	"math"

	"sdtconvert/arch"
)

// countBins counts the value of an argument, and leaves.
func (a *assembly) countBins() {
	b := a.Bins
	a.save(rcx, rdx, rsi)
	dropped, rejected := a.begin()
	var unread, found []int
	switch {
	case b.Size == 0:
		found = append(found, a.bin(b.Unread()))
	case b.MayFault:
		a.guardedValue(&b.Operand)
		a.add(0x48, 0x85, 0xc9)                        // test %rcx,%rcx
		unread = append(unread, a.forward(0x0f, 0x85)) // jne unread
	default:
		a.value(&b.Operand)
	}
	switch {
	case b.Size == 0:
	case b.Width == 0:
		a.extend(&b.Operand)
		a.power(b.Signed)
	default:
		a.extend(&b.Operand)
		found = append(found, a.linear(b)...)
	}
	if len(unread) > 0 {
		found = append(found, a.forward(0xe9)) // jmp found
		a.land(unread[0])
		a.add32(uint32(b.Unread()), 0xba) // mov $Unread,%edx
	}
	for _, jump := range found {
		a.land(jump)
	}
	a.ring()
	a.add32(a.Ring.Stride, 0x48, 0x69, 0xc0) // imul $Stride,%rax,%rax
	a.add64(a.Counters, 0x48, 0xb9)          // movabs $Counters,%rcx
	a.add(0x48, 0x01, 0xc8)                  // add %rcx,%rax
	a.add(0xf0, 0x48, 0xff, 0x04, 0xd0)      // lock incq (%rax,%rdx,8)
	a.isRecorded()
	a.restore()
	for _, jump := range dropped {
		a.land(jump)
	}
	a.restore()
	a.reject(rejected)
}

// bin loads a counter's number into %edx, and returns the jump behind what follows.
func (a *assembly) bin(number int) (jump int) {
	a.add32(uint32(number), 0xba) // mov $number,%edx
	return a.forward(0xe9)        // jmp found
}

// power loads into %rdx the number of the power of two of %rax.
func (a *assembly) power(signed bool) {
	if signed {
		a.add(0x48, 0x89, 0xc6)       // mov %rax,%rsi
		a.add(0x48, 0xc1, 0xfe, 0x3f) // sar $63,%rsi
		a.add(0x48, 0x31, 0xf0)       // xor %rsi,%rax
		a.add(0x48, 0x29, 0xf0)       // sub %rsi,%rax
	}
	a.add32(math.MaxUint32, 0xb9) // mov $-1,%ecx
	a.add(0x48, 0x0f, 0xbd, 0xd0) // bsr %rax,%rdx
	a.add(0x0f, 0x44, 0xd1)       // cmove %ecx,%edx
	a.add(0x83, 0xc2, 0x01)       // add $1,%edx
	if signed {
		a.add(0x31, 0xf2) // xor %esi,%edx
		a.add(0x29, 0xf2) // sub %esi,%edx
	}
	a.add(0x83, 0xc2, 0x40) // add $64,%edx
}

// linear loads into %rdx the number of the range of one width that holds %rax. It returns jumps to what follows.
func (a *assembly) linear(b *arch.Bins) (found []int) {
	var below, above []int
	if jump := map[bool]byte{false: 0x82, true: 0x8c}[b.Signed]; b.Signed || b.Low > 0 {
		a.add64(uint64(b.Low), 0x48, 0xb9) // movabs $Low,%rcx
		a.add(0x48, 0x39, 0xc8)            // cmp %rcx,%rax
		below = append(below, a.forward(0x0f, jump))
	}
	switch jump := (map[bool]byte{false: 0x83, true: 0x8d})[b.Signed]; {
	case b.Signed || b.High > 0:
		a.add64(uint64(b.High), 0x48, 0xb9) // movabs $High,%rcx
		a.add(0x48, 0x39, 0xc8)             // cmp %rcx,%rax
		above = append(above, a.forward(0x0f, jump))
	default:
		above = append(above, a.forward(0xe9)) // jmp above
	}
	// A quotient by multiplication, which may be too small by 1: div takes ten times as long on many processors.
	a.add64(uint64(b.Low), 0x48, 0xb9)                  // movabs $Low,%rcx
	a.add(0x48, 0x29, 0xc8)                             // sub %rcx,%rax
	a.add(0x48, 0x89, 0xc6)                             // mov %rax,%rsi
	a.add64(math.MaxUint64/uint64(b.Width), 0x48, 0xb9) // movabs $(2^64-1)/Width,%rcx
	a.add(0x48, 0xf7, 0xe1)                             // mul %rcx
	a.add(0x48, 0x89, 0xd0)                             // mov %rdx,%rax
	a.add64(uint64(b.Width), 0x48, 0xb9)                // movabs $Width,%rcx
	a.add(0x48, 0x0f, 0xaf, 0xc1)                       // imul %rcx,%rax
	a.add(0x48, 0x29, 0xc6)                             // sub %rax,%rsi
	a.add(0x48, 0x39, 0xce)                             // cmp %rcx,%rsi
	a.add(0x48, 0x83, 0xda, 0xff)                       // sbb $-1,%rdx
	a.add(0x83, 0xc2, 0x01)                             // add $1,%edx
	found = append(found, a.forward(0xe9))              // jmp found
	for _, jump := range below {
		a.land(jump)
	}
	if len(below) > 0 {
		found = append(found, a.bin(0))
	}
	for _, jump := range above {
		a.land(jump)
	}
	return append(found, a.bin(b.Unread()-1))
}
