package ppc64

import (
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

const (
	insnLen = 4

	opBC = 16 // bc bo, bi, distance
	opB  = 18 // b distance

	linkBit     = 1 // of a branch that sets the link register
	absoluteBit = 2 // of one whose field is an address and no distance
)

const (
	fixNoPLT  = "compile without -fno-plt and -mlongcall, and do not take the stub's address"
	fixBranch = "branch around an unconditional b instead"
)

// opcode returns the primary one.
func opcode(insn uint32) uint32 { return insn >> 26 }

// Decode recognises bl, b and marked nops.
func (m Machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	if len(relocs) > 1 {
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", m.RelocName(relocs[1].Type))
	}
	switch elf.R_PPC64(r.Type) {
	case elf.R_PPC64_REL24, elf.R_PPC64_REL24_NOTOC, elf.R_PPC64_REL24_P9NOTOC:
		return m.branch().Decode(t, r)
	case elf.R_PPC64_NONE:
		return m.mark().Decode(t, r)
	case elf.R_PPC64_REL14, elf.R_PPC64_REL14_BRTAKEN, elf.R_PPC64_REL14_BRNTAKEN,
		elf.R_PPC64_ADDR14, elf.R_PPC64_ADDR14_BRTAKEN, elf.R_PPC64_ADDR14_BRNTAKEN:
		return arch.Site{}, arch.Refuse(fixBranch, "a conditional branch to the stub")
	case elf.R_PPC64_ADDR24:
		return arch.Site{}, arch.Refuse("use bl or b", "a branch to an absolute address")
	case elf.R_PPC64_PLT16_HA, elf.R_PPC64_PLT16_HI, elf.R_PPC64_PLT16_LO, elf.R_PPC64_PLT16_LO_DS,
		elf.R_PPC64_PLTSEQ, elf.R_PPC64_PLTCALL, elf.R_PPC64_PLTSEQ_NOTOC, elf.R_PPC64_PLTCALL_NOTOC,
		elf.R_PPC64_PLT_PCREL34, elf.R_PPC64_PLT_PCREL34_NOTOC:
		return arch.Site{}, arch.RefuseAddress(fixNoPLT, "a call through a register")
	case elf.R_PPC64_GOT16, elf.R_PPC64_GOT16_DS, elf.R_PPC64_GOT16_LO_DS, elf.R_PPC64_GOT16_HA, elf.R_PPC64_GOT_PCREL34:
		return arch.Site{}, arch.RefuseAddress(fixNoPLT, "a load of the stub's address from the GOT")
	case elf.R_PPC64_ADDR64, elf.R_PPC64_ADDR32, elf.R_PPC64_UADDR64:
		return arch.Site{}, arch.RefuseAddress("compile without -fno-plt and -mlongcall; "+arch.FixDirect, "an absolute address")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

// branch takes those of the machine's byte order.
func (m Machine) branch() *forms.Branch {
	form := func(code []byte) (arch.Form, error) {
		switch insn := m.insn(code); {
		case opcode(insn) != opB || insn&absoluteBit != 0:
			return 0, arch.RefuseAddress(arch.FixDirect, "no bl and no b but instruction %08x", insn)
		case insn&linkBit == 0:
			return arch.Tail, nil
		}
		return arch.Call, nil
	}
	return &forms.Branch{Len: insnLen, Align: insnLen, Site: "an instruction", Reaches: "a branch", Form: form}
}

// mark takes the nop of the machine's byte order.
func (m Machine) mark() *forms.Mark {
	return &forms.Mark{
		Nops: [][]byte{m.code(insnNop)}, Align: insnLen, Want: "a nop", Fix: "mark ori 0, 0, 0",
		Show: func(code []byte) string { return fmt.Sprintf("instruction %08x", m.insn(code)) },
	}
}

// Live recognises what Branch does.
func (m Machine) Live(t arch.Text, record uint64) bool {
	_, ok := m.Branch(t, record)
	return ok
}

// Branch reads b and bc, with and without link.
func (m Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	code := t.At(at, insnLen)
	if code == nil {
		return 0, false
	}
	return target(m.insn(code), at)
}

// target returns where a branch at an address leads: the field is of words, but in place.
func target(insn uint32, at uint64) (to uint64, ok bool) {
	field := int64(0)
	switch opcode(insn) {
	case opB:
		field = int64(int32(insn<<6)) >> 6
	case opBC:
		field = int64(int16(insn))
	default:
		return 0, false
	}
	field &^= linkBit | absoluteBit
	if insn&absoluteBit != 0 {
		return uint64(field), true
	}
	return at + uint64(field), true
}

// Branches reads what Branch does.
func (m Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+insnLen <= len(code); i += insnLen {
		at := pc + uint64(i)
		if to, ok := target(m.insn(code[i:]), at); ok {
			f(at, to)
		}
	}
}
