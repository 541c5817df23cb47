// Package arch says what sdtconvert must know of an instruction set.
//
// Everything that differs between machines is behind Machine, so that the
// packages above never ask which machine they work for. A machine is a folder
// beside this file and a line in package machines. A Machine sees bytes,
// offsets and relocations; it knows nothing of ELF files as a whole.
//
// machines.Lookup finds the Machine of an object; nobody else has to know how many
// there are. Sizes and offsets are in bytes.
package arch

import (
	"debug/elf"
	"fmt"
)

// Kind is what a stub means to the program that calls it.
type Kind uint8

const (
	Probe   Kind = iota // a probe call: no result is used
	Enabled             // an is-enabled test: returns int, 0 when disabled
)

// Form is the shape of the instruction that reaches a stub.
type Form uint8

const (
	Call     Form = iota // returns behind the site
	Tail                 // an unconditional jump
	CondTail             // a conditional jump; the probe is reached only if taken
)

// Describe names a site's kind and form as the listings show them.
func Describe(k Kind, f Form) string {
	return [...][3]string{
		{"call", "tail", "cond-tail"},
		{"isenabled", "isenabled-tail", "isenabled-cond-tail"},
	}[k][f]
}

// Reloc is one relocation of a text section, without its symbol.
type Reloc struct {
	Offset   uint64 // of the relocated field, from the start of the section
	Type     uint32 // R_<machine>_*
	Addend   int64  // 0 when Implicit
	Implicit bool   // SHT_REL: the addend is in the field itself
}

// Text is a window into a text section. It is wide enough for the instruction
// at the site and its neighbours, and shorter at the section's ends.
type Text struct {
	Code  []byte
	Start uint64 // offset in the section of Code[0]
}

// At returns the n bytes at section offset off, or nil when the window does
// not hold all of them.
func (t Text) At(off uint64, n int) []byte {
	if off < t.Start || off-t.Start > uint64(len(t.Code)) {
		return nil
	}
	b := t.Code[off-t.Start:]
	if len(b) < n {
		return nil
	}
	return b[:n:n]
}

// Window is how many bytes before and after a relocated field a Machine may
// ask of Text: the range of a short jump on amd64, and an instruction.
const Window = 128 + 16

// Site is an instruction, or a fixed sequence of them, that reaches a stub.
type Site struct {
	Offset uint64 // of its first byte, from the start of the section
	Form   Form
	GOT    bool   // reaches the stub through the global offset table
	Code   []byte // its bytes as found
}

// Env is what the object around a site demands of its disabled form.
type Env struct {
	ReturnThunk bool // a bare return is forbidden; jump to the return thunk
	// Armable asks that the form of a probe call begins with an instruction that
	// kernels emulate when a breakpoint of user space (a uprobe) is put over it.
	// Others are executed elsewhere, or become something else.
	Armable bool
	Text    Text // around the site
	// Returns are the relocations against the return thunk in the section of a
	// conditional tail call, sorted by offset.
	Returns []Reloc
}

// Target is what the relocation of a disabled site names.
type Target uint8

const (
	TargetNone   Target = iota // nothing: the relocation is neutralised
	TargetThunk                // the return thunk
	TargetHelper               // the Machine's Helper
)

// Change turns a site into its disabled form.
type Change struct {
	Site   Site
	New    []byte // as long as Site.Code
	Record uint64 // offset of the instruction that executes exactly when the probe is reached
	Target Target
	Reloc  Reloc // the relocation that the site keeps, unless Target is TargetNone
}

// Helper is code that disabled sites jump to where they have no room for it.
// It stands once per object, in a section of its own.
type Helper struct {
	Section string
	Align   uint64
	Code    []byte
	Thunk   *Reloc // the jump in Code to the return thunk, if there is one
}

// Stub asks for a function that does what a disabled site of a kind does, for
// programs that are linked without conversion.
type Stub struct {
	Kind       Kind
	LandingPad bool   // may be reached by indirect branches, which have to land on an instruction for it
	Thunk      string // the return thunk to jump to instead of returning, "" for none
}

// Insn is an instruction as code and as what assemblers make it of.
type Insn struct {
	Code   []byte
	Text   string // GNU's and clang's syntax, lines separated by "; "
	Symbol string // what Reloc names
	Reloc  *Reloc // from the start of Code, nil for none
}

// Features is the property of an object that promises something of all its code
// (.note.gnu.property): a linker promises what all objects do.
type Features struct {
	Property   uint32 // GNU_PROPERTY_*_FEATURE_1_AND, 0 when the machine has none
	Known      uint32 // the promises that stubs keep
	LandingPad uint32 // the one that takes a landing pad
}

// DataReloc is the arithmetic of a relocation in data: debug information is
// read through it. Size is in bytes; 0 means that the type is none of these.
type DataReloc struct {
	Size int
	Op   DataOp
}

// DataOp is what a relocation does to its field.
type DataOp uint8

