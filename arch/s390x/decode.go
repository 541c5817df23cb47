package s390x

import (
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

const (
	siteLen  = 6 // of brasl, brcl and all others with a 32-bit distance (format RIL)
	fieldAt  = 2 // the distance, behind the opcode
	halfword = 2

	// The opcode of RIL is the first byte and the lower half of the second, whose upper
	// half is a register or, of brcl, a condition.
	opLARL  = 0xc00 // larl %r1, distance
	opBRCL  = 0xc04 // brcl m1, distance
	opBRASL = 0xc05 // brasl %r1, distance
	opLLHRL = 0xc42 // llhrl %r1, distance
	opLGRL  = 0xc48 // lgrl %r1, distance

	always = 15 // the condition of jg
	never  = 0  // the condition of a NOP

	regFentry = 0  // the link register of calls before a function's prologue (-mfentry)
	regReturn = 14 // the link register of all others
)

// addend makes of a distance from the field one from the instruction.
const addend = fieldAt

const (
	fixNoPLT = "compile without -fno-plt, and do not take the stub's address"
	fixLong  = "use brasl or jg"
)

// opcode returns that of the RIL format, and the half byte beside it.
func opcode(code []byte) (op uint16, half byte) {
	return uint16(code[0])<<4 | uint16(code[1]&0xf), code[1] >> 4
}

// target returns where the distance of an instruction leads, which is at an address.
func target(code []byte, at uint64) uint64 {
	return at + uint64(int64(int32(binary.BigEndian.Uint32(code[fieldAt:])))*halfword)
}

// Decode recognises brasl, jg and the conditional brcl, and marked nops.
func (Machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	if len(relocs) > 1 {
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", Machine{}.RelocName(relocs[1].Type))
	}
	switch elf.R_390(r.Type) {
	case elf.R_390_PLT32DBL, elf.R_390_PC32DBL:
		return long.Decode(t, r)
	case elf.R_390_NONE:
		return mark.Decode(t, r)
	case elf.R_390_PLT16DBL, elf.R_390_PC16DBL:
		return arch.Site{}, arch.Refuse(fixLong, "a branch with a distance of 16 bits, too short for its disabled form")
	case elf.R_390_GOTENT, elf.R_390_GOT12, elf.R_390_GOT16, elf.R_390_GOT20, elf.R_390_GOT32, elf.R_390_GOT64,
		elf.R_390_GOTPLTENT, elf.R_390_GOTPLT12, elf.R_390_GOTPLT16, elf.R_390_GOTPLT20, elf.R_390_GOTPLT32, elf.R_390_GOTPLT64:
		return arch.Site{}, arch.RefuseAddress(fixNoPLT, "a load of the stub's address from the GOT")
	case elf.R_390_64, elf.R_390_32:
		return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "an absolute address")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

var long = forms.Branch{
	Len: siteLen, Align: halfword, Field: fieldAt, Site: "an instruction", Reaches: "a branch", Form: longForm,
}

func longForm(code []byte) (arch.Form, error) {
	switch op, half := opcode(code); {
	case op == opBRASL && half != regReturn && half != regFentry:
		return 0, arch.Refuse("call with brasl %r14", "a call that links through %%r%d", half)
	case op == opBRASL:
		return arch.Call, nil
	case op == opBRCL && half == always:
		return arch.Tail, nil
	case op == opBRCL && half != never:
		return arch.CondTail, nil
	case op == opLARL:
		return 0, arch.RefuseAddress(arch.FixDirect, "a load of the stub's address with larl")
	}
	return 0, arch.RefuseAddress(arch.FixDirect, "no brasl and no jg but instruction % x", code[:fieldAt])
}

// isBranch reports whether an instruction is brasl, or a brcl that may be taken.
func isBranch(code []byte) bool {
	op, half := opcode(code)
	return op == opBRASL || op == opBRCL && half != never
}

// Live recognises what Branch does.
func (Machine) Live(t arch.Text, record uint64) bool {
	_, ok := Machine{}.Branch(t, record)
	return ok
}

// Branch reads brasl and brcl.
func (Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	code := t.At(at, siteLen)
	if code == nil || !isBranch(code) {
		return 0, false
	}
	return target(code, at), true
}

// Branches reads brasl and brcl, whose distances are in halfwords.
func (Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+siteLen <= len(code); i += halfword {
		if code[i] == opBRCL>>4 && isBranch(code[i:]) {
			f(pc+uint64(i), target(code[i:], pc+uint64(i)))
		}
	}
}

// Slots reads lgrl, and larl with lg of what is there next to it: what the entries of
// procedure linkage tables begin with.
func (Machine) Slots(code []byte, pc, _ uint64, f func(at, slot uint64)) {
	for i := 0; i+siteLen <= len(code); i += halfword {
		at := pc + uint64(i)
		switch op, reg := opcode(code[i:]); {
		case op == opLGRL:
			f(at, target(code[i:], at))
		case op == opLARL && i+2*siteLen <= len(code) && isLoad(code[i+siteLen:], reg):
			f(at, target(code[i:], at))
		}
	}
}

// isLoad reports whether code is lg %rx,0(base), without an index.
func isLoad(code []byte, base byte) bool {
	return code[0] == 0xe3 && code[1]&0xf == 0 && code[2] == base<<4 && code[3] == 0 && code[4] == 0 && code[5] == 0x04
}
