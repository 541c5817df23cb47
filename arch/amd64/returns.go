package amd64

import (
	"bytes"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// Code behind a call that reads what is below the stack pointer reads the address that the call
// has left there. clang does so for -mspeculative-load-hardening, to learn whether the return was
// predicted: it compares the address with that of the code itself. A NOP leaves no address.
// With -mno-red-zone clang keeps the address in a register, and compares that.

const (
	slotLen            = 8  // of a return address
	maxBehind          = 64 // instructions behind a call that are looked at
	longestInstruction = 15 // bytes
	fixReturns         = "compile without -mspeculative-load-hardening, or with -mno-red-zone"
)

// CallCheck refuses a call if the code behind it reads the return address, which the call leaves
// below the stack pointer, before anything else is there.
func (machine) CallCheck(t arch.Text) func(s arch.Site, k arch.Kind) *arch.Refusal {
	c := &callCheck{text: t}
	return c.check
}

// callCheck checks the calls of a text.
type callCheck struct {
	text     arch.Text
	from, to int // of the text's code: no operand there is below the stack pointer
}

func (c *callCheck) check(s arch.Site, k arch.Kind) *arch.Refusal {
	t, end := &c.text, s.Offset+uint64(len(s.Code))
	if s.Form != arch.Call || end < t.Start || end > t.Start+uint64(len(t.Code)) || !c.mayReadBelow(int(end-t.Start)) {
		return nil
	}
	code := t.Code[end-t.Start:]
	moved := int64(0) // how far the stack pointer is from where it was behind the call
	for range maxBehind {
		inst, n := decode(code)
		if n == 0 {
			return nil
		}
		if slot, stored := accesses(&inst, moved); slot && !stored {
			return arch.RefuseSite(k, s.Form, fixReturns, " whose return address is read behind it")
		} else if slot {
			return nil
		}
		growth, follows := moves(&inst)
		if !follows || moved+growth < 0 {
			return nil // a push takes the slot
		}
		moved += growth
		code = code[n:]
	}
	return nil
}

// mayReadBelow reports whether an instruction that is looked at behind a call may have an operand below the stack pointer.
// Most code has none, and need not be decoded; calls that are near share what was seen of it.
func (c *callCheck) mayReadBelow(start int) bool {
	code := c.text.Code
	end := min(len(code), start+maxBehind*longestInstruction)
	if start < c.from || start > c.to {
		c.from, c.to = start, start
	}
	for ; c.to < end; c.to++ {
		next := bytes.IndexByte(code[c.to:end], sibRSP)
		if next < 0 {
			c.to = end
			break
		}
		if c.to += next; isBelow(code, c.to) {
			return true
		}
	}
	return false
}

// sibRSP is a SIB byte of %rsp without an index, as assemblers write it.
const sibRSP = 0x24

// isBelow reports whether a byte may be the SIB byte of an operand below the stack pointer: behind a ModRM byte for a
// displacement, which is negative.
func isBelow(code []byte, sib int) bool {
	const mod, disp8, disp32 = 0xc7, 0x44, 0x84 // without the register
	if sib == 0 {
		return false
	}
	switch code[sib-1] & mod {
	case disp8:
		return sib+1 < len(code) && code[sib+1] >= 0x80
	case disp32:
		return sib+4 < len(code) && code[sib+4] >= 0x80
	}
	return false
}

// accesses reports whether an instruction reads or stores to what the return address was in,
// and whether it only stores.
func accesses(inst *x86asm.Inst, moved int64) (slot, stored bool) {
	if inst.Op == x86asm.LEA || inst.Op == x86asm.NOP || isLocked(inst) {
		return false, false
	}
	for i, arg := range inst.Args {
		m, ok := arg.(x86asm.Mem)
		if !ok || m.Base != x86asm.RSP || m.Index != 0 || m.Segment != 0 {
			continue
		}
		from := moved + int64(int32(m.Disp)) // x86asm does not extend the sign of 32 bits
		if from < 0 && from+int64(inst.MemBytes) > -slotLen {
			return true, i == 0 && inst.Op == x86asm.MOV
		}
	}
	return false, false
}

// isLocked reports whether an instruction has the prefix LOCK. Memory barriers of kernels are
// locked additions of nothing below the stack pointer, and use no value.
func isLocked(inst *x86asm.Inst) bool {
	return slices.ContainsFunc(inst.Prefix[:], func(p x86asm.Prefix) bool { return p&0xff == x86asm.PrefixLOCK&0xff && p != 0 })
}

// moves returns what an instruction adds to the stack pointer. follows is false if what is
// executed next, or what the stack pointer is then, is not known.
func moves(inst *x86asm.Inst) (growth int64, follows bool) {
	if _, jumps := inst.Args[0].(x86asm.Rel); jumps || ends(inst.Op) || inst.Op == x86asm.CALL {
		return 0, false
	}
	imm, constant := inst.Args[1].(x86asm.Imm)
	switch {
	case inst.Op == x86asm.PUSH || inst.Op == x86asm.PUSHFQ:
		return -slotLen, true
	case inst.Op == x86asm.POP || inst.Op == x86asm.POPFQ:
		return slotLen, inst.Args[0] != x86asm.RSP
	case inst.Args[0] != x86asm.RSP || inst.Op == x86asm.CMP || inst.Op == x86asm.TEST:
		return 0, inst.Op != x86asm.LEAVE
	case inst.Op == x86asm.ADD && constant:
		return int64(imm), true
	case inst.Op == x86asm.SUB && constant:
		return -int64(imm), true
	}
	return 0, false
}
