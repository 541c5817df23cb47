package amd64

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// reg is the number of a general register, as instructions encode it.
type reg int

const noReg reg = -1

// general finds the general register that a register is, or is a part of.
func general(r x86asm.Reg) reg {
	switch {
	case r >= x86asm.AL && r <= x86asm.BL:
		return reg(r - x86asm.AL)
	case r >= x86asm.AH && r <= x86asm.BH:
		return reg(r - x86asm.AH)
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return 4 + reg(r-x86asm.SPB)
	case r >= x86asm.AX && r <= x86asm.R15W:
		return reg(r - x86asm.AX)
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return reg(r - x86asm.EAX)
	case r >= x86asm.RAX && r <= x86asm.R15:
		return reg(r - x86asm.RAX)
	}
	return noReg
}

// whole finds the general register that an operand is all of.
func whole(a x86asm.Arg) reg {
	if r, ok := a.(x86asm.Reg); ok && r >= x86asm.RAX && r <= x86asm.R15 {
		return general(r)
	}
	return noReg
}

// filled finds the general register that an operand is all of when it is written: one of
// 32 bits clears the others.
func filled(a x86asm.Arg) reg {
	if r, ok := a.(x86asm.Reg); ok && r >= x86asm.EAX && r <= x86asm.R15L {
		return general(r)
	}
	return whole(a)
}

// registersOf returns the general registers that an operand has a part in, as a set.
func registersOf(a x86asm.Arg) (set uint16) {
	add := func(r x86asm.Reg) {
		if g := general(r); g != noReg {
			set |= 1 << g
		}
	}
	switch a := a.(type) {
	case x86asm.Reg:
		add(a)
	case x86asm.Mem:
		add(a.Base)
		add(a.Index)
	}
	return set
}

// Sets of registers (x86-64 psABI, figure 3.4).
const (
	calleeSaved uint16 = 1<<3 | 1<<4 | 1<<5 | 1<<12 | 1<<13 | 1<<14 | 1<<15 // rbx, rsp, rbp, r12 to r15
	returned    uint16 = 1<<0 | 1<<2                                        // rax, rdx
	allRegs     uint16 = 0xffff
)

// value is what a register holds of a stub.
type value uint8

const (
	nothing  value = iota
	distance       // from the global offset table to the stub
	slot           // the distance from there to the stub's slot
	address        // of the stub
)

// state is what the registers hold of one stub at a place, whichever way led there.
type state struct {
	isReachable bool
	must        [16]value // what each holds in any case
	may         uint16    // those that hold something in some case
}

// join adds the state of another way, and reports whether that changes this one.
func (s *state) join(o *state) (changed bool) {
	if !s.isReachable {
		*s = *o
		return true
	}
	for r := range s.must {
		if s.must[r] != o.must[r] && s.must[r] != nothing {
			s.must[r], changed = nothing, true
		}
	}
	changed = changed || o.may&^s.may != 0
	s.may |= o.may
	return changed
}

// set makes a register hold a value.
func (s *state) set(r reg, v value) {
	s.must[r] = v
	s.may &^= 1 << r
	if v != nothing {
		s.may |= 1 << r
	}
}

// holds returns what an operand of 64 bits holds, itself.
func (s *state) holds(a x86asm.Arg) value {
	if r := whole(a); r != noReg {
		return s.must[r]
	}
	return nothing
}

// isFree reports whether an operand is a whole register that holds nothing of the stub.
func (s *state) isFree(a x86asm.Arg) bool {
	r := whole(a)
	return r != noReg && s.may>>r&1 == 0
}

// isSum reports whether an operand in memory is at the sum of a value and of another
// register, which holds the global offset table's address.
func (s *state) isSum(a x86asm.Arg, v value) bool {
	m, ok := a.(x86asm.Mem)
	if !ok || m.Disp != 0 || m.Segment != 0 || m.Index == 0 || m.Scale != 1 {
		return false
	}
	return s.holds(m.Base) == v && s.isFree(m.Index) || s.holds(m.Index) == v && s.isFree(m.Base)
}

// calls reports whether an instruction calls the stub, or jumps to it.
func (s *state) calls(in *instruction) bool {
	if in.Op != x86asm.CALL && in.Op != x86asm.JMP {
		return false
	}
	return s.holds(in.Args[0]) == address || s.isSum(in.Args[0], slot)
}

