// Package riscv64 knows the RV64 instruction set under the RISC-V ELF psABI.
//
// A call is a pair of instructions, auipc and jalr, under one relocation at the
// first of them (psABI, "Procedure Calls"); a second relocation at the same
// offset, R_RISCV_RELAX, lets the linker shorten the pair. Because linkers move
// code when they do, a site's address is a symbol at the site. Instructions are
// little-endian in objects of either byte order.
package riscv64

import (
	"debug/elf"
	"strings"
	"sync"

	"sdtconvert/arch"
)

// Machine implements arch.Machine.
type Machine struct{}

var traits = arch.Traits{
	Name:       "riscv64",
	ABIs:       []arch.ABI{{Machine: elf.EM_RISCV, Class: elf.ELFCLASS64}},
	Model:      arch.LP64,
	Rela:       true,
	None:       uint32(elf.R_RISCV_NONE),
	Word:       uint32(elf.R_RISCV_64),
	LoadBase:   uint32(elf.R_RISCV_RELATIVE),
	DataRelocs: dataRelocs,
	Relative: []arch.RelativeReloc{
		{Type: uint32(elf.R_RISCV_ADD32)},
		{Type: uint32(elf.R_RISCV_SUB32), Sub: true},
	},
	Sizes: arch.Sizes{
		Site:   pairLen,
		Branch: pairLen,
		Load:   pairLen,
	},
	HelperAlign:   insnLen,
	HelperMark:    arch.Insn{Code: []byte{'7', 'p', 'd', 's'}, Text: "lui zero, 0x73647"},
	SelfReference: true,
	Entries:       []uint64{0},
	Relaxes:       true,
	Deletes:       []uint32{uint32(elf.R_RISCV_RELAX), uint32(elf.R_RISCV_ALIGN)},
	Arguments: arch.Arguments{ // RISC-V psABI, chapter 2
		Registers: arch.Registers("a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"),
		Stack:     &arch.Stack{Operand: "%d(sp)"},
		Unread:    arch.UnreadUnless("gdb", `-?\d+|(?:(?:-?\d+)?\()?(?:zero|ra|[fgst]p|[ast]\d+)\)?`),
	},
	Threads:      threads,
	CharUnsigned: true,
	Breakpoints: [][]byte{
		{0x02, 0x90},             // c.ebreak
		{0x73, 0x00, 0x10, 0x00}, // ebreak
	},
	Tests: []arch.TestCode{{False: []byte{0x13, 0x05, 0x00, 0x00}, True: []byte{0x13, 0x05, 0x10, 0x00}}}, // li a0, 0; li a0, 1
	Nops: [][]byte{
		{0x01, 0x00},             // c.nop
		{0x13, 0x00, 0x00, 0x00}, // nop
	},
	Mapping: "xd",
}

func (Machine) Traits() *arch.Traits { return &traits }

func (Machine) RelocName(typ uint32) string { return elf.R_RISCV(typ).String() }

var dataRelocs = []arch.DataReloc{
	elf.R_RISCV_32:    {Size: 4},
	elf.R_RISCV_64:    {Size: 8},
	elf.R_RISCV_SET8:  {Size: 1},
	elf.R_RISCV_SET16: {Size: 2},
	elf.R_RISCV_SET32: {Size: 4},
	elf.R_RISCV_ADD8:  {Size: 1, Op: arch.Add},
	elf.R_RISCV_ADD16: {Size: 2, Op: arch.Add},
	elf.R_RISCV_ADD32: {Size: 4, Op: arch.Add},
	elf.R_RISCV_ADD64: {Size: 8, Op: arch.Add},
	elf.R_RISCV_SUB8:  {Size: 1, Op: arch.Sub},
	elf.R_RISCV_SUB16: {Size: 2, Op: arch.Sub},
	elf.R_RISCV_SUB32: {Size: 4, Op: arch.Sub},
	elf.R_RISCV_SUB64: {Size: 8, Op: arch.Sub},
}

// threads is the layout of struct user_regs_struct: the program counter in the place of x0.
var threads = arch.ThreadState{Size: 256, PC: 0, SP: 16, Link: 8, Registers: sync.OnceValue(threadRegisters)}

func threadRegisters() map[string]int {
	names := map[string]int{}
	for i, name := range strings.Fields("pc ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6") {
		names[name] = 8 * i
	}
	names["fp"] = names["s0"]
	return names
}
