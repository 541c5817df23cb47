package amd64

// Calls of the large code model (x86-64 psABI, section 3.5): a movabs has the
// relocation against the stub, and a call or a jump through a register comes later. It
// is disabled where nothing but the movabs can have led to it: both are in one basic
// block, and what is known of the registers on the way shows that the stub is called.
// The movabs stays, and loads zero. That is harmless where the registers that it and
// its results are in die: those that a call may change anyway (section 3.2.1).
//
// Between the two the global offset table is added, or read through: its entry 0 then,
// which holds the address of _DYNAMIC (section 5.2).

import (
	"debug/elf"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
)

const (
	movabsLen   = 10  // REX.W b8+r imm64
	movabsField = 2   // the offset of its imm64
	farthest    = 256 // instructions between a movabs and its call
)

// whyUnknown is why nothing is known of the registers at a call.
const whyUnknown = "behind an instruction that is not known"

// Follows tells what the large code model loads the addresses of functions with.
func (Machine) Follows(typ uint32) bool {
	switch elf.R_X86_64(typ) {
	case elf.R_X86_64_64, elf.R_X86_64_PLTOFF64, elf.R_X86_64_GOTOFF64, elf.R_X86_64_GOT64:
		return true
	}
	return false
}

// Flow groups what leads to each section; it reads no text.
func (Machine) Flow(c arch.Code) arch.Flow { return newFlow(c) }

// Site follows the stub's address from where it is loaded to where it is called.
func (f *flow) Site(section int, relocs []arch.Reloc) (arch.Site, error) {
	r := relocs[0]
	usual := arch.RefuseAddress(fixLarge, "a call through a register, as the large code model makes")
	if elf.R_X86_64(r.Type) == elf.R_X86_64_64 {
		usual = arch.RefuseAddress(fixLarge+"; "+fixDirect, "an absolute address")
	}
	if err := f.prepare(section); err != nil {
		return arch.Site{}, err
	}
	load := loadOf(f.text, r)
	switch {
	case load < 0:
		return arch.Site{}, usual
	case len(relocs) > 1:
		return arch.Site{}, arch.Refuse("", "a second relocation, %s, at the same place", Machine{}.RelocName(relocs[1].Type))
	case r.Addend != 0:
		return arch.Site{}, arch.Refuse(fixDirect, "a call or jump to the stub%+d", r.Addend)
	}
	site, why := follow(f.text, r, reg(load))
	if why == "" && f.entries.any(r.Offset-movabsField+1, site.Offset+uint64(len(site.Code))) {
		why = "which other code may jump to"
	}
	if why != "" {
		usual.Got += ", " + why
		return arch.Site{}, usual
	}
	return site, nil
}

// loadOf returns the register that the movabs of a relocated field loads, or -1 where
// there is none.
func loadOf(t arch.Text, r arch.Reloc) int {
	b := t.At(r.Offset-movabsField, movabsLen)
	if r.Offset < movabsField || b == nil || r.Implicit || b[0]&^1 != 0x48 || b[1]&^7 != 0xb8 {
		return -1
	}
	for _, zero := range b[movabsField:] {
		if zero != 0 {
			return -1 // which it would load when the relocation is gone
		}
	}
	return int(b[0]&1)<<3 | int(b[1]&7)
}

// follow goes from a movabs to the instruction that calls what it has loaded into a
// register. why tells what keeps the call from being disabled, "" for nothing.
func follow(t arch.Text, r arch.Reloc, load reg) (site arch.Site, why string) {
	held := holdings{typ: elf.R_X86_64(r.Type)}
	held.in[load] = offset
	if held.typ == elf.R_X86_64_64 {
		held.in[load] = address
	}
	at := r.Offset - movabsField + movabsLen
	for range farthest {
		if at-t.Start >= uint64(len(t.Code)) {
			break
		}
		inst, n := decode(t.Code[at-t.Start:])
		if n == 0 || inst.Op == 0 {
			return site, whyUnknown
		}
		if held.calls(inst) {
			if code := t.At(at, n); hasPlainOpcode(code) {
				site = arch.Site{Offset: at, Register: true, Code: code}
				if inst.Op == x86asm.JMP {
					site.Form = arch.Tail
				}
				return site, held.live()
			}
			return site, "with a prefix"
		}
		if why = held.pass(inst); why != "" {
			return site, why
		}
		at += uint64(n)
	}
	return site, "far from where its register is loaded"
}

// hasPlainOpcode tells a call or jump without a prefix but REX.
func hasPlainOpcode(code []byte) bool {
	return code[0] == opGroup || code[0]&0xf0 == 0x40 && code[1] == opGroup
}
