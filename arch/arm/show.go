package arm

import (
	"fmt"
	"sync"

	"sdtconvert/arch"
)

// Disassemble shows the instructions that sites, their disabled forms and helpers consist of,
// and all others as data. Which instruction set they are of is told from their bytes, as
// Disabled tells it.
func (m Machine) Disassemble(code []byte, pc uint64) []string {
	var out []string
	for len(code) >= halfword {
		text, n := m.show(code, pc)
		out = append(out, text...)
		code, pc = code[n:], pc+uint64(n)
	}
	return out
}

// show shows what is next: two instructions of Thumb where they are of one form.
func (m Machine) show(code []byte, pc uint64) (text []string, n int) {
	if len(code) < insnLen {
		return []string{showHalfword(uint32(m.order.code().Uint16(code)), pc)}, halfword
	}
	thumb, a32 := m.order.readThumb(code), m.order.readA32(code)
	if thumb == retNop || thumb == zeroRet || isCondRet(thumb) {
		return []string{showHalfword(thumb>>16, pc), showHalfword(thumb&0xffff, pc+halfword)}, insnLen
	}
	line := ""
	if thumb>>16 != 0 {
		line = fixedThumb()[thumb]
	}
	if line == "" {
		line = showA32(a32)
	}
	if b, to, ok := m.find(arch.Text{Code: code, Start: pc}, pc); line == "" && ok {
		line = b.show(thumb, a32, to)
	}
	if line == "" {
		line = fmt.Sprintf(".word 0x%08x", a32)
	}
	return []string{line}, insnLen
}

// conditions are what instructions are called by theirs.
var conditions = [...]string{"eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", ""}

// fixedThumb are the texts of the Thumb instructions without operands that differ, of one halfword or two.
var fixedThumb = sync.OnceValue(func() map[uint32]string {
	return map[uint32]string{
		nopT: "nop", oldNopT: "nop", retT: "bx lr", movsT: "movs r0, #0", wideNop: "nop.w", zeroT: "mov.w r0, #0",
	}
})

// shownA32 are those of A32, without a condition; it takes the place of %s.
var shownA32 = sync.OnceValue(func() map[uint32]string {
	return map[uint32]string{
		nop & anyCondition: "nop%s", oldNop & anyCondition: "nop%s", ret & anyCondition: "bx%s lr", zero & anyCondition: "mov%s r0, #0",
		addPC & anyCondition: "add%s r0, pc, r0", ldrh & anyCondition: "ldrh%s r0, [r0]",
	}
})

// showHalfword shows an instruction of Thumb of one halfword.
func showHalfword(insn uint32, pc uint64) string {
	if line, ok := fixedThumb()[insn]; ok {
		return line
	}
	if insn>>12 == condT>>12 && insn>>8&0xf < always {
		return fmt.Sprintf("b%s.n 0x%x", conditions[insn>>8&0xf], wrap(pc+aheadThumb+uint64(int64(int8(insn))*halfword)))
	}
	return fmt.Sprintf(".short 0x%04x", insn)
}

// showA32 shows an instruction of A32 other than a branch.
func showA32(insn uint32) string {
	if insn>>28 == never {
		return ""
	}
	cond := conditions[insn>>28]
	if format, ok := shownA32()[insn&anyCondition]; ok {
		return fmt.Sprintf(format, cond)
	}
	switch insn &^ immediate & anyCondition {
	case movw & anyCondition:
		return fmt.Sprintf("movw%s r0, #%d", cond, immediateOf(insn))
	case movt & anyCondition:
		return fmt.Sprintf("movt%s r0, #%d", cond, immediateOf(insn))
	}
	return ""
}

// show shows a branch, whose instruction is one of the two.
func (b branch) show(thumb, a32 uint32, to uint64) string {
	name, suffix := "b", ""
	switch {
	case b.swaps:
		name = "blx"
	case b.form == arch.Call:
		name = "bl"
	case b.thumb:
		suffix = ".w"
	}
	switch {
	case !b.thumb && !b.swaps:
		suffix = conditions[a32>>28]
	case b.thumb && b.form == arch.CondTail:
		suffix = conditions[thumb>>22&0xf] + suffix
	}
	return fmt.Sprintf("%s%s 0x%x", name, suffix, to)
}
