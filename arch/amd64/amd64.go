// Package amd64 knows the x86-64 instruction set under the System V ABI.
//
// A site's form is decided by the opcode bytes before the relocated field, and
// not by the relocation type: compilers use R_X86_64_PLT32 for calls, jumps
// and conditional jumps alike, and R_X86_64_GOTPCRELX for calls through the
// GOT as well as for loads of the address. Encodings are from the Intel SDM,
// volume 2; relocation types from the x86-64 psABI, section 4.4.
package amd64

import (
	"debug/elf"
	"fmt"
	"strconv"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
)

// Machine implements arch.Machine. What is not here it has from its mode.
var Machine arch.Machine = machine{mode}

type machine struct{ *x86.Mode }

var traits = arch.Traits{
	Name:       "amd64",
	ABIs:       []arch.ABI{{Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB}},
	Model:      arch.LP64,
	Rela:       true,
	None:       uint32(elf.R_X86_64_NONE),
	Word:       uint32(elf.R_X86_64_64),
	LoadBase:   uint32(elf.R_X86_64_RELATIVE),
	DataRelocs: []arch.DataReloc{elf.R_X86_64_64: {Size: 8}, elf.R_X86_64_32: {Size: 4}},
	Relative:   []arch.RelativeReloc{{Type: uint32(elf.R_X86_64_PC32)}},
	Sizes: arch.Sizes{
		Site:   uint64(len(nopNop10)),
		Skip:   x86.CondSkip + uint64(len(zeroEAX)), // of a test as DisableDOF makes it
		Branch: movLen,
		Load:   12, // endbr64, a load of 7 bytes, and the first of a return
	},
	Entries:       []uint64{0, 1, 4, 5}, // endbr64 before the jump, a bnd prefix of it, or both
	GoldSupported: true,
	ReturnThunk: arch.ReturnThunk{
		Symbol: "__x86_return_thunk",
		Code: []byte{
			0xe8, 0x07, 0x00, 0x00, 0x00, // call 1f
			0xf3, 0x90, // 0: pause
			0x0f, 0xae, 0xe8, // lfence
			0xeb, 0xf9, // jmp 0b
			0x48, 0x8d, 0x64, 0x24, 0x08, // 1: lea 8(%rsp),%rsp
			0xc3, // ret
		},
		Field: 1,
		Near:  []arch.Form{arch.CondTail},
		Sites: ".return_sites", // of objtool, for the Linux kernel to patch at boot
	},
	HelperAlign: 16,
	HelperMark:  arch.Insn{Code: []byte{0x0f, 0x1f, 0x80, 's', 'd', 't', 0}, Text: "nopl 0x746473(%rax)"},
	Features: arch.Features{ // x86-64 psABI, "Program Property"
		Property:   0xc0000002, // GNU_PROPERTY_X86_FEATURE_1_AND
		Supported:  1 | 2,      // IBT and SHSTK
		LandingPad: 1,
	},
	Arguments: arch.Arguments{ // x86-64 psABI, section 3.2.3
		Registers: []arch.Register{
			{"%dil", "%di", "%edi", "%rdi"},
			{"%sil", "%si", "%esi", "%rsi"},
			{"%dl", "%dx", "%edx", "%rdx"},
			{"%cl", "%cx", "%ecx", "%rcx"},
			// Of these gdb 18 knows no name of the low byte that assemblers know.
			{"%r8", "%r8w", "%r8d", "%r8"},
			{"%r9", "%r9w", "%r9d", "%r9"},
		},
		// A tail call finds the return address pushed.
		Stack:  &arch.Stack{Operand: "%d(%%rsp)", Call: 0, Tail: 8},
		Rename: whole64,
		Unread: x86.Unread(`[re]?(?:[abcd]x|[sd]i|[sb]p)|[abcd][lh]|(?:[sd]i|[sb]p)l|rip|r(?:[89]|1[0-5])[dw]?`, "r"),
	},
	Threads:     threads,
	DOF:         traitsDOF,
	Breakpoints: [][]byte{{0xcc}, x86.Breakpoint}, // int3 of others, int1 of sdtconvert trace
	Second: arch.SecondNop{
		Nops: [][]byte{
			nopNop10[:6], // Linux 7.3 leaves the distance of its call in the operand
			{x86.OpNop, 0x0f, 0x1f, 0x44, 0x00, 0x00}, // nop; nopl 0(%rax,%rax,1)
		},
		Armed: [][]byte{
			{x86.OpNop, 0xcc}, // nop; int3
			{x86.OpNop, 0x48, 0x8d, 0x64, 0x24, 0x80, x86.OpCall}, // nop; lea -0x80(%rsp),%rsp; call
			{x86.OpNop, x86.OpCall},                               // nop; call, of Linux 6.18
			{x86.OpNop, 0xe9},                                     // nop; jmp, of sdtconvert trace
		},
	},
	Nops:  [][]byte{{0x90}},                                                       // nop
	Tests: []arch.TestCode{{False: []byte{0x31, 0xc0}, True: []byte{0xb0, 0x01}}}, // xor %eax,%eax; mov $1,%al
	Conventions: arch.Conventions{
		UnwindTypes: []elf.SectionType{elf.SHT_LOPROC + 1}, // SHT_X86_64_UNWIND
	},
}

// whole64 returns the name of one of the registers r8 to r15 for that of its low byte, and other
// words as they are. gdb 18 calls the byte r8l, which no other tracer knows.
func whole64(word string) string {
	number, isByte := strings.CutSuffix(strings.TrimPrefix(word, "r"), "b")
	if n, err := strconv.Atoi(number); !isByte || err != nil || word != fmt.Sprintf("r%db", n) || n < 8 || n > 15 {
		return word
	}
	return "r" + number
}

func (machine) Traits() *arch.Traits { return &traits }

func (machine) RelocName(typ uint32) string { return elf.R_X86_64(typ).String() }
