package i386

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

const fixNoPLT = "compile without -fno-plt"

// Decode recognises direct and GOT-indirect calls, jumps and conditional jumps, and
// marked NOPs. Relocations have addends where clang writes them as SHT_CREL.
func (m machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	if len(relocs) > 1 {
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", m.RelocName(relocs[1].Type))
	}
	switch elf.R_386(r.Type) {
	case elf.R_386_PC32, elf.R_386_PLT32:
		return mode.DecodeDirect(t, r)
	case elf.R_386_GOT32, elf.R_386_GOT32X:
		return mode.DecodeGOT(t, r)
	case elf.R_386_NONE:
		return mode.DecodeNop(t, r)
	case elf.R_386_32:
		return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "an absolute address")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

// throughSlot recognises call and jmp *disp32 and *disp32(%reg). Code that is
// independent of its position has the global offset table's address in a register.
func throughSlot(op []byte) (form arch.Form, ok bool) {
	switch {
	case op[0] != x86.OpGroup:
	case op[1] == 0x15, op[1]&^7 == 0x90 && op[1]&7 != 4: // with 4 there is a SIB byte
		return arch.Call, true
	case op[1] == 0x25, op[1]&^7 == 0xa0 && op[1]&7 != 4:
		return arch.Tail, true
	}
	return 0, false
}

// Slots reads call and jmp *disp32 and *disp32(%reg), where the register holds the
// address of the global offset table.
func (machine) Slots(code []byte, pc, got uint64, f func(at, slot uint64)) {
	const length = 2 + x86.FieldLen
	for i := 0; i+length <= len(code); i++ {
		if _, ok := throughSlot(code[i:]); !ok {
			continue
		}
		slot := uint32(x86.Field(code[i : i+length]))
		if code[i+1]>>6 != 0 { // from a register
			slot += uint32(got)
		}
		f(pc+uint64(i), uint64(slot))
	}
}