// pass goes over an instruction, which is a load of the stub if l is not nil.
func (s *state) pass(in *instruction, l *load) {
	dst := filled(in.Args[0])
	switch {
	case l != nil:
		s.set(l.to, l.what)
	case in.Op == x86asm.CALL:
		for r := range reg(len(s.must)) {
			if calleeSaved>>r&1 == 0 {
				s.set(r, nothing)
			}
		}
	case s.makesAddress(in):
		s.set(dst, address)
	case in.copies():
		from := whole(in.Args[1])
		may := s.may >> from & 1
		s.set(dst, s.must[from])
		s.may |= may << dst
	case in.overwrites():
		s.set(dst, nothing)
	}
}

// check returns what keeps the calls from being disabled at an instruction that is none of
// them: a use of a register that may hold something of the stub.
func (s *state) check(in *instruction) (why string) {
	if s.may == 0 {
		return ""
	}
	switch in.Op {
	case x86asm.CALL, x86asm.JMP:
		if registersOf(in.Args[0])&s.may != 0 {
			return "whose register may hold something else"
		}
		if (in.Op == x86asm.CALL || in.jump < 0) && s.may&^calleeSaved != 0 {
			return "whose register another function may use"
		}
	case x86asm.RET:
		if s.may&(returned|calleeSaved) != 0 {
			return "whose register lives on"
		}
		return ""
	case x86asm.UD2, x86asm.HLT:
		return ""
	}
	switch {
	case in.leaves:
		return "whose register lives on in other code"
	case in.jump >= 0 && in.Op != x86asm.JMP && s.may>>1&1 != 0: // rcx, which some count or test
		return whyUnknown
	case in.jump >= 0 || in.Op == x86asm.CALL || in.Op == x86asm.JMP:
		return ""
	case s.makesAddress(in) || in.copies():
		return ""
	case in.implicit(s.may):
		return whyUnknown
	}
	return s.checkOperands(in)
}

// checkOperands looks for those that have a part in what is held.
func (s *state) checkOperands(in *instruction) string {
	args := in.Args[:]
	switch {
	case !in.overwrites():
	case in.Op == x86asm.XOR || in.Op == x86asm.SUB:
		return ""
	default:
		args = args[1:]
	}
	for _, a := range args {
		if a != nil && registersOf(a)&s.may != 0 {
			return "whose register has another use"
		}
	}
	return ""
}

// makesAddress reports whether an instruction makes the stub's address of the distance and
// the global offset table's address, or loads it from there, into a register.
func (s *state) makesAddress(in *instruction) bool {
	dst, src := in.Args[0], in.Args[1]
	if whole(dst) == noReg {
		return false
	}
	switch in.Op {
	case x86asm.ADD:
		return s.holds(dst) == distance && s.isFree(src) || s.isFree(dst) && s.holds(src) == distance
	case x86asm.LEA:
		return s.isSum(src, distance)
	case x86asm.MOV:
		return s.isSum(src, slot)
	}
	return false
}

// copies reports whether an instruction copies a whole register to another.
func (in *instruction) copies() bool {
	return in.Op == x86asm.MOV && whole(in.Args[0]) != noReg && whole(in.Args[1]) != noReg
}

// overwrites reports whether an instruction writes all of its first operand, a register,
// whatever that was.
func (in *instruction) overwrites() bool {
	dst := filled(in.Args[0])
	if dst == noReg {
		return false
	}
	switch in.Op {
	case x86asm.MOV, x86asm.LEA, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.POP,
		x86asm.CVTTSD2SI, x86asm.CVTTSS2SI, x86asm.MOVD, x86asm.MOVQ:
		return registersOf(in.Args[1])>>dst&1 == 0
	case x86asm.IMUL:
		return in.Args[2] != nil && registersOf(in.Args[1])>>dst&1 == 0
	case x86asm.XOR, x86asm.SUB:
		return in.Args[0] == in.Args[1]
	}
	return false
}

// changes returns the general registers that an instruction may write, besides rsp.
func (in *instruction) changes() uint16 {
	switch in.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.PUSH, x86asm.CALL, x86asm.JMP, x86asm.BT, x86asm.RET, x86asm.NOP, x86asm.UD2, x86asm.HLT:
		return 0
	case x86asm.LEAVE:
		return 1 << 5
	}
	if in.jump >= 0 || in.leaves {
		return 1 << 1 // rcx, which loop counts
	}
	set := implicit(in.Op)
	if in.implicit(allRegs) && set == 0 {
		return allRegs
	}
	for i, a := range in.Args {
		if r, ok := a.(x86asm.Reg); ok && (i == 0 || in.Op == x86asm.XCHG || in.Op == x86asm.XADD) {
			set |= registersOf(r)
		}
	}
	return set
}

