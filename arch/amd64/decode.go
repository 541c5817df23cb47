package amd64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

const (
	modrmCallRIP = 0x15 // behind ff: call *disp32(%rip)
	modrmJmpRIP  = 0x25 // behind ff: jmp *disp32(%rip)
)

const (
	fixNoPLT = "compile without -fno-plt, or in Rust with -C relro-level=partial"
	fixLarge = "compile without -mcmodel=large"
)

// Decode recognises direct and GOT-indirect calls, jumps and conditional jumps, and
// marked nops.
func (m machine) Decode(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	r := relocs[0]
	if len(relocs) > 1 {
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", m.RelocName(relocs[1].Type))
	}
	switch elf.R_X86_64(r.Type) {
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		return mode.DecodeDirect(t, r)
	case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX:
		return mode.DecodeGOT(t, r)
	case elf.R_X86_64_NONE:
		return mode.DecodeNop(t, r)
	case elf.R_X86_64_PLTOFF64, elf.R_X86_64_GOTOFF64, elf.R_X86_64_GOT64, elf.R_X86_64_GOTPCREL64,
		elf.R_X86_64_GOTPLT64, elf.R_X86_64_64:
		return arch.Site{}, refuseLoad(t, r, "")
	}
	return arch.Site{}, arch.RefuseAddress(arch.FixDirect, "no call and no jump")
}

// throughSlot recognises call and jmp *disp32(%rip).
func throughSlot(op []byte) (form arch.Form, ok bool) {
	switch {
	case op[0] != x86.OpGroup:
	case op[1] == modrmCallRIP:
		return arch.Call, true
	case op[1] == modrmJmpRIP:
		return arch.Tail, true
	}
	return 0, false
}

// Branch reads the load of a helper's address too, which calls go to.
func (machine) Branch(t arch.Text, at uint64) (to uint64, ok bool) {
	if b := t.At(at, movLen); b != nil && isLea(b) {
		return mode.Behind(b, at), true
	}
	return mode.Branch(t, at)
}

// Slots reads call and jmp *disp32(%rip).
func (machine) Slots(code []byte, pc, _ uint64, f func(at, slot uint64)) {
	const length = 2 + x86.FieldLen
	for i := 0; i+length <= len(code); i++ {
		if _, ok := throughSlot(code[i:]); ok {
			at := pc + uint64(i)
			f(at, mode.Behind(code[i:i+length], at))
		}
	}
}
