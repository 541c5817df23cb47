package i386

import (
	"bytes"
	"cmp"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// How far the stack pointer is from where it was at a function's start has to be the same on all
// ways to an instruction, and 0 at a return. In a function whose calls pop their arguments it is
// not, unless what they pop is counted. A call pops what the code behind it takes off the stack
// pointer again; where nothing is taken off at once, it pops what the code before the call pushes, or
// at most what it stores at the stack pointer.
//
// Functions with variable arguments, such as printf, do not pop them, and what functions of the object pop is in
// their code (callees.go). Where neither all other calls pop their arguments nor none, each of them may.
//
// Where a function restores the stack pointer from the frame pointer, only its loops show it. So it
// has to be this call whose arguments are missing: other calls may pop something in C, too, as that of
// a function which returns a structure, or of __morestack (-fsplit-stack).

const (
	// aligned is the depth of a stack pointer after an instruction that aligns it. Later depths
	// count from there.
	aligned = -1 << 20
	// maxVisits bounds how often the instructions of a function are executed, on average.
	maxVisits = 16
)

// maxWork bounds how many instructions of a section are executed for its sites.
const maxWork = 1 << 24

// instruction is one of a function.
type instruction struct {
	x86asm.Inst
	at        int
	jump      int      // the index of the instruction that it jumps to, -1 for none in the function
	pops      interval // of a call, if its callee pops its arguments
	popsKnown bool     // pops is what the callee's code says, or its name
}

// interval has numbers of bytes.
type interval struct{ least, most int }

func exactly(n int) interval { return interval{n, n} }

func (i interval) plus(j interval) interval { return interval{i.least + j.least, i.most + j.most} }

// function is the code of one, decoded.
type function struct {
	decoded bool
	start   uint64 // in the section
	insts   []instruction
	popping bool // its calls may pop their arguments
	mixed   bool // or some of them: functions with variable arguments never do
	work    int  // how many instructions were executed for sites, of other functions too
}

// at makes f the function of a frame.
func (f *function) at(frame arch.Frame, frames arch.Frames) *function {
	if !f.decoded || f.start != frame.Function {
		work := f.work
		*f = decodeFunction(frame.Function, frames.Code(frame), frames)
		f.work = work
	}
	return f
}

// pops returns what the callee of a call at an offset in the section pops, 0 if nothing shows that
// it pops anything.
func (f *function) pops(site uint64) int64 {
	if !f.popping && !f.mixed {
		return 0
	}
	i, ok := slices.BinarySearchFunc(f.insts, site, func(in instruction, at uint64) int { return cmp.Compare(f.start+uint64(in.at), at) })
	if f.work += len(f.insts); !ok || f.work > maxWork {
		return 0
	}
	in := &f.insts[i]
	pops := in.pops
	in.pops = interval{}
	without := isConsistent(f.insts, true)
	in.pops = pops
	if without {
		return 0
	}
	return int64(pops.most)
}

// decodeFunction decodes a function, and finds out which calls of it may pop their arguments.
func decodeFunction(start uint64, code []byte, frames arch.Frames) function {
	f := function{decoded: true, start: start, insts: decode(code)}
	if isConsistent(f.insts, false) {
		return f
	}
	f.learnCallees(frames)
	if f.popping = isConsistent(f.insts, true); f.popping {
		return f
	}
	for i := range f.insts {
		if in := &f.insts[i]; in.Op == x86asm.CALL && !in.popsKnown {
			in.pops.least = 0
			if callerPops(f.insts, i) {
				in.pops.most = 0
			}
		}
	}
	f.mixed = isConsistent(f.insts, true)
	return f
}

// decode decodes the code of a function. It returns nil if an instruction is unknown.
func decode(code []byte) (insts []instruction) {
	index := map[int]int{}
	for at := 0; at < len(code); {
		inst, err := x86asm.Decode(code[at:], 32)
		if bytes.HasPrefix(code[at:], endbr32) {
			inst, err = x86asm.Inst{Op: x86asm.NOP, Len: len(endbr32)}, nil
		}
		if err != nil || inst.Len == 0 {
			return nil
		}
		index[at] = len(insts)
		insts = append(insts, instruction{Inst: inst, at: at, jump: -1})
		at += inst.Len
	}
	for i := range insts {
		in := &insts[i]
		if rel, ok := in.Args[0].(x86asm.Rel); ok && in.Op != x86asm.CALL {
			if to, ok := index[in.at+in.Len+int(rel)]; ok {
				in.jump = to
			}
		}
		if in.Op == x86asm.CALL && !isOwnAddress(in) {
			in.pops = pops(insts, i)
		}
	}
	return insts
}

// pops returns what a call may pop, if its callee pops its arguments.
func pops(insts []instruction, call int) interval {
	pushed, stored, first := 0, 0, call-1
	for ; first >= 0; first-- {
		in := &insts[first]
		m, isMem := in.Args[0].(x86asm.Mem)
		if in.Op == x86asm.PUSH {
			pushed += wordLen
		} else if changesStack(&in.Inst) {
			break
		} else if in.Op == x86asm.MOV && isMem && m.Base == x86asm.ESP && m.Index == 0 && pushed == 0 {
			stored = max(stored, int(m.Disp)+wordLen)
		}
	}
	if first < 0 && stored == 0 && isAddressCall(insts, call) {
		return interval{}
	}
	for i := call + 1; i < len(insts); i++ {
		if imm, ok := stackConstant(&insts[i], x86asm.SUB); ok && !isPushedNext(insts, i) {
			return exactly(imm)
		}
		if changesStack(&insts[i].Inst) {
			break
		}
	}
	if pushed > 0 {
		return exactly(pushed)
	}
	return interval{0, stored} // of variables, too
}

// callerPops reports whether the code behind a call takes off all that the code before it has put onto
// the stack for it.
func callerPops(insts []instruction, call int) bool {
	added := 0
	for i := call - 1; i >= 0; i-- {
		if sub, ok := stackConstant(&insts[i], x86asm.SUB); ok {
			added += sub
			break
		}
		if insts[i].Op == x86asm.PUSH {
			added += wordLen
		} else if changesStack(&insts[i].Inst) {
			break
		}
	}
	for i := call + 1; i < len(insts); i++ {
		if add, ok := stackConstant(&insts[i], x86asm.ADD); ok {
			return add == added
		}
		if changesStack(&insts[i].Inst) {
			break
		}
	}
	return false
}

// isAddressCall reports whether a call may be for the address of the global offset table, to which
// the next instruction adds. The pushes before it save registers.
func isAddressCall(insts []instruction, call int) bool {
	if call+1 == len(insts) || insts[call+1].Op != x86asm.ADD {
		return false
	}
	_, constant := insts[call+1].Args[1].(x86asm.Imm)
	return constant && insts[call+1].Args[0] != x86asm.ESP
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

// anywhere is the distance in a landing pad.
var anywhere = interval{aligned, -aligned}

// depth is how far the stack pointer is above where it was at the function's start, before an
// instruction, and the frame pointer once it is set.
type depth struct {
	isReachable, isKnown bool
	esp, ebp             interval
}

// execution follows a function on all its ways.
type execution struct {
	insts    []instruction
	popping  bool // calls pop their arguments
	before   []depth
	work     []int
	indirect depth // before a jump through a table
}

// isConsistent reports whether a function's stack pointer can be at one depth before each
// instruction, and where it was at its returns. Calls pop their arguments if popping.
func isConsistent(insts []instruction, popping bool) bool {
	if len(insts) == 0 {
		return true
	}
	e := execution{insts: insts, popping: popping, before: make([]depth, len(insts))}
	e.enter(0, depth{isKnown: true})
	visits := 0
	for first := 0; ; {
		for len(e.work) > 0 {
			i := e.work[len(e.work)-1]
			e.work = e.work[:len(e.work)-1]
			if visits++; visits > maxVisits*len(insts) {
				return true // nothing is known
			}
			if !e.step(i) {
				return false
			}
		}
		for first < len(insts) && (e.before[first].isReachable || insts[first].Op == x86asm.NOP) {
			first++
		}
		if first == len(insts) {
			return true
		}
		e.enter(first, e.elsewhere())
	}
}

// elsewhere returns the depth before code that no direct jump leads to: that of a jump through a
// table, or in a landing pad any.
func (e *execution) elsewhere() depth {
	if e.indirect.isReachable {
		return e.indirect
	}
	return depth{isKnown: true, esp: anywhere, ebp: anywhere}
}

func (e *execution) enter(i int, d depth) {
	d.isReachable = true
	e.before[i] = d
	e.work = append(e.work, i)
}

// step executes an instruction, and reports whether what is known of the next ones can be true.
func (e *execution) step(i int) bool {
	in, d := &e.insts[i], e.before[i]
	leaves := in.Op == x86asm.RET || in.Op == x86asm.JMP
	if leaves && in.jump < 0 {
		if _, direct := in.Args[0].(x86asm.Rel); in.Op == x86asm.RET || direct {
			return !d.isKnown || d.esp.least <= 0 && d.esp.most >= 0
		}
		e.indirect = d
		return true
	}
	d.pass(in)
	if in.Op == x86asm.CALL && e.popping {
		d.esp = d.esp.plus(in.pops)
	}
	if in.jump >= 0 && !e.join(in.jump, d) {
		return false
	}
	return leaves || in.Op == x86asm.UD2 || in.Op == x86asm.HLT || i+1 == len(e.insts) || e.join(i+1, d)
}

// join takes a depth for that before an instruction, which is in all that are taken, and reports
// whether there is any such.
func (e *execution) join(i int, d depth) bool {
	old := e.before[i]
	if !old.isReachable {
		e.enter(i, d)
		return true
	}
	if !old.isKnown || !d.isKnown {
		return true
	}
	common := interval{max(old.esp.least, d.esp.least), min(old.esp.most, d.esp.most)}
	if common != old.esp {
		old.esp = common
		e.enter(i, old)
	}
	return common.least <= common.most
}

// isOwnAddress reports whether a call is of the next instruction, for its address.
func isOwnAddress(in *instruction) bool {
	rel, ok := in.Args[0].(x86asm.Rel)
	return ok && rel == 0
}

// pass executes an instruction.
func (d *depth) pass(in *instruction) {
	add, isAdd := stackConstant(in, x86asm.ADD)
	sub, isSub := stackConstant(in, x86asm.SUB)
	m, isMem := in.Args[1].(x86asm.Mem)
	disp := int(m.Disp)
	isLea := in.Op == x86asm.LEA && in.Args[0] == x86asm.ESP && isMem && m.Index == 0
	switch {
	case in.Op == x86asm.PUSH || in.Op == x86asm.PUSHFD || in.Op == x86asm.CALL && isOwnAddress(in):
		d.esp = d.esp.plus(exactly(-wordLen))
	case in.Op == x86asm.CALL:
	case in.Op == x86asm.POP || in.Op == x86asm.POPFD:
		d.esp = d.esp.plus(exactly(wordLen))
		d.isKnown = d.isKnown && in.Args[0] != x86asm.ESP
	case isAdd:
		d.esp = d.esp.plus(exactly(add))
	case isSub:
		d.esp = d.esp.plus(exactly(-sub))
	case isLea && m.Base == x86asm.ESP:
		d.esp = d.esp.plus(exactly(disp))
	case isLea && m.Base == x86asm.EBP:
		d.esp, d.isKnown = d.ebp.plus(exactly(disp)), true
	case in.Op == x86asm.MOV && in.Args[0] == x86asm.EBP && in.Args[1] == x86asm.ESP:
		d.ebp = d.esp
	case in.Op == x86asm.MOV && in.Args[0] == x86asm.ESP && in.Args[1] == x86asm.EBP:
		d.esp, d.isKnown = d.ebp, true
	case in.Op == x86asm.LEAVE:
		d.esp, d.isKnown = d.ebp.plus(exactly(wordLen)), true
	case in.Op == x86asm.AND && in.Args[0] == x86asm.ESP:
		d.esp = exactly(aligned)
	case in.Args[0] == x86asm.ESP && in.Op != x86asm.CMP && in.Op != x86asm.TEST:
		d.isKnown = false
	}
}