// ends reports whether what is behind an instruction is not executed next.
func ends(op x86asm.Op) bool {
	switch op {
	case x86asm.JMP, x86asm.RET, x86asm.LJMP, x86asm.LRET, x86asm.UD2, x86asm.HLT:
		return true
	}
	return false
}

// implicit returns the registers that an instruction has besides its operands, 0 if they
// are not known.
func implicit(op x86asm.Op) uint16 {
	switch op {
	case x86asm.CBW, x86asm.CWDE, x86asm.CDQE, x86asm.CMPXCHG:
		return 1 << 0 // rax
	case x86asm.CWD, x86asm.CDQ, x86asm.CQO, x86asm.IMUL, x86asm.MUL, x86asm.IDIV, x86asm.DIV:
		return 1<<0 | 1<<2 // rax and rdx
	case x86asm.LEAVE:
		return 1<<4 | 1<<5 // rsp and rbp
	case x86asm.STOSB, x86asm.STOSD, x86asm.STOSQ:
		return 1<<0 | 1<<1 | 1<<7 // rax, rcx and rdi
	case x86asm.MOVSB, x86asm.MOVSQ:
		return 1<<1 | 1<<6 | 1<<7 // rcx, rsi and rdi
	}
	return 0
}

// implicit reports whether an instruction may use one of the registers without having it as an
// operand.
func (in *instruction) implicit(registers uint16) bool {
	if slices.Contains(explicit, in.Op) || in.Op == x86asm.IMUL && in.Args[1] != nil || in.isVector() {
		return false
	}
	regs := implicit(in.Op)
	return regs == 0 || regs&registers != 0
}

// isVector reports whether an instruction is one of SSE, without other general registers
// than its operands.
func (in *instruction) isVector() bool {
	switch in.Op {
	case x86asm.PCMPESTRI, x86asm.PCMPESTRM, x86asm.PCMPISTRI, x86asm.PCMPISTRM, x86asm.MASKMOVDQU, 0:
		return false
	}
	return slices.ContainsFunc(in.Args[:], func(a x86asm.Arg) bool {
		r, ok := a.(x86asm.Reg)
		return ok && r >= x86asm.X0 && r <= x86asm.X15
	})
}

// explicit are instructions that have no general registers but their operands and rsp.
var explicit = []x86asm.Op{
	x86asm.ADC, x86asm.ADD, x86asm.AND, x86asm.BSF, x86asm.BSR, x86asm.BSWAP, x86asm.BT, x86asm.BTC, x86asm.BTR, x86asm.BTS,
	x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG, x86asm.CMOVGE, x86asm.CMOVL,
	x86asm.CMOVLE, x86asm.CMOVNE, x86asm.CMOVNO, x86asm.CMOVNP, x86asm.CMOVNS, x86asm.CMOVO, x86asm.CMOVP, x86asm.CMOVS,
	x86asm.CMP, x86asm.DEC, x86asm.INC, x86asm.LEA, x86asm.MOV, x86asm.MOVSX, x86asm.MOVSXD, x86asm.MOVZX, x86asm.NEG,
	x86asm.NOP, x86asm.NOT, x86asm.OR, x86asm.POP, x86asm.PUSH, x86asm.ROL, x86asm.ROR, x86asm.SAR, x86asm.SBB,
	x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG, x86asm.SETGE, x86asm.SETL,
	x86asm.SETLE, x86asm.SETNE, x86asm.SETNO, x86asm.SETNP, x86asm.SETNS, x86asm.SETO, x86asm.SETP, x86asm.SETS,
	x86asm.SHL, x86asm.SHLD, x86asm.SHR, x86asm.SHRD, x86asm.SUB, x86asm.TEST, x86asm.XCHG, x86asm.XOR,
	x86asm.CVTSD2SI, x86asm.CVTSS2SI, x86asm.CVTTSD2SI, x86asm.CVTTSS2SI, x86asm.POPCNT, x86asm.LZCNT, x86asm.TZCNT, x86asm.MOVBE,
	x86asm.XADD, x86asm.PAUSE, x86asm.LFENCE, x86asm.MFENCE, x86asm.SFENCE,
	x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHW,
}
