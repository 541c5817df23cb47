// Package x86 has what the 32-bit and the 64-bit mode of x86 share: the instructions that
// reach stubs, their disabled forms, and stubs. The package of each mode has what is its
// own: types of relocations, the global offset table, and loads of semaphores. Encodings
// are from the Intel SDM, volume 2.
package x86

import (
	"sync"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/forms"
	"sdtconvert/elfreloc"
)

// Opcodes and prefixes.
const (
	OpCall     = 0xe8 // call rel32
	OpJmp      = 0xe9 // jmp rel32
	OpJmpShort = 0xeb // jmp rel8
	OpJccShort = 0x70 // jcc rel8, with a condition in the lower half
	OpRet      = 0xc3
	OpNop      = 0x90
	OpInt3     = 0xcc
	OpTwo      = 0x0f // first byte of two, also of jcc rel32, 0f 80 to 0f 8f
	OpGroup    = 0xff // call or jmp through what the next byte, ModRM, names

	// prefixAddr does nothing before a call: it changes the size of addresses in operands.
	prefixAddr = 0x67
)

// FieldLen is the length of a relocated field, which ends its instruction.
const FieldLen = 4

// EndAddend is the addend of a field at the instruction's end that is to hold a distance
// from the next instruction to the symbol itself.
const EndAddend = -FieldLen

// Lengths of the instructions that have such a field.
const (
	branchLen = 1 + FieldLen // of call and jmp rel32
	longLen   = 2 + FieldLen // of jcc rel32, of a call with a prefix, and of calls and jumps through memory
)

// CondSkip is the length of the short jcc before the instruction that executes only when
// the probe is reached.
const CondSkip = 2

// Mode is how the code of one machine differs from that of the other.
type Mode struct {
	Bits int // 32 or 64, as addresses have

	// Nops are the NOPs of this mode by their length in bytes, from 0 to 6. Shortest is the
	// length of the shortest site.
	Nops     [longest + 1][]byte
	Shortest int
	// Header is the marked NOP of headers that is no call's disabled form, nil if there is none.
	// It is armable as it is.
	Header []byte

	// Distance returns the relocation of a field at an offset that holds the distance from
	// the end of its instruction to code of the same image. Field is what the field holds
	// before it is relocated.
	Distance func(at uint64) elfreloc.Relocation
	Field    [FieldLen]byte

	// ThroughSlot recognises a call or a jump of 6 bytes through a slot of the global
	// offset table. SlotAddend is the addend of its relocation.
	ThroughSlot func(op []byte) (arch.Form, bool)
	SlotAddend  int64
	FixNoPLT    string // what to compile differently where a slot is loaded

	LandingPad arch.Insn // where indirect branches have to land

	disabled func() *disabledForms
}

// New completes a mode by its disabled forms. They are made when they are needed: most
// runs of the program convert objects of one machine.
func New(m Mode) *Mode {
	m.disabled = sync.OnceValue(m.makeForms)
	return &m
}

// disabledForms are the disabled forms of a mode.
type disabledForms struct {
	plain, armable [arch.Kinds]family
	mark           forms.Mark
}

// branch returns an instruction that ends with a distance, as it is before relocation.
func (m *Mode) branch(opcode ...byte) []byte { return append(opcode, m.Field[:]...) }

// Unread returns a function that returns gdb for an operand which gdb does not read, and "" for others. gdb reads
// constants, also with operators, registers that match a pattern, and memory that general registers of a size (r or e) lead to: no name
// of a symbol, and no segment.
func Unread(registers, size string) func(place string) (tracer string) {
	base := `%` + size + `\w+`
	number := `[~(-]*\$-?\d+\)*`
	return arch.UnreadUnless("gdb", number+`(?:[-+*/|&^]`+number+`)*|%(?:`+registers+`)|(?:-?\d+(?:[+-]\d+[+-]\d+)?)?\((?:`+base+`)?(?:,`+base+`(?:,[1248])?)?\)`)
}

// Breakpoint is int1 (icebp), which a tracer puts over a site. Debuggers and uprobes have int3: a uprobe that comes later replaces this one, so
// that the tracer can see it. Over an int3 the kernel changes nothing, and takes its hits.
var Breakpoint = []byte{0xf1}
