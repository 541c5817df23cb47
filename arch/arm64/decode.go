package arm64

import (
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

const (
	insnLen = 4

	// An unconditional branch is an opcode in the upper 6 bits and a word
	// offset in the lower 26 (Arm ARM, C6.2.26 and C6.2.34).
	branchMask = 0xfc000000
	opB        = 0x14000000 // b label
	opBL       = 0x94000000 // bl label
)

const (
	fixNoPLT = "compile without -fno-plt, and do not take the stub's address"
)

// Decode recognises bl and b, and marked nops.
func (Machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	if len(relocs) > 1 {
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", Machine{}.RelocName(relocs[1].Type))
	}
	switch elf.R_AARCH64(r.Type) {
	case elf.R_AARCH64_CALL26, elf.R_AARCH64_JUMP26:
		return branch.Decode(t, r)
	case elf.R_AARCH64_NONE:
		return mark.Decode(t, r)
	case elf.R_AARCH64_CONDBR19, elf.R_AARCH64_TSTBR14:
		return arch.Site{}, arch.Refuse("branch around an unconditional b instead", "a conditional branch to the stub")
	case elf.R_AARCH64_ADR_GOT_PAGE, elf.R_AARCH64_LD64_GOT_LO12_NC:
		return arch.Site{}, arch.RefuseAddress(fixNoPLT, "a load of the stub's address from the GOT")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

var branch = forms.Branch{Len: insnLen, Align: insnLen, Site: "a branch", Reaches: "a branch", Form: branchForm}

func branchForm(code []byte) (arch.Form, error) {
	switch insn := binary.LittleEndian.Uint32(code); insn & branchMask {
	case opBL:
		return arch.Call, nil
	case opB:
		return arch.Tail, nil
	default:
		return 0, arch.Refuse(arch.FixDirect, "no bl and no b but instruction %08x", insn)
	}
}

// Live recognises bl and b.
func (Machine) Live(t arch.Text, record uint64) bool {
	code := t.At(record, insnLen)
	if code == nil {
		return false
	}
	op := binary.LittleEndian.Uint32(code) & branchMask
	return op == opBL || op == opB
}

// Branch reads bl, b and b.cond.
func (Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	return forms.First(t, at, Machine{}.Branches, insnLen)
}

// Branches reads bl, b and b.cond, whose distances are in words.
func (Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+insnLen <= len(code); i += insnLen {
		insn, at := binary.LittleEndian.Uint32(code[i:]), pc+uint64(i)
		switch {
		case insn&branchMask == opBL, insn&branchMask == opB:
			f(at, at+uint64(int64(int32(insn<<6)>>6)*insnLen))
		case insn>>24 == 0x54: // b.cond imm19
			f(at, at+uint64(int64(int32(insn<<8)>>13)*insnLen))
		}
	}
}

// Slots reads adrp and, next to it, ldr of a doubleword from that page: what the
// entries of procedure linkage tables begin with.
func (Machine) Slots(code []byte, pc, _ uint64, f func(at, slot uint64)) {
	for i := 0; i+2*insnLen <= len(code); i += insnLen {
		adrp, ldr := binary.LittleEndian.Uint32(code[i:]), binary.LittleEndian.Uint32(code[i+insnLen:])
		if adrp&0x9f000000 != 0x90000000 || ldr&0xffc00000 != 0xf9400000 || ldr>>5&31 != adrp&31 {
			continue
		}
		at := pc + uint64(i)
		pages := int64(int32(adrp<<8)>>13)<<2 | int64(adrp>>29&3) // immhi:immlo, signed
		f(at, at&^0xfff+uint64(pages<<12)+uint64(ldr>>10&0xfff)*8)
	}
}
