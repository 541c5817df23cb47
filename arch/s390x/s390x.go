// Package s390x knows the 64-bit instruction set of z/Architecture under the ELF
// Application Binary Interface for it (the s390x ABI supplement, version 1.6).
//
// Instructions are of 2, 4 or 6 bytes, which the upper two bits of the first byte tell,
// and big-endian. A site's form is decided by the opcode before the relocated field, and
// not by the relocation type: calls, jumps and loads of an address (larl) have the same.
// Fields of the *DBL types hold a distance in halfwords from where the instruction begins
// (ABI, 3.2.2), 2 bytes before the field. Encodings are from the Principles of Operation
// (SA22-7832), and all of them but the load of a semaphore, of z10, any 64-bit machine has.
package s390x

import (
	"debug/elf"

	"sdtconvert/arch"
)

// Machine implements arch.Machine.
type Machine struct{}

var traits = arch.Traits{
	Name:       "s390x",
	ABIs:       []arch.ABI{{Machine: elf.EM_S390, Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB}},
	Model:      arch.LP64,
	Rela:       true,
	None:       uint32(elf.R_390_NONE),
	Word:       uint32(elf.R_390_64),
	LoadBase:   uint32(elf.R_390_RELATIVE),
	DataRelocs: []arch.DataReloc{elf.R_390_64: {Size: 8}, elf.R_390_32: {Size: 4}},
	Relative:   []arch.RelativeReloc{{Type: uint32(elf.R_390_PC32)}},
	Sizes: arch.Sizes{
		Site:   siteLen,
		Skip:   condSkip,
		Branch: 2 * siteLen, // larl; lg
		Load:   siteLen,
	},
	Entries:       []uint64{0},
	GoldSupported: true,
	ReturnThunk: arch.ReturnThunk{ // gcc's -mfunction-return
		Symbol: "__s390_indirect_jump_r14",
		Code: []byte{
			0xc6, 0x00, 0x00, 0x00, 0x00, 0x05, // exrl %r0, 1f
			0xa7, 0xf4, 0x00, 0x00, // 0: j 0b
			0x07, 0xfe, // 1: br %r14
		},
		Field: fieldAt,
		Sites: ".s390_return_reg", // of -mindirect-branch-table, for the Linux kernel to patch at boot
	},
	HelperAlign: 8,
	HelperMark:  arch.Insn{Code: []byte{0xa7, 0x09, 's', 'd'}, Text: "lghi %r0, 0x7364"},
	Arguments: arch.Arguments{ // ABI, 1.2.4
		Registers: arch.Registers("%r2", "%r3", "%r4", "%r5", "%r6"),
		// Behind the caller's register save area, at a call and a tail call alike.
		Stack:  &arch.Stack{Operand: "%d(%%r15)", Call: 160, Tail: 160},
		Unread: arch.UnreadUnless("gdb", `-?\d+|%r\d+|(?:-?\d+)?\(%r\d+\)`),
	},
	Threads: arch.ThreadState{ // s390_regs
		Size: 216, PC: 8, SP: 16 + 15*8, Link: 16 + 14*8, Trap: 2,
		Registers: arch.NumberedRegisters("r", 16, 16, 8),
	},
	CharUnsigned: true,
	Breakpoints: [][]byte{
		{0x00, 0x01}, // of gdb
		{0x00, 0x02}, // of Linux's uprobes and kprobes
	},
	Tests:       []arch.TestCode{{False: []byte{0xa7, 0x29, 0x00, 0x00}, True: []byte{0xa7, 0x29, 0x00, 0x01}}}, // lghi %r2, 0; lghi %r2, 1
	Nops:        [][]byte{{0x47, 0x00, 0x00, 0x00}},                                                             // bc 0, 0
	Conventions: arch.Conventions{WideHash: true},
}

func (Machine) Traits() *arch.Traits { return &traits }

// names are what debug/elf calls otherwise than the ABI, or does not know.
var names = [...]string{
	13: "R_390_GOTOFF32",
	34: "R_390_PLTOFF16",
	35: "R_390_PLTOFF32",
	36: "R_390_PLTOFF64",
	61: "R_390_IRELATIVE",
	62: "R_390_PC12DBL",
	63: "R_390_PLT12DBL",
	64: "R_390_PC24DBL",
	65: "R_390_PLT24DBL",
}

func (Machine) RelocName(typ uint32) string {
	if typ < uint32(len(names)) && names[typ] != "" {
		return names[typ]
	}
	return elf.R_390(typ).String()
}
