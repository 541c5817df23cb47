package i386

import (
	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// Functions of stdcall and fastcall, and all with -mrtd, pop their arguments. Calls do not show
// it, but the unwind table of a function that finds its frame by the stack pointer does. gcc's
// has the stack pointer move at the end of such a call. clang's does not: there code behind the
// call moves the stack pointer back at once, which the table has no row for.

const (
	regESP  = 4 // in DWARF (Intel386 psABI, table 2.14)
	wordLen = 4
	// hiddenLen is what a function that returns a structure pops in C: the argument for its place.
	hiddenLen = wordLen
	// maxBehind is how many instructions behind a call are looked at.
	maxBehind = 64
	fixCdecl  = "compile without -mrtd, or declare the stub with __attribute__((cdecl))"
)

// CheckCalls refuses calls of functions that pop their arguments, which a NOP does not.
func (machine) CheckCalls(frames arch.Frames) func(arch.Text, arch.Site, arch.Kind) *arch.Refusal {
	var f function // of the last site
	return func(t arch.Text, s arch.Site, k arch.Kind) *arch.Refusal { return checkPops(t, s, k, frames, &f) }
}

func checkPops(t arch.Text, s arch.Site, k arch.Kind, frames arch.Frames, f *function) *arch.Refusal {
	before, ok := frames.Frame(s.Offset)
	if k == arch.Enabled || !ok {
		return nil
	}
	if s.Form != arch.Call {
		return checkTail(s, k, f.at(before, frames), frames)
	}
	end := s.Offset + uint64(len(s.Code))
	popped := int64(0)
	if behind, ok := frames.Frame(end); ok && before.Register == regESP && behind.Register == regESP && before.Function == behind.Function {
		if popped = before.Distance - behind.Distance; popped == 0 {
			popped = restored(t, end, behind, frames)
		}
	}
	if popped == 0 {
		popped = f.at(before, frames).pops(s.Offset)
	}
	if popped <= 0 || popped%wordLen != 0 {
		return nil
	}
	return arch.RefuseSite(k, s.Form, fixCdecl, " of a function that pops %d bytes of arguments", popped)
}

// checkTail refuses a tail call in a function that pops its own arguments at another return: the
// callee pops as many there, and a return in its place none. Where a function has no other return,
// the object's other functions show how it was compiled.
func checkTail(s arch.Site, k arch.Kind, f *function, frames arch.Frames) *arch.Refusal {
	popped, returns := returned(f.insts)
	if popped > 0 {
		return arch.RefuseSite(k, s.Form, fixCdecl, " in a function that pops %d bytes of arguments", popped)
	}
	if returns {
		return nil
	}
	if !popsOwn(frames) {
		return nil
	}
	return arch.RefuseSite(k, s.Form, fixCdecl+", or with -fno-optimize-sibling-calls", " in an object whose functions pop their arguments")
}

// popsOwn reports whether functions of the object pop their arguments, more than C has them do.
func popsOwn(frames arch.Frames) bool {
	return hiddenLen < frames.MaxCount(func(code []byte) int {
		popped, _ := returned(decode(code))
		return popped
	})
}

// returned returns how many bytes of arguments a function pops at its returns, if it has any.
func returned(insts []instruction) (popped int, returns bool) {
	for i := range insts {
		if insts[i].Op == x86asm.RET {
			imm, _ := insts[i].Args[0].(x86asm.Imm)
			popped, returns = max(popped, int(imm)), true
		}
	}
	return popped, returns
}

// restored returns what the first instruction that changes the stack pointer subtracts from it, if
// the unwind table does not have that as a change of the frame.
func restored(t arch.Text, at uint64, frame arch.Frame, frames arch.Frames) int64 {
	for range maxBehind {
		if at < t.Start || at >= t.Start+uint64(len(t.Code)) {
			return 0
		}
		inst, err := x86asm.Decode(t.Code[at-t.Start:], 32)
		if err != nil || inst.Len == 0 {
			return 0
		}
		at += uint64(inst.Len)
		imm, constant := inst.Args[1].(x86asm.Imm)
		switch {
		case inst.Op == x86asm.SUB && inst.Args[0] == x86asm.ESP && constant:
			if now, ok := frames.Frame(at); ok && now == frame {
				return int64(imm)
			}
			return 0
		case changesStack(&inst):
			return 0
		}
	}
	return 0
}

// changesStack reports whether an instruction may change the stack pointer, or where code goes on.
func changesStack(inst *x86asm.Inst) bool {
	if _, jumps := inst.Args[0].(x86asm.Rel); jumps || inst.Args[0] == x86asm.ESP {
		return true
	}
	switch inst.Op {
	case x86asm.PUSH, x86asm.POP, x86asm.PUSHF, x86asm.PUSHFD, x86asm.POPF, x86asm.POPFD, x86asm.PUSHAD, x86asm.POPAD,
		x86asm.CALL, x86asm.RET, x86asm.JMP, x86asm.LEAVE, x86asm.ENTER, x86asm.UD2, x86asm.HLT, x86asm.INT:
		return true
	}
	return false
}
