package amd64

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

// The NOPs that the disabled forms are made of.
var (
	nop2 = []byte{0x66, 0x90}                         // xchg %ax,%ax
	nop3 = []byte{0x0f, 0x1f, 0x00}                   // nopl (%rax)
	nop4 = []byte{0x0f, 0x1f, 0x40, 0x00}             // nopl 0(%rax)
	nop5 = []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}       // nopl 0(%rax,%rax,1)
	nop6 = []byte{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00} // nopw 0(%rax,%rax,1)

	// A uprobe on the second of these Linux makes a call of a trampoline, from 7.2 on. libbpf asks
	// for one there if it finds both where a note has a probe; the first is for all others.
	nopNop10 = []byte{
		x86.OpNop,
		0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, // cs nopw 0(%rax,%rax,1)
	}
)

// mode is 64-bit mode.
var mode = x86.New(x86.Mode{
	Bits:        64,
	Nops:        [...][]byte{{}, {x86.OpNop}, nop2, nop3, nop4, nop5, nop6},
	Shortest:    2, // call *%rax
	Header:      nopNop10,
	Distance:    jumpReloc,
	ThroughSlot: throughSlot,
	SlotAddend:  x86.EndAddend,
	FixNoPLT:    fixNoPLT,
	LandingPad:  arch.Insn{Code: endbr64, Text: "endbr64"},
})

// jumpReloc returns the relocation of a jump to code of the same image.
func jumpReloc(at uint64) elfreloc.Relocation {
	return elfreloc.Relocation{Offset: at, Type: uint32(elf.R_X86_64_PLT32), Addend: x86.EndAddend}
}

// Disable has forms of its own for calls through registers, and for tests that have room
// to load a semaphore.
func (machine) Disable(s arch.Site, k arch.Kind, env arch.Context) (arch.Change, error) {
	if err := checkRegister(s, k, env); err != nil {
		return arch.Change{}, err
	}
	if env.SemaphoreBytes != 0 && k == arch.Enabled {
		if c, ok := test(s, env); ok {
			return c, nil
		}
	}
	return mode.Disable(s, k, env)
}

// checkRegister refuses what has no room for the jump or the call that it would take.
// That would need a relocation of its own, too.
func checkRegister(s arch.Site, k arch.Kind, env arch.Context) error {
	switch {
	case !s.Register, k == arch.Enabled && env.SemaphoreBytes != 0 && len(s.Code) == movLen:
		return nil
	case k == arch.Enabled && env.SemaphoreBytes != 0:
		return arch.RefuseSite(k, s.Form, fixLarge+", or convert without notes (--no-stapsdt)", " through a register, which has no room to load a semaphore")
	case s.Form == arch.Tail && (env.ReturnThunk || k == arch.Enabled && len(s.Code) < 3): // xor and ret take 3
		return arch.RefuseSite(k, s.Form, "compile with -fno-optimize-sibling-calls",
			" through a register, of %d bytes, which are too few", len(s.Code))
	}
	return nil
}

// Disabled finds a record's site by its bytes.
func (machine) Disabled(t arch.Text, record uint64, k arch.Kind) (arch.Site, bool) {
	if site, ok := mode.Disabled(t, record, k); ok || k != arch.Enabled {
		return site, ok
	}
	return findTest(t, record)
}
