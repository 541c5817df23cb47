// Package loong64 knows the 64-bit LoongArch instruction set under its ELF psABI
// (LoongArch ELF psABI specification, 20231219 and later; base ABIs lp64s, lp64f and lp64d).
//
// A call is one instruction, bl, or a pair, pcaddu18i and jirl, of which linkers may make
// one again (psABI, "R_LARCH_CALL36"; R_LARCH_RELAX is at the same offset). Instructions
// are 4 bytes, aligned. Because linkers delete code, a site's address is a symbol at the
// site.
//
// Version 0 of the ABI of objects is that of binutils before 2.40, whose relocations are
// the steps of a stack machine. Such objects are not supported.
package loong64

import (
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/arch"
)

// The version of the ABI of objects in e_flags (psABI, "EF_LARCH_OBJABI_*"). The others are
// those of floating-point registers.
const (
	objABI = 0xc0
	objV1  = 0x40
)

// Machine implements arch.Machine.
type Machine struct{}

var traits = arch.Traits{
	Name: "loong64",
	ABIs: []arch.ABI{
		{Machine: elf.EM_LOONGARCH, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Mask: objABI, Flags: objV1},
		{Machine: elf.EM_LOONGARCH, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Mask: ^uint32(0)}, // of images that mold makes
	},
	Model:      arch.LP64,
	Rela:       true,
	None:       uint32(elf.R_LARCH_NONE),
	Word:       uint32(elf.R_LARCH_64),
	LoadBase:   uint32(elf.R_LARCH_RELATIVE),
	DataRelocs: dataRelocs,
	Relative: []arch.RelativeReloc{
		{Type: uint32(elf.R_LARCH_ADD32)},
		{Type: uint32(elf.R_LARCH_SUB32), Sub: true},
	},
	AlsoRelative: []uint32{uint32(elf.R_LARCH_32_PCREL)}, // clang's, of what another section of the object has
	Sizes: arch.Sizes{
		Site:   pairLen,
		Branch: pairLen,
		Load:   pairLen,
	},
	HelperAlign: insnLen,
	HelperMark:  arch.Insn{Code: []byte{'d', 's', 0x2a, 0x00}, Text: "break 0x7364"},
	Entries:     []uint64{0},
	Relaxes:     true,
	Deletes:     []uint32{uint32(elf.R_LARCH_RELAX), uint32(elf.R_LARCH_ALIGN)},
	Arguments: arch.Arguments{ // LoongArch procedure call standard; as compilers write operands
		Registers: arch.Registers("$r4", "$r5", "$r6", "$r7", "$r8", "$r9", "$r10", "$r11"),
		Stack:     &arch.Stack{Operand: "$r3,%d"},
		Rename:    numbered, // clang writes the names of the ABI; bcc reads $r0 to $r31 alone
		Unread: func(place string) (tracer string) {
			if slices.ContainsFunc(arch.Words(place), func(word string) bool { return numbered(word) != word }) {
				return "bcc"
			}
			return ""
		},
	},
	Threads: arch.ThreadState{ // struct user_pt_regs
		Size: 360, PC: 264, SP: 24, Link: 8,
		Registers: arch.NumberedRegisters("$r", 32, 0, 8),
	},
	Breakpoints: [][]byte{
		{0x05, 0x00, 0x2a, 0x00}, // break 5, of gdb
		{0x0c, 0x00, 0x2a, 0x00}, // break 12, of Linux's uprobes
		{0x0a, 0x00, 0x2a, 0x00}, // break 10, of Linux's kprobes
	},
	Tests: []arch.TestCode{{False: []byte{0x04, 0x00, 0x15, 0x00}, True: []byte{0x04, 0x04, 0x80, 0x03}}}, // move a0, zero; ori a0, zero, 1
	Nops:  [][]byte{{0x00, 0x00, 0x40, 0x03}},                                                             // nop
}

// abiNames are the names of the general registers in the LoongArch ELF psABI, by number.
var abiNames = [...]string{
	"$zero", "$ra", "$tp", "$sp", "$a0", "$a1", "$a2", "$a3", "$a4", "$a5", "$a6", "$a7", "$t0", "$t1", "$t2", "$t3",
	"$t4", "$t5", "$t6", "$t7", "$t8", "$r21", "$fp", "$s0", "$s1", "$s2", "$s3", "$s4", "$s5", "$s6", "$s7", "$s8",
}

// numbered returns a register's name with its number for that of the ABI, and other words
// as they are. The s9 of the procedure call standard is fp.
func numbered(word string) string {
	if word == "$s9" {
		word = "$fp"
	}
	if n := slices.Index(abiNames[:], word); n >= 0 {
		return fmt.Sprintf("$r%d", n)
	}
	return word
}

func (Machine) Traits() *arch.Traits { return &traits }

func (Machine) RelocName(typ uint32) string {
	if typ == call30 {
		return "R_LARCH_CALL30"
	}
	return elf.R_LARCH(typ).String()
}

var dataRelocs = []arch.DataReloc{
	elf.R_LARCH_32:          {Size: 4},
	elf.R_LARCH_64:          {Size: 8},
	elf.R_LARCH_ADD8:        {Size: 1, Op: arch.Add},
	elf.R_LARCH_ADD16:       {Size: 2, Op: arch.Add},
	elf.R_LARCH_ADD32:       {Size: 4, Op: arch.Add},
	elf.R_LARCH_ADD64:       {Size: 8, Op: arch.Add},
	elf.R_LARCH_SUB8:        {Size: 1, Op: arch.Sub},
	elf.R_LARCH_SUB16:       {Size: 2, Op: arch.Sub},
	elf.R_LARCH_SUB32:       {Size: 4, Op: arch.Sub},
	elf.R_LARCH_SUB64:       {Size: 8, Op: arch.Sub},
	elf.R_LARCH_ADD_ULEB128: {Size: arch.ULEB128, Op: arch.Add},
	elf.R_LARCH_SUB_ULEB128: {Size: arch.ULEB128, Op: arch.Sub},
}
