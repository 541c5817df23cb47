package arm

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

const (
	halfword = 2
	insnLen  = 4 // of A32, and of Thumb where it is none of 2 bytes

	always = 0xe // the condition of A32 that is always true
	never  = 0xf // no condition: another instruction

	// How far the program counter is ahead of an instruction, in bytes. Relocations of a
	// branch to the symbol itself have its negative as the addend.
	aheadA32, aheadThumb = 8, 4
)

const (
	fixLong    = "compile without -mlong-calls and -fno-plt, and do not take the stub's address"
	fixRela    = "compile without -Wa,--crel"
	fixNop     = "mark nop in A32, and nop.w in Thumb"
	fixMapping = "assemble it as code of the instruction set that it is in"
	fixShort   = "write b.w"
	fixOld     = "compile for ARMv6T2 or later"
	fixThumb1  = fixOld + ", or with -marm"
)

// Decode recognises bl, blx and b of both instruction sets, with a condition or without,
// and marked nops.
func (m Machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	switch {
	case len(relocs) > 1:
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", m.RelocName(relocs[1].Type))
	case !r.Implicit:
		return arch.Site{}, arch.Refuse(fixRela, "a relocation with an addend, which objects of the ABI do not have")
	}
	switch elf.R_ARM(r.Type) {
	case elf.R_ARM_CALL, elf.R_ARM_JUMP24, elf.R_ARM_PC24, elf.R_ARM_PLT32:
		return m.decodeA32(t, r)
	case elf.R_ARM_THM_PC22, elf.R_ARM_THM_JUMP24, elf.R_ARM_THM_JUMP19: // the first is R_ARM_THM_CALL
		return m.decodeThumb(t, r)
	case elf.R_ARM_NONE:
		return m.decodeNop(t, r)
	case elf.R_ARM_THM_JUMP11, elf.R_ARM_THM_JUMP8:
		return arch.Site{}, arch.Refuse(fixShort, "a branch of 2 bytes")
	case elf.R_ARM_ABS32, elf.R_ARM_REL32, elf.R_ARM_TARGET1, elf.R_ARM_GOT32, elf.R_ARM_GOT_PREL:
		return arch.Site{}, arch.RefuseAddress(fixLong, "a word with the stub's address")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

// at returns the 4 bytes at a place of code of an instruction set.
func (o order) at(t arch.Text, r elfreloc.Relocation, set arch.Encoding) ([]byte, error) {
	code := t.At(r.Offset, insnLen)
	align := uint64(insnLen)
	if set == arch.Thumb {
		align = halfword
	}
	switch in := t.Encoding(r.Offset); {
	case code == nil:
		return nil, arch.Refuse("", "a branch that the section's end cuts off")
	case r.Offset%align != 0:
		return nil, arch.Refuse("", "a branch that is not aligned")
	case in != set && (in == arch.A32 || in == arch.Thumb):
		return nil, arch.Refuse(fixMapping, "a branch of the other instruction set than the code's")
	}
	if old := o.beforeT2(t.Attributes); set == arch.Thumb && old != "" {
		r := arch.Refuse(fixThumb1, "Thumb of %s (.ARM.attributes, Tag_CPU_arch), which has no nop.w", old)
		r.Object = true
		return nil, r
	}
	return code, nil
}

func (m Machine) decodeA32(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	code, err := m.order.at(t, r, arch.A32)
	if err != nil {
		return arch.Site{}, err
	}
	insn := m.order.readA32(code)
	b, ok := branchA32(insn)
	if !ok {
		return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no bl and no b but instruction %08x", insn)
	}
	return arch.Site{Offset: r.Offset, Form: b.form, Code: code}, checkAddend(b.distance + aheadA32)
}

func (m Machine) decodeThumb(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	code, err := m.order.at(t, r, arch.Thumb)
	if err != nil {
		return arch.Site{}, err
	}
	insn := m.order.readThumb(code)
	b, ok := branchThumb(insn)
	if !ok {
		return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no bl and no b.w but instruction %04x %04x", insn>>16, insn&0xffff)
	}
	if wide := elf.R_ARM(r.Type) != elf.R_ARM_THM_JUMP19; wide == (b.form == arch.CondTail) {
		return arch.Site{}, arch.Refuse("", "%s at instruction %04x %04x", m.RelocName(r.Type), insn>>16, insn&0xffff)
	}
	return arch.Site{Offset: r.Offset, Form: b.form, Code: code}, checkAddend(b.distance + aheadThumb)
}

// checkAddend refuses branches to what is not the stub's first byte.
func checkAddend(addend int32) error {
	if addend != 0 {
		return arch.Refuse(arch.FixDirect, "a branch to the stub%+d", addend)
	}
	return nil
}

// decodeNop takes what Disable makes of a call of either instruction set.
func (m Machine) decodeNop(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	code := t.At(r.Offset, insnLen)
	if code == nil {
		return arch.Site{}, arch.Refuse(fixNop, "a mark that the section's end cuts off")
	}
	set := arch.A32
	if m.order.readThumb(code) == wideNop {
		set = arch.Thumb
	} else if form, ok := disabledA32(m.order.readA32(code), arch.Probe); !ok || form != arch.Call {
		return arch.Site{}, arch.Refuse(fixNop, "a mark of % x instead of a nop", code)
	}
	if _, err := m.order.at(t, r, set); err != nil {
		return arch.Site{}, err
	}
	return arch.Site{Offset: r.Offset, Form: arch.Nop, Code: code}, nil
}
