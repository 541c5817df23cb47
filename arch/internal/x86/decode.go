package x86

import (
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

// DecodeDirect recognises call, jmp and jcc rel32, by the opcode bytes before the field.
func (m *Mode) DecodeDirect(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	site := arch.Site{}
	op := t.At(r.Offset-1, branchLen)
	op2 := t.At(r.Offset-2, longLen)
	switch {
	case op != nil && op[0] == OpCall:
		site = arch.Site{Offset: r.Offset - 1, Form: arch.Call, Code: op}
	case op != nil && op[0] == OpJmp:
		site = arch.Site{Offset: r.Offset - 1, Form: arch.Tail, Code: op}
	case op2 != nil && IsJcc(op2):
		site = arch.Site{Offset: r.Offset - 2, Form: arch.CondTail, Code: op2}
	default:
		return site, arch.RefuseAddress(arch.FixDirect, "no call and no jump but %s", Before(t, r))
	}
	return site, m.checkAddend(site.Code, r, EndAddend)
}

// DecodeGOT recognises a call or a jump through the stub's slot of the global offset table.
func (m *Mode) DecodeGOT(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	op := t.At(r.Offset-2, longLen)
	if op != nil {
		if form, ok := m.ThroughSlot(op); ok {
			return arch.Site{Offset: r.Offset - 2, Form: form, GOT: true, Code: op}, m.checkAddend(op, r, m.SlotAddend)
		}
	}
	return arch.Site{}, arch.RefuseAddress(m.FixNoPLT+"; "+arch.FixDirect, "a load of the stub's address from the GOT, %s", Before(t, r))
}

// DecodeNop recognises a marked NOP: what Disable makes of a direct call, armable or not.
func (m *Mode) DecodeNop(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	return m.disabled().mark.Decode(t, r)
}

// checkAddend compares a relocation's addend, which may be in the field at the end of code.
func (m *Mode) checkAddend(code []byte, r elfreloc.Relocation, want int64) error {
	got := r.Addend
	if r.Implicit && m.implicit() {
		got = int64(Field(code))
	}
	if got != want {
		return arch.Refuse(arch.FixDirect, "a call or jump to the stub%+d", got-want)
	}
	return nil
}

// implicit reports whether relocations may have their addends in the fields.
func (m *Mode) implicit() bool { return m.Field != [FieldLen]byte{} }

// Field returns what is in the last bytes of an instruction.
func Field(code []byte) int32 { return int32(binary.LittleEndian.Uint32(code[len(code)-FieldLen:])) }

// IsJcc recognises the opcodes of jcc rel32, 0f 80 to 0f 8f.
func IsJcc(code []byte) bool { return code[0] == OpTwo && code[1]&0xf0 == 0x80 }

// Live recognises what the machines decode and follow, calls and jumps through registers,
// and a call with the prefix that linkers put before one that no longer goes through the
// GOT.
func (m *Mode) Live(t arch.Text, record uint64) bool {
	if b := t.At(record, branchLen); b != nil && (b[0] == OpCall || b[0] == OpJmp) {
		return true
	}
	if m.isIndirect(t, record) {
		return true
	}
	b := t.At(record, longLen)
	return b != nil && (IsJcc(b) || b[0] == prefixAddr && b[1] == OpCall)
}

// isIndirect recognises ff /2, call, and ff /4, jmp, in 64-bit mode also behind a REX prefix.
func (m *Mode) isIndirect(t arch.Text, at uint64) bool {
	if b := t.At(at, 1); m.Bits == 64 && b != nil && b[0]&0xf0 == 0x40 {
		at++
	}
	b := t.At(at, 2)
	return b != nil && b[0] == OpGroup && (b[1]>>3&7 == 2 || b[1]>>3&7 == 4)
}

// Branch reads call, jmp and jcc rel32, and a call with the prefix.
func (m *Mode) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	if b := t.At(at, 1); b != nil && b[0] == prefixAddr {
		at++
		if b = t.At(at, 1); b == nil || b[0] != OpCall {
			return 0, false
		}
	}
	return forms.First(t, at, m.Branches, longLen, branchLen)
}

// Branches reads call, jmp and jcc rel32 wherever their opcodes are.
func (m *Mode) Branches(code []byte, pc uint64, f func(at, to uint64)) {
	for i := 0; i+branchLen <= len(code); i++ {
		n := branchLen
		switch {
		case code[i] == OpCall || code[i] == OpJmp:
		case IsJcc(code[i:]) && i+longLen <= len(code):
			n = longLen
		default:
			continue
		}
		at := pc + uint64(i)
		f(at, m.Behind(code[i:i+n], at))
	}
}

// Behind returns the address that an instruction at an address is about, which ends with
// the distance from its own end.
func (m *Mode) Behind(insn []byte, at uint64) uint64 {
	sum := at + uint64(len(insn)) + uint64(Field(insn))
	if m.Bits == 32 { // where addresses wrap around
		return uint64(uint32(sum))
	}
	return sum
}
