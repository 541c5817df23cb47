// Package ppc64 knows the 64-bit PowerPC instruction set under both versions of its ELF
// ABI: the 64-bit PowerPC ELF ABI Supplement 1.9 (ELFv1, big-endian) and the 64-Bit ELF
// V2 ABI Specification 1.5 (ELFv2, of either byte order).
//
// Instructions are words of 4 bytes in the byte order of the object. A call is bl, whose
// next instruction is a nop where linkers may have to restore the table of contents'
// pointer: they do so for the sake of the call's relocation alone, so it stays a nop when
// the call goes. Code for processors that name places by their distance (power10) has
// neither, but tail calls, which other code has not: they would lose the pointer. A helper
// uses neither the pointer nor register 12, so it is called as the stub was, from any code.
// Encodings are from the Power ISA 3.1, book I.
package ppc64

import (
	"debug/elf"
	"encoding/binary"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Machine implements arch.Machine, for objects of one ABI and byte order.
type Machine uint8

const (
	ELFv1  Machine = iota // big-endian
	ELFv2                 // big-endian
	Little                // ELFv2
)

// abiMask are the bits of e_flags that tell the version of the ABI (EF_PPC64_ABI, 64-Bit
// ELF V2 ABI, 4.1). 0 is of objects that depend on neither, and of those of compilers from
// before there were two.
const abiMask = 3

// descriptors are those of ELFv1 (64-bit PowerPC ELF ABI 1.9, 3.2.5): of the address of
// the code, the pointer to the table of contents, and one that C does not use.
var descriptors = arch.Conventions{
	Descriptors: ".opd",
	Descriptor: []arch.Insn{
		{Code: make([]byte, 8), Text: ".quad", ToCode: true, Reloc: &elfreloc.Relocation{Type: uint32(elf.R_PPC64_ADDR64)}},
		{Code: make([]byte, 8), Text: ".quad .TOC.@tocbase", Reloc: &elfreloc.Relocation{Type: uint32(elf.R_PPC64_TOC)}},
		{Code: make([]byte, 8), Text: ".quad 0"},
	},
	Absolute: uint32(elf.R_PPC64_ADDR64),
	Loaded:   uint32(elf.R_PPC64_RELATIVE),
}

var traits = [...]arch.Traits{
	// The stack has the first argument that is in no register behind the caller's frame
	// header, and behind the room for those that are (ELFv1 3.2.3; ELFv2 2.2.4).
	ELFv1:  ELFv1.newTraits("ppc64", 48+8*8, descriptors, abi(elf.ELFDATA2MSB, 0), abi(elf.ELFDATA2MSB, 1)),
	ELFv2:  ELFv2.newTraits("ppc64", 32+8*8, arch.Conventions{}, abi(elf.ELFDATA2MSB, 2)),
	Little: Little.newTraits("ppc64le", 32+8*8, arch.Conventions{}, abi(elf.ELFDATA2LSB, 0), abi(elf.ELFDATA2LSB, 2)),
}

func abi(data elf.Data, version uint32) arch.ABI {
	return arch.ABI{Machine: elf.EM_PPC64, Class: elf.ELFCLASS64, Data: data, Mask: abiMask, Flags: version}
}

// newTraits returns the traits of the machine with a name, the offset of arguments on the stack,
// and what is special about its functions.
func (m Machine) newTraits(name string, stack int, conventions arch.Conventions, abis ...arch.ABI) arch.Traits {
	t := arch.Traits{
		Name:     name,
		ABIs:     abis,
		Model:    arch.LP64,
		Rela:     true,
		None:     uint32(elf.R_PPC64_NONE),
		Word:     uint32(elf.R_PPC64_ADDR64),
		LoadBase: uint32(elf.R_PPC64_RELATIVE),
		DataRelocs: []arch.DataReloc{
			elf.R_PPC64_ADDR64: {Size: 8}, elf.R_PPC64_UADDR64: {Size: 8}, elf.R_PPC64_ADDR32: {Size: 4}, elf.R_PPC64_UADDR32: {Size: 4},
			elf.R_PPC64_ADDR16: {Size: 2}, elf.R_PPC64_UADDR16: {Size: 2},
		},
		Relative:     []arch.RelativeReloc{{Type: uint32(elf.R_PPC64_REL32)}},
		AlsoRelative: []uint32{uint32(elf.R_PPC64_REL64)},
		LongRelative: uint32(elf.R_PPC64_REL64), // mold before version 2
		Sizes: arch.Sizes{
			Site:   insnLen,
			Branch: 5 * insnLen, // bcl; mflr; mtlr; addis; ld
			Load:   loadLen,
		},
		Entries:        []uint64{0, insnLen, 2 * insnLen}, // what saves registers may come first
		EntriesInText:  true,
		SlotsFromTable: true,
		GoldSupported:  true,
		Pool:           ".toc",
		PoolFix:        fixNoPLT,
		HelperAlign:    insnLen,
		Arguments: arch.Arguments{
			Registers:        arch.Registers("3", "4", "5", "6", "7", "8", "9", "10"),
			Stack:            &arch.Stack{Operand: "%d(1)", Call: stack, Tail: stack},
			NumericRegisters: true,
			Unread:           arch.UnreadUnless("gdb", `i-?\d+|\d+|(?:-?\d+)?\(\d+\)`),
		},
		Threads: arch.ThreadState{ // struct pt_regs
			Size: 384, PC: 256, SP: 8, Link: 288,
			Registers: arch.NumberedRegisters("", 32, 0, 8),
		},
		CharUnsigned: true,
		Conventions:  conventions,
	}
	t.LinkerStubNames = []string{"__glink_PLTresolve"} // gold's static programs have the name in the middle of others
	t.Breakpoints = [][]byte{
		m.code(0x7fe00008), // trap, of Linux's uprobes and kprobes
		m.code(0x7d821008), // twge r2, r2, of gdb
	}
	t.Nops = [][]byte{m.code(insnNop)}
	t.HelperMark = arch.Insn{Code: m.code(0x0fe07364), Text: "twi 31, 0, 0x7364"}
	return t
}

func (m Machine) Traits() *arch.Traits { return &traits[m] }

// insn returns the instruction that code begins with.
func (m Machine) insn(code []byte) uint32 {
	if m == Little {
		return binary.LittleEndian.Uint32(code)
	}
	return binary.BigEndian.Uint32(code)
}

// code returns instructions as they stand in memory.
func (m Machine) code(insns ...uint32) (b []byte) {
	order := binary.AppendByteOrder(binary.BigEndian)
	if m == Little {
		order = binary.LittleEndian
	}
	for _, insn := range insns {
		b = order.AppendUint32(b, insn)
	}
	return b
}

// half returns the offset of the 16-bit field in an instruction, its last bits.
func (m Machine) half() uint64 {
	if m == Little {
		return 0
	}
	return insnLen / 2
}

func (Machine) RelocName(typ uint32) string {
	if elf.R_PPC64(typ) == elf.R_PPC64_PLTGOT_LO_DS {
		return "R_PPC64_PLTGOT16_LO_DS" // which debug/elf calls otherwise than the ABI
	}
	return elf.R_PPC64(typ).String()
}