const (
	Set DataOp = iota // field = S + A
	Add               // field += S + A
	Sub               // field -= S + A
)

// Traits are a machine's constants.
type Traits struct {
	Name  string // as in Go's GOARCH
	Class elf.Class

	None uint32 // the relocation type that does nothing
	Word uint32 // the type for an absolute address, of the class's word size
	// LoadBase is the type of the dynamic relocation that adds the load base to
	// an address, R_<machine>_RELATIVE.
	LoadBase uint32
	// Relative holds the types which, together at one offset, store a 32-bit
	// distance: all of them name the target but those with Sub, which name
	// the field itself.
	Relative []RelativeReloc

	// Relaxes tells that linkers delete code bytes, so that a site's address
	// has to be a symbol at the site and not a section and an offset.
	Relaxes bool
	// Deletes are the types of relocations at whose places they may do so.
	Deletes []uint32
	// ReturnThunk is the symbol that compilers jump to instead of returning,
	// "" where there is no such mitigation.
	ReturnThunk string

	Features Features
	// Arguments are the registers of a function's first integer arguments.
	Arguments []Register
	// CharUnsigned tells that C's char is unsigned.
	CharUnsigned bool

	// Breakpoints are the instructions that debuggers and kernels put over the
	// first bytes of a site when they arm it, as they stand in memory.
	Breakpoints [][]byte
}

// Register holds the names, in assembler, of the lowest 1, 2, 4 and 8 bytes of
// a register.
type Register [4]string

// Registers makes registers whose parts are named as they are.
func Registers(names ...string) []Register {
	regs := make([]Register, len(names))
	for i, name := range names {
		regs[i] = Register{name, name, name, name}
	}
	return regs
}

// RelativeReloc is one of the relocations of a PC-relative 32-bit field.
type RelativeReloc struct {
	Type uint32
	Sub  bool // names the field, whose address is subtracted
}

// Machine is one instruction set under one ABI. Machines hold no state: they may be
// compared, and used from several goroutines. Code that they are given is not modified;
// what they return may share its bytes, as Site.Code does, and is not to be modified.
type Machine interface {
	Traits() *Traits

	// RelocName names a relocation type as readelf does.
	RelocName(typ uint32) string

	// Decode finds the site that relocs[0] belongs to. relocs are all
	// relocations at that offset, the one against the stub first. A form that
	// cannot be disabled is a *Refusal.
	Decode(t Text, relocs []Reloc) (Site, error)

	// Disable gives the disabled form of a site, or a *Refusal.
	Disable(s Site, k Kind, env Env) (Change, error)

	// Disabled finds the disabled site whose record is at offset record, and
	// reports whether the bytes are a disabled form of the kind at all, whatever
	// Env it was made for.
	Disabled(t Text, record uint64, k Kind) (Site, bool)

	// Live reports whether the instruction at offset record is a call or a jump
	// to somewhere else, as a site is before its conversion and again when it
	// is switched on.
	Live(t Text, record uint64) bool

	// Jump tells where the unconditional jump at offset record goes, as an offset
	// too. ok is false where Disabled takes no jump for a disabled form.
	Jump(t Text, record uint64) (to uint64, ok bool)

	// Branches calls f with each place of code, whose first byte is at address pc,
	// that holds a direct call or jump, and with where it goes. On machines whose
	// instructions differ in length some of these places are in the middle of
	// instructions, and lead anywhere.
	Branches(code []byte, pc uint64, f func(at, to uint64))

	// Slots calls f with each place of code that calls, jumps to or loads what a slot of
	// the global offset table holds, and with the slot's address. The entries of
	// procedure linkage tables are such places.
	Slots(code []byte, pc uint64, f func(at, slot uint64))

	// Helper returns what TargetHelper stands for.
	Helper(env Env) Helper

	// Stub is the code of a stub.
	Stub(s Stub) []Insn

	// DataReloc returns the meaning of a relocation type in debug sections.
	DataReloc(typ uint32) DataReloc

	// Disassemble shows code at address pc, an instruction a string. Bytes
	// that are none are shown as data.
	Disassemble(code []byte, pc uint64) []string
}

// Refusal says why a site cannot be disabled.
type Refusal struct {
	Got string // what was met
	Fix string // what to compile differently, "" when there is no such thing
	// Address tells that the stub is not called there at all: its address is taken.
	Address bool
}

func (r *Refusal) Error() string {
	if r.Fix == "" {
		return "got " + r.Got
	}
	return fmt.Sprintf("got %s; %s", r.Got, r.Fix)
}

// Refuse makes a *Refusal for an instruction.
func Refuse(fix, format string, args ...any) *Refusal {
	return &Refusal{Got: fmt.Sprintf(format, args...), Fix: fix}
}

// RefuseAddress makes a *Refusal for what takes a stub's address.
func RefuseAddress(fix, format string, args ...any) *Refusal {
	return &Refusal{Got: fmt.Sprintf(format, args...), Fix: fix, Address: true}
}
