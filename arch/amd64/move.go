package amd64

// Instructions that move: the instruction behind a site of one byte makes room for the jump of the site (E9Patch calls that successor
// eviction; Duck, Gao, Roychoudhury, PLDI 2020). A jump takes its place, at the same boundary, and it is executed elsewhere.

import (
	"encoding/binary"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

// Move implements arch.Evictor.
func (machine) Move(code []byte, from, to uint64) (arch.Moved, bool) {
	inst, n := decode(code)
	if n == 0 {
		return arch.Moved{}, false
	}
	m := mover{Moved: arch.Moved{Length: n, Ends: inst.Op == x86asm.JMP || inst.Op == x86asm.RET, NOP: inst.Op == x86asm.NOP}, code: code[:n], next: from + uint64(n), to: to}
	switch {
	case inst.Op == 0: // VEX or EVEX
		return m.result(!m.isRelative() && m.verbatim())
	case stays(inst.Op):
		return m.Moved, false
	case inst.Op == x86asm.NOP:
		return m.result(m.back())
	case inst.Op == x86asm.CALL:
		return m.result(m.call(&inst))
	case inst.PCRel == 0:
		return m.result(m.verbatim())
	}
	if target, ok := inst.Args[0].(x86asm.Rel); ok {
		return m.result(m.branch(inst.Op, m.next+uint64(int64(target))))
	}
	return m.result(m.relative(&inst))
}

// stays reports whether an instruction depends on where it is in a way that Move does not imitate, or is one at which programs, kernels or
// debuggers look: calls of the kernel, traps, and what jumps near only.
func stays(op x86asm.Op) bool {
	return slices.Contains([]x86asm.Op{
		x86asm.SYSCALL, x86asm.SYSENTER, x86asm.SYSEXIT, x86asm.SYSRET, x86asm.INT, x86asm.INTO, x86asm.ICEBP, x86asm.UD1, x86asm.UD2, x86asm.HLT,
		x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.XBEGIN, x86asm.XEND, x86asm.XABORT, x86asm.JRCXZ, x86asm.JECXZ, x86asm.JCXZ,
		x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE, x86asm.LJMP, x86asm.LCALL, x86asm.LRET,
	}, op)
}

// mover writes the code of one instruction.
type mover struct {
	arch.Moved
	code []byte // of the instruction
	next uint64 // the address behind it
	to   uint64 // where its code will be
}

func (m *mover) result(ok bool) (arch.Moved, bool) { return m.Moved, ok }

func (m *mover) add(code ...byte) { m.Code = append(m.Code, code...) }

// back adds the jump to what follows the instruction.
func (m *mover) back() bool {
	m.Done = len(m.Code)
	return m.jump(m.next)
}

// jump adds a jump.
func (m *mover) jump(target uint64) bool {
	code := machine{}.Jump(m.to+uint64(len(m.Code)), target)
	if code == nil {
		code = machine{}.FarJump(target)
	}
	m.add(code...)
	return true
}

func (m *mover) verbatim() bool {
	m.add(m.code...)
	return m.back()
}

// isRelative reports whether the operand of an instruction with a VEX or EVEX prefix is relative to the instruction.
func (m *mover) isRelative() bool {
	at := map[byte]int{0xc5: 3, 0xc4: 4, 0x62: 5}[m.code[0]]
	return at < len(m.code) && m.code[at]>>6 == 0 && m.code[at]&7 == 5
}

// relative adds an instruction whose operand in memory is relative to it.
func (m *mover) relative(inst *x86asm.Inst) bool {
	return m.relocated(inst) && m.back()
}

// relocated adds the instruction, with the distance from where it is now.
func (m *mover) relocated(inst *x86asm.Inst) bool {
	if inst.PCRel != 4 {
		return false
	}
	distance := int64(int32(binary.LittleEndian.Uint32(m.code[inst.PCRelOff:]))) + int64(m.next-m.to-uint64(len(m.Code)+len(m.code)))
	if distance != int64(int32(distance)) {
		return false
	}
	at := len(m.Code) + inst.PCRelOff
	m.add(m.code...)
	binary.LittleEndian.PutUint32(m.Code[at:], uint32(distance))
	return true
}

// branch adds a jump, which may have a condition.
func (m *mover) branch(op x86asm.Op, target uint64) bool {
	if op == x86asm.JMP {
		return m.jump(target)
	}
	condition := m.code[0]
	switch {
	case condition&^0x0f == 0x70: // of 8 bits
	case condition == 0x0f && m.code[1]&^0x0f == 0x80:
		condition = m.code[1]
	default: // with a prefix
		return false
	}
	distance := int64(target - m.to - 6)
	if distance != int64(int32(distance)) {
		return false
	}
	m.add(0x0f, 0x80|condition&0x0f) // jcc target
	m.Code = binary.LittleEndian.AppendUint32(m.Code, uint32(distance))
	return m.back()
}

// call adds a call: it pushes the address behind the instruction, and jumps.
func (m *mover) call(inst *x86asm.Inst) bool {
	m.Call = true
	m.add(0x68) // push $next, of which the upper half is the sign
	m.Code = binary.LittleEndian.AppendUint32(m.Code, uint32(m.next))
	if int64(m.next) != int64(int32(m.next)) {
		m.add(0xc7, 0x44, 0x24, 0x04) // movl $next>>32,4(%rsp)
		m.Code = binary.LittleEndian.AppendUint32(m.Code, uint32(m.next>>32))
	}
	m.Done = 1 << 30 // what follows is the call itself
	if target, ok := inst.Args[0].(x86asm.Rel); ok {
		return m.jump(m.next + uint64(int64(target)))
	}
	at := slices.Index(m.code, 0xff)
	if at < 0 || at > 2 || at+1 >= len(m.code) || usesStack(inst.Args[0]) {
		return false
	}
	code := slices.Clone(m.code)
	code[at+1] = code[at+1]&^0x38 | 4<<3 // jmp in place of call, with the same operand
	jump := mover{Moved: m.Moved, code: code, next: m.next, to: m.to}
	if inst.PCRel == 0 {
		m.add(code...)
		return true
	}
	ok := jump.relocated(inst)
	m.Code = jump.Code
	return ok
}

// usesStack reports whether an operand depends on the stack pointer.
func usesStack(arg x86asm.Arg) bool {
	mem, ok := arg.(x86asm.Mem)
	return arg == x86asm.RSP || ok && mem.Base == x86asm.RSP
}
