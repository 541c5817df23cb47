package amd64

import (
	"debug/elf"
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

// calleeSaved are the registers that live on behind a call (x86-64 psABI, figure 3.4).
var calleeSaved = []reg{3, 4, 5, 12, 13, 14, 15} // rbx, rsp, rbp, r12 to r15

// holding is what a register holds of a stub.
type holding uint8

const (
	nothing holding = iota
	offset          // of the stub, or of its slot, from the global offset table
	address         // of the stub
)

// holdings are what all registers hold, behind a movabs with a relocation of a type.
type holdings struct {
	typ elf.R_X86_64
	in  [16]holding
}

// holds tells what an operand of 64 bits holds, itself.
func (h *holdings) holds(a x86asm.Arg) holding {
	if r := whole(a); r != noReg {
		return h.in[r]
	}
	return nothing
}

// mentions reports whether an operand has a part in what is held.
func (h *holdings) mentions(a x86asm.Arg) bool {
	var regs []x86asm.Reg
	switch a := a.(type) {
	case x86asm.Reg:
		regs = []x86asm.Reg{a}
	case x86asm.Mem:
		regs = []x86asm.Reg{a.Base, a.Index}
	}
	return slices.ContainsFunc(regs, func(r x86asm.Reg) bool {
		g := general(r)
		return g != noReg && h.in[g] != nothing
	})
}

// isSum reports whether an operand in memory is at the sum of the offset and of another
// register, which holds the global offset table's address.
func (h *holdings) isSum(a x86asm.Arg) bool {
	m, ok := a.(x86asm.Mem)
	if !ok || m.Disp != 0 || m.Segment != 0 || m.Index == 0 || m.Scale != 1 {
		return false
	}
	base, index := h.holds(m.Base), h.holds(m.Index)
	return base == offset && index == nothing && whole(m.Index) != noReg ||
		index == offset && base == nothing && whole(m.Base) != noReg
}

// fromGOT reports whether the offset is that of the stub from the global offset table:
// of its entry of the procedure linkage table, or of a hidden stub itself.
func (h *holdings) fromGOT() bool {
	return h.typ == elf.R_X86_64_PLTOFF64 || h.typ == elf.R_X86_64_GOTOFF64
}

// calls reports whether an instruction calls the stub, or jumps to it.
func (h *holdings) calls(inst x86asm.Inst) bool {
	if inst.Op != x86asm.CALL && inst.Op != x86asm.JMP {
		return false
	}
	return h.holds(inst.Args[0]) == address || h.typ == elf.R_X86_64_GOT64 && h.isSum(inst.Args[0])
}

// live says which register that holds something of the stub lives on behind the call.
func (h *holdings) live() string {
	for _, r := range calleeSaved {
		if h.in[r] != nothing {
			return "whose register lives on"
		}
	}
	return ""
}

// pass goes over an instruction. why tells what keeps the call from being disabled.
func (h *holdings) pass(inst x86asm.Inst) (why string) {
	switch {
	case branches(inst.Op):
		return "in another basic block"
	case h.makesAddress(inst):
		h.in[whole(inst.Args[0])] = address
		return ""
	case !h.knows(inst):
		return whyUnknown
	case slices.ContainsFunc(inst.Args[:], h.mentions):
		return "whose register has another use"
	}
	return ""
}

// makesAddress reports whether an instruction makes the stub's address of the offset and
// the global offset table's address, or loads it from there, into a register.
func (h *holdings) makesAddress(inst x86asm.Inst) bool {
	dst, src := inst.Args[0], inst.Args[1]
	if whole(dst) == noReg {
		return false
	}
	switch inst.Op {
	case x86asm.ADD:
		a, b := h.holds(dst), h.holds(src)
		return h.fromGOT() && whole(src) != noReg && (a == nothing && b == offset || a == offset && b == nothing)
	case x86asm.LEA:
		return h.fromGOT() && h.isSum(src)
	case x86asm.MOV:
		return h.typ == elf.R_X86_64_GOT64 && h.isSum(src)
	}
	return false
}

// branches reports whether an instruction ends a basic block, or calls.
func branches(op x86asm.Op) bool {
	switch op {
	case x86asm.CALL, x86asm.JMP, x86asm.RET, x86asm.LCALL, x86asm.LJMP, x86asm.LRET, x86asm.SYSCALL, x86asm.INT, x86asm.UD2, x86asm.HLT,
		x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JCXZ, x86asm.JE, x86asm.JECXZ, x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE,
		x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JRCXZ, x86asm.JS, x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		return true
	}
	return false
}

// implicit are instructions with the registers that they have besides their operands.
var implicit = map[x86asm.Op][]reg{
	x86asm.CBW: {0}, x86asm.CWDE: {0}, x86asm.CDQE: {0}, // rax
	x86asm.CWD: {0, 2}, x86asm.CDQ: {0, 2}, x86asm.CQO: {0, 2}, // rax and rdx
	x86asm.IMUL: {0, 2}, x86asm.MUL: {0, 2}, x86asm.IDIV: {0, 2}, x86asm.DIV: {0, 2},
	x86asm.LEAVE: {4, 5}, // rsp and rbp
}

// knows reports whether it is known which registers an instruction has besides its
// operands, and nothing is held in them.
func (h *holdings) knows(inst x86asm.Inst) bool {
	if slices.Contains(explicit, inst.Op) || inst.Op == x86asm.IMUL && inst.Args[1] != nil {
		return true
	}
	regs, ok := implicit[inst.Op]
	return ok && !slices.ContainsFunc(regs, func(r reg) bool { return h.in[r] != nothing })
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
	x86asm.CVTSI2SD, x86asm.CVTSI2SS, x86asm.CVTTSD2SI, x86asm.CVTTSS2SI, x86asm.MOVAPD, x86asm.MOVAPS, x86asm.MOVD,
	x86asm.MOVDQA, x86asm.MOVDQU, x86asm.MOVHPS, x86asm.MOVLPS, x86asm.MOVQ, x86asm.MOVSD_XMM, x86asm.MOVSS, x86asm.MOVUPD,
	x86asm.MOVUPS, x86asm.PXOR, x86asm.XORPD, x86asm.XORPS,
}
