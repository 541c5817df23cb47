package i386

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
)

const (
	opCall  = 0xe8 // call rel32
	opJmp   = 0xe9 // jmp rel32
	opRet   = 0xc3
	opTwo   = 0x0f // first byte of jcc rel32, 0f 80 to 0f 8f
	opGroup = 0xff // call or jmp *disp32 and *disp32(%reg)

	// endAddend is the addend of a field at the instruction's end that is to
	// hold a distance from the next instruction to the symbol itself.
	endAddend = -4
	fieldLen  = 4
)

const (
	fixNoPLT  = "compile without -fno-plt"
	fixDirect = "call the stub directly, and do not take its address"
	fixCREL   = "compile without -Wa,--crel"
	fixNop    = "mark the first byte of a nop 3e 8d 74 26 00"
)

// Decode recognises direct and GOT-indirect calls, jumps and conditional jumps, and
// marked nops.
func (Machine) Decode(t arch.Text, relocs []arch.Reloc) (arch.Site, error) {
	r := relocs[0]
	switch {
	case len(relocs) > 1:
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", Machine{}.RelocName(relocs[1].Type))
	case !r.Implicit:
		return arch.Site{}, arch.Refuse(fixCREL, "a relocation with an addend, which the ABI does not have")
	}
	switch elf.R_386(r.Type) {
	case elf.R_386_PC32, elf.R_386_PLT32:
		return decodeDirect(t, r)
	case elf.R_386_GOT32, elf.R_386_GOT32X:
		return decodeGOT(t, r)
	case elf.R_386_NONE:
		return decodeNop(t, r)
	case elf.R_386_32:
		return arch.Site{}, arch.RefuseAddress(fixDirect, "an absolute address")
	}
	return arch.Site{}, arch.RefuseAddress(fixDirect, "no call and no jump")
}

func decodeDirect(t arch.Text, r arch.Reloc) (arch.Site, error) {
	site := arch.Site{}
	op := t.At(r.Offset-1, 1+fieldLen)
	op2 := t.At(r.Offset-2, 2+fieldLen)
	switch {
	case op != nil && op[0] == opCall:
		site = arch.Site{Offset: r.Offset - 1, Form: arch.Call, Code: op}
	case op != nil && op[0] == opJmp:
		site = arch.Site{Offset: r.Offset - 1, Form: arch.Tail, Code: op}
	case op2 != nil && isJccRel32(op2):
		site = arch.Site{Offset: r.Offset - 2, Form: arch.CondTail, Code: op2}
	default:
		return site, arch.RefuseAddress(fixDirect, "no call and no jump but %s", before(t, r))
	}
	return site, checkAddend(site.Code, endAddend)
}

func decodeGOT(t arch.Text, r arch.Reloc) (arch.Site, error) {
	op := t.At(r.Offset-2, 2+fieldLen)
	form, ok := throughSlot(op)
	if !ok {
		return arch.Site{}, arch.RefuseAddress(fixNoPLT+"; "+fixDirect, "a load of the stub's address from the GOT, %s", before(t, r))
	}
	return arch.Site{Offset: r.Offset - 2, Form: form, GOT: true, Code: op}, checkAddend(op, 0)
}

// throughSlot recognises call and jmp *disp32 and *disp32(%reg). Code that is
// independent of its position has the global offset table's address in a register.
func throughSlot(op []byte) (form arch.Form, ok bool) {
	switch {
	case len(op) < 2 || op[0] != opGroup:
	case op[1] == 0x15, op[1]&^7 == 0x90 && op[1]&7 != 4: // with 4 there is a SIB byte
		return arch.Call, true
	case op[1] == 0x25, op[1]&^7 == 0xa0 && op[1]&7 != 4:
		return arch.Tail, true
	}
	return 0, false
}

func decodeNop(t arch.Text, r arch.Reloc) (arch.Site, error) {
	code := t.At(r.Offset, len(nop5))
	switch {
	case code == nil:
		return arch.Site{}, arch.Refuse(fixNop, "a mark that the section's end cuts off")
	case !bytes.Equal(code, nop5) && !bytes.Equal(code, nopNop5):
		return arch.Site{}, arch.Refuse(fixNop, "a mark of what is no nop but % x", code)
	}
	return arch.Site{Offset: r.Offset, Form: arch.Nop, Code: code}, nil
}

// checkAddend compares the addend in the field at the end of an instruction.
func checkAddend(code []byte, want int32) error {
	if got := field(code); got != want {
		return arch.Refuse(fixDirect, "a call or jump to the stub%+d", int64(got)-int64(want))
	}
	return nil
}

// field is what is in the last bytes of an instruction.
func field(code []byte) int32 { return int32(binary.LittleEndian.Uint32(code[len(code)-fieldLen:])) }

// Live recognises what Decode does, calls and jumps through registers, and a call with
// the prefix that linkers put before one that no longer goes through the GOT.
func (Machine) Live(t arch.Text, record uint64) bool {
	if b := t.At(record, 5); b != nil && (b[0] == opCall || b[0] == opJmp) {
		return true
	}
	// ff /2, call, and ff /4, jmp.
	if b := t.At(record, 2); b != nil && b[0] == opGroup && (b[1]>>3&7 == 2 || b[1]>>3&7 == 4) {
		return true
	}
	b := t.At(record, 6)
	return b != nil && (isJccRel32(b) || b[0] == prefixAddr16 && b[1] == opCall) // addr16 call rel32
}

// isJccRel32 recognises the opcodes 0f 80 to 0f 8f.
func isJccRel32(code []byte) bool { return code[0] == opTwo && code[1]&0xf0 == 0x80 }

// Branch reads call, jmp and jcc rel32, and a call with the prefix.
func (Machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	if b := t.At(at, 1); b != nil && b[0] == prefixAddr16 {
		at++
		if b = t.At(at, 1); b == nil || b[0] != opCall {
			return 0, false
		}
	}
	code := t.At(at, 1+fieldLen)
	if longer := t.At(at, 2+fieldLen); longer != nil {
		code = longer
	}
	Machine{}.Branches(code, at, func(from, dest uint64) {
		if from == at {
			to, ok = dest, true
		}
	})
	return to, ok
}

// Branches reads call, jmp and jcc rel32 wherever their opcodes are. Addresses have 32
// bits, and wrap around.
func (Machine) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+1+fieldLen <= len(code); i++ {
		n := 1 + fieldLen
		switch {
		case code[i] == opCall || code[i] == opJmp:
		case isJccRel32(code[i:]) && i+2+fieldLen <= len(code):
			n++
		default:
			continue
		}
		at := pc + uint64(i)
		f(at, uint64(uint32(at)+uint32(n)+uint32(field(code[i:i+n]))))
	}
}

// Slots reads call and jmp *disp32 and *disp32(%reg), where the register holds the
// address of the global offset table.
func (Machine) Slots(code []byte, pc, got uint64, f func(at, slot uint64)) {
	const length = 2 + fieldLen
	for i := 0; i+length <= len(code); i++ {
		if _, ok := throughSlot(code[i:]); !ok {
			continue
		}
		slot := uint32(field(code[i : i+length]))
		if code[i+1]>>6 != 0 { // from a register
			slot += uint32(got)
		}
		f(pc+uint64(i), uint64(slot))
	}
}
