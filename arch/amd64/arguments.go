package amd64

// How a trampoline reads the arguments of a site, and copies texts.

import (
	"math"
	"slices"

	"sdtconvert/arch"
)

// value loads an operand into %rax.
func (a *assembly) value(o *arch.Operand) {
	switch o.Kind {
	case arch.Constant:
		a.add64(o.Value, 0x48, 0xb8) // movabs $Value,%rax
	case arch.InRegister:
		a.load(rax, o.Base&^(word-1))
		if o.Base%word == 1 { // %ah, %bh, %ch or %dh
			a.add(0x48, 0xc1, 0xe8, 8) // shr $8,%rax
		}
	case arch.InVector:
		a.add(0x66, 0x48|byte(o.Base>>3)<<2, 0x0f, 0x7e, 0xc0|byte(o.Base&7)<<3) // movq register,%rax
	default:
		a.address(o)
		a.dereference(o)
	}
}

// guardedValue loads an operand from memory that may not be there. %rcx is then 0, else -1.
func (a *assembly) guardedValue(o *arch.Operand) {
	a.address(o)
	a.add(0x48, 0x83, 0xc9, 0xff) // or $-1,%rcx
	at := len(a.code)
	a.dereference(o)
	a.add(0x48, 0xff, 0xc1) // inc %rcx
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
	a.add32(arg.At, 0x48, 0x89, 0x87) // mov %rax,At(%rdi)
	if arg.Copy > 0 {
		if arg.MayFault {
			a.add(0x48, 0x85, 0xc9)                    // test %rcx,%rcx
			lost = append(lost, a.forward(0x0f, 0x85)) // jne done
		}
		a.copy(arg, lost)
	}
	if arg.CopyAt > 0 {
		a.add32(arg.CopyAt, 0x48, 0x89, 0x8f) // mov %rcx,CopyAt(%rdi)
	}
}

// copy copies the text that %rax points to, which need not be there: %rcx becomes its length. Jumps land behind it.
func (a *assembly) copy(arg *arch.TracedArgument, jumps []int) {
	a.add(0x31, 0xc9)                            // xor %ecx,%ecx
	a.add32(lowest, 0x48, 0x3d)                  // cmp $4096,%rax
	jumps = append(jumps, a.forward(0x0f, 0x82)) // jb done
	again := len(a.code)
	a.add(0x0f, 0xb6, 0x14, 0x08)                // movzbl (%rax,%rcx),%edx
	a.add32(arg.CopyAt+word, 0x88, 0x94, 0x0f)   // mov %dl,CopyAt+8(%rdi,%rcx)
	a.add(0xff, 0xc1)                            // inc %ecx
	a.add(0x84, 0xd2)                            // test %dl,%dl
	jumps = append(jumps, a.forward(0x0f, 0x84)) // je done
	a.add32(arg.Copy, 0x81, 0xf9)                // cmp $Copy,%ecx
	a.back(again, 0x0f, 0x82)                    // jb again
	for _, jump := range jumps {
		a.land(jump)
	}
	a.faults[again] = len(a.code)
}

// lowest is the lowest address at which the kernel lets programs map memory, as a rule: no text is below.
const lowest = 4096

// number returns the number of a register in instructions.
func number(offset int) int { return slices.Index(wordsOf[:], offset/word) }

// load loads into %rax or %rcx what the program had in a register.
func (a *assembly) load(to byte, offset int) {
	register := number(offset)
	depth := uint32(word * len(a.pushed))
	switch i := slices.Index(a.pushed, register); {
	case register == rsp:
		a.add32(depth+redZone, 0x48, 0x8d, 0x84|to<<3, 0x24) // lea depth+128(%rsp),to
	case i >= 0:
		a.add32(depth-uint32(word*(i+1)), 0x48, 0x8b, 0x84|to<<3, 0x24) // mov saved(%rsp),to
	case register >= 8:
		a.add(0x4c, 0x89, 0xc0|byte(register&7)<<3|to) // mov register,to
	default:
		a.add(0x48, 0x89, 0xc0|byte(register)<<3|to) // mov register,to
	}
}

// address computes the address of an operand in %rax, from the thread pointer on if that is where it is.
func (a *assembly) address(o *arch.Operand) {
	if o.Base < 0 && o.Index < 0 {
		a.add64(o.Value, 0x48, 0xb8) // movabs $Value,%rax
		return
	}
	if o.Base >= 0 {
		a.load(rax, o.Base)
	} else {
		a.add(0x31, 0xc0) // xor %eax,%eax
	}
	if o.Index >= 0 {
		a.load(rcx, o.Index)
		a.add32(uint32(o.Scale), 0x48, 0x69, 0xc9) // imul $Scale,%rcx,%rcx
		a.add(0x48, 0x01, 0xc8)                    // add %rcx,%rax
	}
	if value := int64(o.Value); value >= math.MinInt32 && value <= math.MaxInt32 {
		a.add32(uint32(value), 0x48, 0x05) // add $Value,%rax
		return
	}
	a.add64(o.Value, 0x48, 0xb9) // movabs $Value,%rcx
	a.add(0x48, 0x01, 0xc8)      // add %rcx,%rax
}

// dereference loads an operand whose address is in %rax.
func (a *assembly) dereference(o *arch.Operand) {
	if o.Thread {
		a.add(0x64) // %fs:
	}
	switch o.Size {
	case 1:
		a.add(0x0f, 0xb6, 0x00) // movzbl (%rax),%eax
	case 2:
		a.add(0x0f, 0xb7, 0x00) // movzwl (%rax),%eax
	case 4:
		a.add(0x8b, 0x00) // mov (%rax),%eax
	default:
		a.add(0x48, 0x8b, 0x00) // mov (%rax),%rax
	}
}
