package i386

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
	"sdtconvert/elfreloc"
)

// mode is 32-bit mode. No site has room for a load of a semaphore that runs wherever it is put, so
// each test goes to the helper. NOPs are loads of an address that change nothing, which all
// processors have: before the Pentium Pro, and on some later ones (Geode, C3), 0f 1f is no
// instruction.
var mode = x86.New(x86.Mode{
	Bits: 32,
	Nops: [...][]byte{
		{},
		{x86.OpNop},
		{0x66, 0x90},                         // xchg %ax,%ax
		{0x8d, 0x76, 0x00},                   // lea 0(%esi),%esi
		{0x8d, 0x74, 0x26, 0x00},             // lea 0(%esi,%eiz,1),%esi
		{0x3e, 0x8d, 0x74, 0x26, 0x00},       // lea %ds:0(%esi,%eiz,1),%esi
		{0x8d, 0xb6, 0x00, 0x00, 0x00, 0x00}, // lea 0(%esi),%esi
	},
	Shortest:    callLen,
	Distance:    jumpReloc,
	Field:       [...]byte{0xfc, 0xff, 0xff, 0xff}, // x86.EndAddend
	ThroughSlot: throughSlot,
	FixNoPLT:    fixNoPLT,
	LandingPad:  arch.Insn{Code: endbr32, Text: "endbr32"},
})

// jumpReloc returns the relocation of a jump to code of the same image. The field has the
// addend too. Of the procedure linkage table, as R_386_PLT32 has it, nothing is wanted: its
// entries may ask for the global offset table in a register.
func jumpReloc(at uint64) elfreloc.Relocation {
	return elfreloc.Relocation{Offset: at, Type: uint32(elf.R_386_PC32), Addend: x86.EndAddend, Implicit: true}
}
