// Package arm knows the instruction sets A32 and T32, which everyone calls Thumb, of
// 32-bit Arm under version 5 of its EABI.
//
// An object may hold both. Relocation types tell which one a site is in, and once it is
// disabled its bytes do. Relocations have no addends (SHT_REL), so those of a site are in
// its bytes. Instructions of A32 are words, those of Thumb one halfword or two, of which
// that with the opcode comes first; words and halfwords have the byte order of the data,
// but in images of BE8, of which the linker has swapped the code of big-endian objects, and
// says so in e_flags (ELF for the Arm Architecture, 5.2). Encodings are from the Arm
// Architecture Reference Manual, ARMv7-A and ARMv7-R edition (DDI 0406C), relocation types
// from ELF for the Arm Architecture, 5.6.
package arm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sync"

	"sdtconvert/arch"
)

// Machine implements arch.Machine, of little-endian code and data. The others differ from it
// by the byte order of either.
type Machine struct{ order order }

// order says which byte order code and data have.
type order uint8

const (
	little order = iota
	big          // of objects, and of images before ARMv6 (BE32)
	be8          // of images: big-endian data, little-endian code
)

// Others are the machines of big-endian files.
var Others = []arch.Machine{Machine{big}, Machine{be8}}

const (
	eabiMask = 0xff000000 // EF_ARM_EABIMASK
	eabi5    = 0x05000000 // EF_ARM_EABI_VER5
	flagBE8  = 0x00800000 // EF_ARM_BE8
)

var abis = [...]arch.ABI{
	little: {Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Mask: eabiMask, Flags: eabi5},
	big:    {Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Mask: eabiMask | flagBE8, Flags: eabi5},
	be8:    {Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Mask: eabiMask | flagBE8, Flags: eabi5 | flagBE8},
}

var traits = [...]arch.Traits{little: little.traits(), big: big.traits(), be8: be8.traits()}

func (o order) traits() arch.Traits {
	return arch.Traits{
		Name:       "arm",
		ABIs:       []arch.ABI{abis[o]},
		Model:      arch.ILP32,
		None:       uint32(elf.R_ARM_NONE),
		PopsPushed: "__gnu_mcount_nc", // push {lr}; bl __gnu_mcount_nc
		Word:       uint32(elf.R_ARM_ABS32),
		LoadBase:   uint32(elf.R_ARM_RELATIVE),
		DataRelocs: []arch.DataReloc{elf.R_ARM_ABS32: {Size: 4}},
		Relative:   []arch.RelativeReloc{{Type: uint32(elf.R_ARM_REL32)}},
		Sizes: arch.Sizes{
			Site:   insnLen,
			Skip:   condSkip,
			Branch: veneerLen,
			Load:   loadLen,
		},
		Entries:       []uint64{0, insnLen}, // bx pc; nop before it, for Thumb
		GoldSupported: true,
		HelperAlign:   insnLen,
		HelperMark:    arch.Insn{Code: o.a32(0xe7f736f4), Text: ".arm; udf #0x7364"},
		CodeMark:      "$a",
		Arguments: arch.Arguments{ // AAPCS32, 6.4
			// Those of 8 bytes are in two registers.
			Registers: []arch.Register{{"r0", "r0", "r0"}, {"r1", "r1", "r1"}, {"r2", "r2", "r2"}, {"r3", "r3", "r3"}},
			Stack:     &arch.Stack{Operand: "[sp, #%d]", Aligned: true},
			Rename:    withName, // clang writes r11 and r12; Linux's uprobes know fp and ip alone
			Unread:    unread,
		},
		Threads:      threads,
		CharUnsigned: true,
		Breakpoints: [][]byte{
			o.a32(0xe7f001f0),   // udf, of gdb
			o.a32(0xe7f001f9),   // udf, of Linux's uprobes
			o.thumb(0xf7f0a000), // udf.w, of gdb
			o.thumb(0xde01),     // udf
		},
		Nops:       [][]byte{o.a32(nop), o.a32(oldNop), o.thumb(nopT), o.thumb(oldNopT)},
		Mapping:    "atd",
		Attributes: elf.SHT_LOPROC + 3, // SHT_ARM_ATTRIBUTES
		Conventions: arch.Conventions{
			Mode:        1,                                     // ELF for the Arm Architecture, 5.5.3: bit 0 of a function means Thumb
			UnwindTypes: []elf.SectionType{elf.SHT_LOPROC + 1}, // 5.3.3, SHT_ARM_EXIDX
			UnwindNames: []string{".ARM.extab"},
			UnwindIndex: elf.SHT_LOPROC + 1, UnwindSegment: elf.PT_LOPROC + 1, // PT_ARM_EXIDX
		},
	}
}

