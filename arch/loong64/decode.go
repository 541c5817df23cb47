package loong64

import (
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

const (
	insnLen = 4
	pairLen = 8

	// A branch is an opcode in the upper 6 bits. Offsets are in words; b and bl have the
	// upper 10 bits of theirs below the lower 16 (LoongArch reference manual, 2.2.5).
	branchMask = 0xfc000000
	opB        = 0x50000000 // b offs26
	opBL       = 0x54000000 // bl offs26
	opJIRL     = 0x4c000000 // jirl rd, rj, offs16

	// Of these the opcode is in the upper 7 bits, and rd in the lower 5.
	pcMask      = 0xfe000000
	opPCALAU12I = 0x1a000000 // pcalau12i rd, si20
	opPCADDU12I = 0x1c000000 // pcaddu12i rd, si20
	opPCADDU18I = 0x1e000000 // pcaddu18i rd, si20

	loadMask = 0xffc00000
	opLDD    = 0x28c00000 // ld.d rd, rj, si12
	opLDHU   = 0x2a400000 // ld.hu rd, rj, si12

	regZero = 0 // the link register of a jump
	regRA   = 1 // the link register of a call
	regA0   = 4

	call30 = 127 // R_LARCH_CALL30, which debug/elf does not know
)

const (
	fixPLT  = "compile without -fno-plt and -mcmodel=extreme, and do not take the stub's address"
	fixPair = "use the call36 or tail36 pseudoinstruction"
)

// Decode recognises bl and b, the pairs that gcc's and clang's medium code model has in
// their place, and marked nops.
func (Machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	if typ := elf.R_LARCH(r.Type); typ >= elf.R_LARCH_MARK_LA && typ <= elf.R_LARCH_SOP_POP_32_U {
		return arch.Site{}, arch.Refuse("assemble with binutils 2.40 or later, or with clang",
			"%s, of version 0 of the ABI of objects", Machine{}.RelocName(r.Type))
	}
	for _, paired := range relocs[1:] {
		if elf.R_LARCH(paired.Type) != elf.R_LARCH_RELAX {
			return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", Machine{}.RelocName(paired.Type))
		}
	}
	switch elf.R_LARCH(r.Type) {
	case elf.R_LARCH_B26:
		return branch.Decode(t, r)
	case elf.R_LARCH_CALL36:
		return call.Decode(t, r)
	case elf.R_LARCH_NONE:
		return mark.Decode(t, r)
	case elf.R_LARCH_B16, elf.R_LARCH_B21:
		return arch.Site{}, arch.Refuse("branch around an unconditional b instead", "a conditional or indirect branch to the stub")
	case elf.R_LARCH_PCALA_HI20, elf.R_LARCH_PCALA_LO12:
		return arch.Site{}, arch.RefuseAddress("compile without -mcmodel=medium, or with gcc 14 or clang 18; "+arch.FixDirect, "the stub's address, from its page")
	case elf.R_LARCH_GOT_PC_HI20, elf.R_LARCH_GOT_PC_LO12, elf.R_LARCH_GOT64_PC_LO20, elf.R_LARCH_GOT64_PC_HI12:
		return arch.Site{}, arch.RefuseAddress(fixPLT, "a load of the stub's address from the GOT")
	case elf.R_LARCH_32, elf.R_LARCH_64:
		return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "an absolute address")
	case call30:
		return arch.Site{}, arch.Refuse("compile with -mcmodel=normal or medium", "a call by pcaddu12i and jirl")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

var (
	branch = forms.Branch{Len: insnLen, Align: insnLen, Site: "a branch", Reaches: "a call or jump", Form: branchForm}
	call   = forms.Branch{Len: pairLen, Align: insnLen, Site: "a call", Reaches: "a call or jump", Form: pairForm}
)

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

func pairForm(code []byte) (arch.Form, error) {
	first, second := pair(code)
	link := second & 31
	switch {
	case !isPair(first, second):
		return 0, arch.Refuse(arch.FixDirect, "no pcaddu18i and jirl but instructions %08x %08x", first, second)
	case link == regRA:
		return arch.Call, nil
	case link == regZero:
		return arch.Tail, nil
	}
	return 0, arch.Refuse(fixPair, "a call that links through $r%d", link)
}

// pair returns two instructions.
func pair(code []byte) (first, second uint32) {
	return binary.LittleEndian.Uint32(code), binary.LittleEndian.Uint32(code[insnLen:])
}

// isPair reports whether two instructions are pcaddu18i and jirl through its register.
func isPair(first, second uint32) bool {
	return first&pcMask == opPCADDU18I && second&branchMask == opJIRL && second>>5&31 == first&31
}

// Live recognises bl and b, also as linkers make them of a pair, and the pair.
func (Machine) Live(t arch.Text, record uint64) bool {
	_, ok := Machine{}.Branch(t, record)
	return ok
}

// Branch reads what Branches does.
func (Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	return forms.First(t, at, Machine{}.Branches, pairLen, insnLen)
}

// Branches reads bl, b and the pair.
func (Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+insnLen <= len(code); i += insnLen {
		insn, at := binary.LittleEndian.Uint32(code[i:]), pc+uint64(i)
		switch {
		case insn&branchMask == opBL, insn&branchMask == opB:
			words := int64(int32(insn<<22)>>6) | int64(insn>>10&0xffff) // offs[25:16], signed, and offs[15:0]
			f(at, at+uint64(words)*insnLen)
		case i+pairLen <= len(code):
			if first, second := pair(code[i:]); isPair(first, second) {
				f(at, at+signed20(first)<<18+uint64(int64(int32(second<<6)>>16)*insnLen))
			}
		}
	}
}

// signed20 returns the immediate of an instruction of 20 bits, behind rd.
func signed20(insn uint32) uint64 { return uint64(int64(int32(insn<<7) >> 12)) }

// signed12 returns the immediate of a load, behind rj and rd.
func signed12(insn uint32) uint64 { return uint64(int64(int32(insn<<10) >> 20)) }

// Slots reads ld.d from an address that the instruction before it begins: pcaddu12i is
// what the entries of procedure linkage tables have, and pcalau12i code that loads what is
// in the global offset table.
func (Machine) Slots(code []byte, pc, _ uint64, f func(at, slot uint64)) {
	for i := 0; i+pairLen <= len(code); i += insnLen {
		first, load := pair(code[i:])
		if load&loadMask != opLDD || load>>5&31 != first&31 {
			continue
		}
		at := pc + uint64(i)
		switch first & pcMask {
		case opPCADDU12I:
			f(at, at+signed20(first)<<12+signed12(load))
		case opPCALAU12I:
			f(at, at&^0xfff+signed20(first)<<12+signed12(load))
		}
	}
}
