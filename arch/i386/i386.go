// Package i386 knows the instruction set of 32-bit x86 under the System V ABI.
//
// Sites are those of x86-64, and so are most of their disabled forms. What differs:
// relocations have no addends (SHT_REL), so those of a site are in its bytes; arguments
// are on the stack; the global offset table is reached through a register, or at its
// address; and code cannot name its own place, so that a helper has to ask for it.
// Stubs have to leave their arguments to the caller (cdecl): calls do not show whether
// a callee removes them. Encodings are from the Intel SDM, volume 2;
// relocation types from the Intel386 psABI, section 4.2.
package i386

import (
	"debug/elf"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
)

// Machine implements arch.Machine. What is not here it has from its mode.
var Machine arch.Machine = machine{mode}

type machine struct{ *x86.Mode }

var traits = arch.Traits{
	Name:       "i386",
	ABIs:       []arch.ABI{{Machine: elf.EM_386, Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB}},
	Model:      arch.ILP32,
	None:       uint32(elf.R_386_NONE),
	NamedNone:  true,
	Word:       uint32(elf.R_386_32),
	LoadBase:   uint32(elf.R_386_RELATIVE),
	DataRelocs: []arch.DataReloc{elf.R_386_32: {Size: 4}},
	Relative:   []arch.RelativeReloc{{Type: uint32(elf.R_386_PC32)}},
	Sizes: arch.Sizes{
		Site:   6,
		Skip:   x86.CondSkip,
		Branch: 2 + x86.FieldLen,
		Load:   17, // endbr32, a call of 5 bytes, a load of 7, and the first of a return
	},
	Entries:        []uint64{0, 4, 9}, // endbr32 before the jump, and mold's load of an index, too
	SlotsFromTable: true,
	GoldSupported:  true,
	ReturnThunk: arch.ReturnThunk{
		Symbol: "__x86_return_thunk",
		Code: []byte{
			0xe8, 0x07, 0x00, 0x00, 0x00, // call 1f
			0xf3, 0x90, // 0: pause
			0x0f, 0xae, 0xe8, // lfence
			0xeb, 0xf9, // jmp 0b
			0x8d, 0x64, 0x24, 0x04, // 1: lea 4(%esp),%esp
			0xc3, // ret
		},
		Field: 1,
		Near:  []arch.Form{arch.CondTail},
	},
	HelperAlign: 16,
	HelperMark:  arch.Insn{Code: []byte{0x8d, 0xb6, 's', 'd', 't', 0}, Text: "leal 0x746473(%esi), %esi"},
	Features: arch.Features{ // Intel386 psABI, "Program Property"
		Property:   0xc0000002, // GNU_PROPERTY_X86_FEATURE_1_AND
		Supported:  1 | 2,      // IBT and SHSTK
		LandingPad: 1,
	},
	// Intel386 psABI, section 2.2.3. A tail call finds the return address pushed.
	Arguments:   arch.Arguments{Stack: &arch.Stack{Operand: "%d(%%esp)", Call: 0, Tail: 4}, Unread: x86.Unread(`e?(?:[abcd]x|[sd]i|[sb]p)|[abcd][lh]`, "e")},
	Threads:     threads,
	Breakpoints: [][]byte{{0xcc}, x86.Breakpoint},                                       // int3 of others, int1 of sdtconvert trace
	Tests:       []arch.TestCode{{False: []byte{0x31, 0xc0}, True: []byte{0xb0, 0x01}}}, // xor %eax,%eax; mov $1,%al
	Nops:        [][]byte{{0x90}},                                                       // nop
}

func (machine) Traits() *arch.Traits { return &traits }

// Breakpoint implements arch.Trapper.
func (machine) Breakpoint(arch.Site) []byte { return x86.Breakpoint }

func (machine) RelocName(typ uint32) string { return elf.R_386(typ).String() }

// threads is the layout of user_regs_struct.
var threads = arch.ThreadState{
	Return: []byte{x86.OpRet}, Size: 68, PC: 48, SP: 60, Trap: 1,
	Pointer: 4, PointerSet: 0x200, Segment: "gs", Offset: "ntpoff", Selector: 40, // base_addr of the first of NT_386_TLS; xgs
	Registers: sync.OnceValue(func() map[string]int {
		return map[string]int{
			"ebx": 0, "bx": 0, "bl": 0, "ecx": 4, "cx": 4, "cl": 4, "edx": 8, "dx": 8, "dl": 8, "esi": 12, "si": 12,
			"edi": 16, "di": 16, "ebp": 20, "bp": 20, "eax": 24, "ax": 24, "al": 24, "esp": 60, "sp": 60,
			"bh": 1, "ch": 5, "dh": 9, "ah": 25,
		}
	}),
}