// withName returns the name of a register that has one, as gcc writes it, for its number, and
// other words as they are.
func withName(word string) string {
	switch word {
	case "r11":
		return "fp"
	case "r12":
		return "ip"
	}
	return word
}

var readByGDB = arch.UnreadUnless("gdb", `#-?\d+|r\d+|\[\w+(?:, #-?\d+)?\]`)

// unread returns gdb for registers that have names, other than in memory operands, and for an index; and perf for numbers
// of registers that have names.
func unread(place string) (tracer string) {
	if tracer = readByGDB(place); tracer == "" && slices.ContainsFunc(arch.Words(place), func(word string) bool { return withName(word) != word }) {
		return "perf"
	}
	return tracer
}

func (m Machine) Traits() *arch.Traits { return &traits[m.order] }

// Breakpoint implements arch.Trapper, for NOPs and returns that are executed on no condition.
func (m Machine) Breakpoint(s arch.Site) []byte {
	is := func(codes ...[]byte) bool {
		return slices.ContainsFunc(codes, func(code []byte) bool { return bytes.Equal(code, s.Code) })
	}
	switch o, known := m.order, m.Traits().Breakpoints; {
	case is(o.a32(nop), o.a32(oldNop), o.a32(ret)):
		return known[0]
	case is(o.thumb(wideNop)):
		return known[2]
	case is(o.thumb(nopT), o.thumb(oldNopT)), bytes.HasPrefix(s.Code, o.thumb(retT)):
		return known[3]
	}
	return nil
}

func (o order) code() binary.ByteOrder {
	if o == big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// a32 returns the bytes of an instruction of A32.
func (o order) a32(insn uint32) []byte {
	b := make([]byte, insnLen)
	o.code().PutUint32(b, insn)
	return b
}

// thumb returns the bytes of an instruction of Thumb, of one halfword or of two, the first
// of which is in the upper bits.
func (o order) thumb(insn uint32) []byte {
	if insn>>16 == 0 {
		b := make([]byte, halfword)
		o.code().PutUint16(b, uint16(insn))
		return b
	}
	b := make([]byte, insnLen)
	o.code().PutUint16(b, uint16(insn>>16))
	o.code().PutUint16(b[halfword:], uint16(insn))
	return b
}

// readA32 reads an instruction of A32, of 4 bytes.
func (o order) readA32(b []byte) uint32 { return o.code().Uint32(b) }

// readThumb reads two halfwords of Thumb, the first into the upper bits.
func (o order) readThumb(b []byte) uint32 {
	return uint32(o.code().Uint16(b))<<16 | uint32(o.code().Uint16(b[halfword:]))
}

// names are what debug/elf calls otherwise than readelf, or does not know.
var names = [...]string{
	4:  "R_ARM_LDR_PC_G0",
	10: "R_ARM_THM_CALL",
	12: "R_ARM_BREL_ADJ",
	13: "R_ARM_TLS_DESC",
	24: "R_ARM_GOTOFF32",
	25: "R_ARM_BASE_PREL",
	26: "R_ARM_GOT_BREL",
}

func (Machine) RelocName(typ uint32) string {
	if typ < uint32(len(names)) && names[typ] != "" {
		return names[typ]
	}
	return elf.R_ARM(typ).String()
}

// threads is the layout of struct pt_regs, as programs of 32 bits have it.
var threads = arch.ThreadState{
	Size: 72, PC: 60, SP: 52, Link: 56, Flags: 64, Mode: 1 << 5, // T of CPSR
	Registers: sync.OnceValue(func() map[string]int {
		names := map[string]int{"sl": 40, "fp": 44, "ip": 48, "sp": 52, "lr": 56, "pc": 60}
		arch.AddNumberedRegisters(names, "r", 16, 0, 4)
		return names
	}),
}
