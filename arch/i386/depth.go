package i386

import (
	"bytes"
	"cmp"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// How far the stack pointer is from where it was at a function's start has to be the same on all
// ways to an instruction, and 0 at a return. In a function whose calls pop their arguments it is
// not, unless what they pop is counted. What they pop shows in the code around them: as many words
// as were pushed for the call; or what the code behind the call takes off the stack pointer again.
//
// Where a function restores the stack pointer from the frame pointer, only its loops show it. So it
// has to be this call whose arguments are missing: other calls may pop something in C, too, as that of
// a function which returns a structure, or of __morestack (-fsplit-stack).

// aligned is the depth of a stack pointer after an instruction that aligns it. Later depths count
// from there.
const aligned = -1 << 20

// maxWork bounds how many instructions of a section are executed for its sites.
const maxWork = 1 << 24

// instruction is one of a function.
type instruction struct {
	x86asm.Inst
	at   int
	jump int // the index of the instruction that it jumps to, -1 for none in the function
	pops int // what it pops as a call of a function that pops its arguments
}

// function is the code of one, decoded.
type function struct {
	decoded bool
	start   uint64 // in the section
	insts   []instruction
	popping bool // its calls may pop their arguments
	work    int  // how many instructions were executed for sites, of other functions too
}

// pops returns what the callee of a call at an offset in the section pops, 0 if nothing shows that
// it pops anything.
func (f *function) pops(site uint64) int64 {
	if !f.popping {
		return 0
	}
	i, ok := slices.BinarySearchFunc(f.insts, site, func(in instruction, at uint64) int { return cmp.Compare(f.start+uint64(in.at), at) })
	if f.work += len(f.insts); !ok || f.work > maxWork {
		return 0
	}
	in := &f.insts[i]
	popped := in.pops
	in.pops = 0
	without := isConsistent(f.insts, true)
	in.pops = popped
	if without {
		return 0
	}
	return int64(popped)
}

// decodeFunction decodes a function. It has no instructions if it holds what is not known.
func decodeFunction(start uint64, code []byte) function {
	f := function{decoded: true, start: start}
	index := map[int]int{}
	for at := 0; at < len(code); {
		inst, err := x86asm.Decode(code[at:], 32)
		if bytes.HasPrefix(code[at:], endbr32) {
			inst, err = x86asm.Inst{Op: x86asm.NOP, Len: len(endbr32)}, nil
		}
		if err != nil || inst.Len == 0 {
			return function{decoded: true, start: start}
		}
		index[at] = len(f.insts)
		f.insts = append(f.insts, instruction{Inst: inst, at: at, jump: -1})
		at += inst.Len
	}
	for i := range f.insts {
		in := &f.insts[i]
		if rel, ok := in.Args[0].(x86asm.Rel); ok && in.Op != x86asm.CALL {
			if to, ok := index[in.at+in.Len+int(rel)]; ok {
				in.jump = to
			}
		}
		if in.Op == x86asm.CALL {
			in.pops = pops(f.insts, i)
		}
	}
	f.popping = !isConsistent(f.insts, false) && isConsistent(f.insts, true)
	return f
}

// pops returns what a call pops, if its callee pops its arguments. Pushes from the start of the
// function on save registers: the call behind them is for the address of the global offset table.
func pops(insts []instruction, call int) int {
	pushed, first := 0, call-1
	for ; first >= 0; first-- {
		if insts[first].Op == x86asm.PUSH {
			pushed += wordLen
		} else if changesStack(&insts[first].Inst) {
			break
		}
	}
	if first < 0 {
		return 0
	}
	for i := call + 1; i < len(insts); i++ {
		if imm, ok := stackConstant(&insts[i], x86asm.SUB); ok && !isPushedNext(insts, i) {
			return imm
		}
		if changesStack(&insts[i].Inst) {
			break
		}
	}
	return pushed
}

// isPushedNext reports whether the next change of the stack pointer is a push.
func isPushedNext(insts []instruction, i int) bool {
	for i++; i < len(insts); i++ {
		if changesStack(&insts[i].Inst) {
			return insts[i].Op == x86asm.PUSH
		}
	}
	return false
}

// stackConstant returns the constant that an instruction adds to the stack pointer, or subtracts.
func stackConstant(in *instruction, op x86asm.Op) (int, bool) {
	imm, ok := in.Args[1].(x86asm.Imm)
	return int(imm), ok && in.Op == op && in.Args[0] == x86asm.ESP
}

// depth is how far the stack pointer is above where it was at a function's start, and the frame
// pointer once it is set.
type depth struct {
	reached, known bool
	esp, ebp       int
}

// isConsistent reports whether a function's stack pointer is at one depth before each instruction,
// and where it was at its returns. Calls pop their arguments if popping.
func isConsistent(insts []instruction, popping bool) bool {
	if len(insts) == 0 {
		return true
	}
	before := make([]depth, len(insts))
	before[0] = depth{reached: true, known: true}
	for work := []int{0}; len(work) > 0; {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		in, d := &insts[i], before[i]
		leaves := in.Op == x86asm.RET || in.Op == x86asm.JMP
		if _, direct := in.Args[0].(x86asm.Rel); leaves && in.jump < 0 && (in.Op == x86asm.RET || direct) && d.known && d.esp != 0 {
			return false
		}
		d.pass(in, popping)
		var next []int
		if in.jump >= 0 {
			next = append(next, in.jump)
		}
		if !leaves && in.Op != x86asm.UD2 && in.Op != x86asm.HLT && i+1 < len(insts) {
			next = append(next, i+1)
		}
		for _, to := range next {
			switch old := &before[to]; {
			case !old.reached:
				*old = d
				work = append(work, to)
			case old.known && d.known && old.esp != d.esp:
				return false
			}
		}
	}
	return true
}

// pass executes an instruction.
func (d *depth) pass(in *instruction, popping bool) {
	add, isAdd := stackConstant(in, x86asm.ADD)
	sub, isSub := stackConstant(in, x86asm.SUB)
	m, isMem := in.Args[1].(x86asm.Mem)
	isLea := in.Op == x86asm.LEA && in.Args[0] == x86asm.ESP && isMem && m.Index == 0
	rel, isRel := in.Args[0].(x86asm.Rel)
	switch {
	case in.Op == x86asm.PUSH || in.Op == x86asm.PUSHFD:
		d.esp -= wordLen
	case in.Op == x86asm.POP || in.Op == x86asm.POPFD:
		d.esp += wordLen
		d.known = d.known && in.Args[0] != x86asm.ESP
	case isAdd:
		d.esp += add
	case isSub:
		d.esp -= sub
	case isLea && m.Base == x86asm.ESP:
		d.esp += int(m.Disp)
	case isLea && m.Base == x86asm.EBP:
		d.esp, d.known = d.ebp+int(m.Disp), true
	case in.Op == x86asm.MOV && in.Args[0] == x86asm.EBP && in.Args[1] == x86asm.ESP:
		d.ebp = d.esp
	case in.Op == x86asm.MOV && in.Args[0] == x86asm.ESP && in.Args[1] == x86asm.EBP:
		d.esp, d.known = d.ebp, true
	case in.Op == x86asm.LEAVE:
		d.esp, d.known = d.ebp+wordLen, true
	case in.Op == x86asm.CALL && isRel && rel == 0: // for its own address
		d.esp -= wordLen
	case in.Op == x86asm.CALL && popping:
		d.esp += in.pops
	case in.Op == x86asm.AND && in.Args[0] == x86asm.ESP:
		d.esp = aligned
	case in.Args[0] == x86asm.ESP && in.Op != x86asm.CMP && in.Op != x86asm.TEST && in.Op != x86asm.PUSH:
		d.known = false
	}
}
