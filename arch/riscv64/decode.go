package riscv64

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

	opAUIPC = 0x17 // auipc rd, imm20
	opJALR  = 0x67 // jalr rd, imm12(rs1), with funct3 0
	opJAL   = 0x6f // jal rd, imm20

	regZero = 0 // the link register of a jump
	regRA   = 1 // the link register of a call
)

const (
	fixPLT = "compile without -mno-plt, and do not take the stub's address"
)

// Decode recognises the call and tail pseudoinstructions, and marked nops.
func (Machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	for _, paired := range relocs[1:] {
		if elf.R_RISCV(paired.Type) != elf.R_RISCV_RELAX {
			return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", Machine{}.RelocName(paired.Type))
		}
	}
	switch elf.R_RISCV(r.Type) {
	case elf.R_RISCV_CALL, elf.R_RISCV_CALL_PLT:
		return call.Decode(t, r)
	case elf.R_RISCV_NONE:
		return mark.Decode(t, r)
	case elf.R_RISCV_JAL, elf.R_RISCV_RVC_JUMP:
		return arch.Site{}, arch.Refuse("use the call or tail pseudoinstruction", "a jal to the stub, too short for its disabled form")
	case elf.R_RISCV_BRANCH, elf.R_RISCV_RVC_BRANCH:
		return arch.Site{}, arch.Refuse("branch around a tail pseudoinstruction instead", "a conditional branch to the stub")
	case elf.R_RISCV_GOT_HI20:
		return arch.Site{}, arch.RefuseAddress(fixPLT, "a load of the stub's address from the GOT")
	case elf.R_RISCV_64, elf.R_RISCV_32:
		return arch.Site{}, arch.RefuseAddress("compile without -mcmodel=large; "+arch.FixDirect, "an absolute address")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

var call = forms.Branch{Len: pairLen, Align: 1, Site: "a call", Reaches: "a call or jump", Form: pairForm}

func pairForm(code []byte) (arch.Form, error) {
	auipc, jalr := binary.LittleEndian.Uint32(code), binary.LittleEndian.Uint32(code[insnLen:])
	link := jalr >> 7 & 31
	switch {
	case auipc&0x7f != opAUIPC || jalr&0x707f != opJALR || jalr>>15&31 != auipc>>7&31:
		return 0, arch.Refuse(arch.FixDirect, "no auipc and jalr but instructions %08x %08x", auipc, jalr)
	case link == regRA:
		return arch.Call, nil
	case link == regZero:
		return arch.Tail, nil
	}
	return 0, arch.Refuse("use the call or tail pseudoinstruction", "a call that links through x%d", link)
}

// Live recognises the call and tail pseudoinstructions, and the jumps that
// linkers make of them.
func (Machine) Live(t arch.Text, record uint64) bool {
	if _, err := call.Decode(t, elfreloc.Relocation{Offset: record}); err == nil {
		return true
	}
	if code := t.At(record, insnLen); code != nil && code[0]&0x7f == opJAL {
		return true
	}
	code := t.At(record, 2)
	return code != nil && code[0]&3 == 1 && code[1]>>5 == 5 // c.j
}

// Branch reads what Branches does.
func (Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	return forms.First(t, at, Machine{}.Branches, pairLen, insnLen, 2)
}

// Branches reads what linkers make of the call and tail pseudoinstructions: the
// pair, jal, and c.j. Distances are in bytes.
func (Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+2 <= len(code); i += 2 {
		at, half := pc+uint64(i), binary.LittleEndian.Uint16(code[i:])
		if half&0xe003 == 0xa001 { // c.j
			f(at, at+distanceCJ(half))
		}
		if i+insnLen > len(code) {
			continue
		}
		insn := binary.LittleEndian.Uint32(code[i:])
		switch {
		case insn&0x7f == opJAL:
			f(at, at+distanceJAL(insn))
		case insn&0x7f == opAUIPC && i+pairLen <= len(code):
			if jalr := binary.LittleEndian.Uint32(code[i+insnLen:]); jalr&0x707f == opJALR && jalr>>15&31 == insn>>7&31 {
				f(at, at+uint64(int64(int32(insn&0xfffff000)))+uint64(int64(int32(jalr)>>20)))
			}
		}
	}
}

// distanceJAL puts imm[20|10:1|11|19:12] of a J-type instruction together.
func distanceJAL(insn uint32) uint64 {
	imm := insn>>31<<20 | insn&0xff000 | insn>>20&1<<11 | insn>>21&0x3ff<<1
	return uint64(int64(int32(imm<<11) >> 11))
}

// distanceCJ puts imm[11|4|9:8|10|6|7|3:1|5] of c.j together.
func distanceCJ(half uint16) uint64 {
	bit := func(from, to int) uint16 { return half >> from & 1 << to }
	imm := bit(12, 11) | bit(11, 4) | bit(10, 9) | bit(9, 8) | bit(8, 10) | bit(7, 6) | bit(6, 7) |
		bit(5, 3) | bit(4, 2) | bit(3, 1) | bit(2, 5)
	return uint64(int64(int16(imm<<4) >> 4))
}

// Slots reads auipc and, next to it, ld from there: what the entries of procedure
// linkage tables begin with.
func (Machine) Slots(code []byte, pc, _ uint64, f func(at, slot uint64)) {
	const opLD, mask = 0x3003, 0x707f // ld rd, imm12(rs1)
	for i := 0; i+pairLen <= len(code); i += 2 {
		auipc, ld := binary.LittleEndian.Uint32(code[i:]), binary.LittleEndian.Uint32(code[i+insnLen:])
		if auipc&0x7f == opAUIPC && ld&mask == opLD && ld>>15&31 == auipc>>7&31 {
			at := pc + uint64(i)
			f(at, at+uint64(int64(int32(auipc&0xfffff000)))+uint64(int64(int32(ld)>>20)))
		}
	}
}
