// Package arm64 knows the A64 instruction set under the AAELF64 ABI.
//
// Instructions are little-endian words also in big-endian objects (Arm ARM,
// B2.6.2), so objects of either byte order are of this machine. Relocation types
// are from AAELF64, section 5.7.
package arm64

import (
	"debug/elf"

	"sdtconvert/arch"
)

// Machine implements arch.Machine.
type Machine struct{}

var traits = arch.Traits{
	Name:       "arm64",
	ABIs:       []arch.ABI{{Machine: elf.EM_AARCH64, Class: elf.ELFCLASS64}},
	Model:      arch.LP64,
	Rela:       true,
	None:       uint32(elf.R_AARCH64_NONE),
	Word:       uint32(elf.R_AARCH64_ABS64),
	LoadBase:   uint32(elf.R_AARCH64_RELATIVE),
	DataRelocs: []arch.DataReloc{elf.R_AARCH64_ABS64: {Size: 8}, elf.R_AARCH64_ABS32: {Size: 4}},
	Relative:   []arch.RelativeReloc{{Type: uint32(elf.R_AARCH64_PREL32)}},
	Sizes: arch.Sizes{
		Site:   insnLen,
		Branch: 2 * insnLen, // adrp; ldr
		Load:   4 * insnLen, // bti c; adrp; ldrh; ret
	},
	Entries:       []uint64{0, insnLen}, // bti c before the rest
	GoldSupported: true,
	HelperAlign:   insnLen,
	HelperMark:    arch.Insn{Code: []byte{0x80, 0x6c, 0x2e, 0xd4}, Text: "brk #0x7364"},
	Veneers:       true,
	Features: arch.Features{ // AAELF64, 6.2
		Property:   0xc0000000, // GNU_PROPERTY_AARCH64_FEATURE_1_AND
		Supported:  1 | 2 | 4,  // BTI, PAC and GCS
		LandingPad: 1,
	},
	Arguments: arch.Arguments{ // AAPCS64, section 6.8.2
		Registers: arch.Registers("x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"),
		Stack:     &arch.Stack{Operand: "[sp, %d]"},
		Unread:    arch.UnreadUnless("gdb", `#?-?\d+|[xw]\d+|w?sp|\[\w+(?:, #?-?\d+)?\]`),
	},
	DOF:          traitsDOF,
	Threads:      threads,
	CharUnsigned: true,
	Breakpoints: [][]byte{
		{0x00, 0x00, 0x20, 0xd4}, // brk #0, of gdb
		{0xa0, 0x00, 0x20, 0xd4}, // brk #5, of Linux's uprobes
	},
	Tests:   []arch.TestCode{{False: []byte{0x00, 0x00, 0x80, 0x52}, True: []byte{0x20, 0x00, 0x80, 0x52}}}, // mov w0, #0; mov w0, #1
	Nops:    [][]byte{{0x1f, 0x20, 0x03, 0xd5}},                                                             // nop
	Mapping: "xd",
}

func (Machine) Traits() *arch.Traits { return &traits }

func (Machine) RelocName(typ uint32) string { return elf.R_AARCH64(typ).String() }
