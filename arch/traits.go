package arch

import "debug/elf"

// Traits are a machine's constants. What is left zero means that the machine has no
// such thing, unless it is said here that every machine has it.
type Traits struct {
	Name string // as in Go's GOARCH, or as everyone says (i386)
	ABIs []ABI  // what the headers of its objects say; at least one, all of one class

	Model DataModel // of C
	// CharUnsigned reports that C's char is unsigned.
	CharUnsigned bool

	// Rela reports that relocations of objects carry their addends (SHT_RELA). Without
	// it they are in the relocated fields (SHT_REL).
	Rela bool
	None uint32 // the relocation type that does nothing
	// NamedNone reports that None has to name symbols with names, and not sections'. Where
	// addends are in the fields, -r changes them when it moves a section; GNU ld 2.40
	// aborts on i386, when there is no field.
	NamedNone bool
	Word      uint32 // the type for an absolute address, of the class's word size
	// LoadBase is the type of the dynamic relocation that adds the load base to
	// an address, R_<machine>_RELATIVE.
	LoadBase uint32
	// DataRelocs are the relocations of debug sections, by type. Those of Size 0 are none.
	DataRelocs []DataReloc
	// Relative holds the types which, together at one offset, store a 32-bit
	// distance: all of them name the target but those with Sub, which name
	// the field itself.
	Relative []RelativeReloc
	// AlsoRelative are types that do so alone, which some assemblers write instead.
	AlsoRelative []uint32
	// LongRelative is the type that stores a 64-bit distance, for tables of functions, if some linker does not
	// know Relative outside of unwind tables; 0 if all know it.
	LongRelative uint32

	Sizes
	// PopsPushed is a function of the machine's ABI that takes off the stack what code pushes before
	// its call, which a NOP does not; "" for none.
	PopsPushed string
	// Entries are the distances back from a place that Slots finds to where an
	// entry of a procedure linkage table may begin, 0 among them.
	Entries []uint64
	// EntriesInText reports that linkers put such entries among the code.
	EntriesInText bool
	// SlotsFromTable reports that code has the address of the global offset table in a
	// register, and names slots by their distance from there.
	SlotsFromTable bool

	// Relaxes reports that linkers delete code bytes, so that a site's address
	// has to be a symbol at the site and not a section and an offset.
	Relaxes bool
	// Deletes are the types of relocations at whose places they may do so.
	Deletes []uint32
	// GoldSupported reports that GNU gold links for the machine.
	GoldSupported bool

	// Pool is the section of addresses that code loads and calls through where compilers
	// are told to, and PoolFix what to compile differently.
	Pool, PoolFix string

	ReturnThunk ReturnThunk
	// HelperAlign is the alignment of helpers in bytes.
	HelperAlign uint64
	// HelperMark is an instruction that conversions put behind the code of a helper. It is
	// never executed. It tells helpers from stubs that have the same code, where no symbol
	// does.
	HelperMark Insn
	// CodeMark is the mapping symbol of stubs and helpers, which linkers have to find there.
	// They also ask the symbol of a function which instruction set it is of, so where there
	// is a mark helpers have such symbols. "" where linkers need neither.
	CodeMark string
	// Veneers reports that linkers reach what is far through code of their own, which
	// branches indirectly: helpers need a landing pad.
	Veneers bool
	// SelfReference reports that helpers which load a semaphore name themselves.
	SelfReference bool

	Features  Features
	Arguments Arguments
	Threads   ThreadState // of programs of Linux
	DOF       DOF         // of a DOFMachine

	// Breakpoints are the instructions that debuggers and kernels put over the
	// first bytes of a site when they arm it, as they stand in memory. The first is
	// one that traps wherever it is met.
	Breakpoints [][]byte

	// Tests are the tests of disabled sites that set the result, and what sets it to a number that is not 0.
	Tests []TestCode

	// Second is of sites of two NOPs, of which Linux arms the second.
	Second SecondNop

	// Nops are the NOPs that headers of user space put where a probe is, as they
	// stand in memory: SystemTap's sys/sdt.h writes nop, which assemblers may compress.
	Nops [][]byte

	// Mapping are the letters of the mapping symbols that assemblers make, the
	// Encodings without Unmapped; "" where they make none.
	Mapping string
	// Attributes is the type of the section that tells for which processors an object is,
	// where sites depend on it.
	Attributes elf.SectionType

	Conventions
}

// WordSize returns the size of an address in bytes.
func (t *Traits) WordSize() int { return t.Model.Pointer }

// SecondNop has what sites of two NOPs begin with, in memory.
type SecondNop struct {
	Nops  [][]byte // that headers of user space have; disarmed, they may have other operands
	Armed [][]byte // with a breakpoint or a call in place of the second
}

// TestCode is the first instruction of an is-enabled site: as it is disabled, and one of the same length that enables it.
type TestCode struct{ False, True []byte }

// Sizes are lengths of code in bytes.
type Sizes struct {
	// Site is the length of the longest site, and Skip how far behind its first byte
	// the recorded instruction of one may begin.
	Site, Skip uint64
	// Branch is the length of the longest thing that Branches and Slots find.
	Branch uint64
	// Load is how many bytes LoadedSemaphore looks at.
	Load uint64
}

// ABI is what the ELF header says of an object of a machine.
type ABI struct {
	Machine elf.Machine
	Class   elf.Class
	Data    elf.Data // ELFDATANONE for either byte order
	// Flags are the bits of e_flags under Mask.
	Mask, Flags uint32
}

// Matches reports whether a header is one of the ABI.
func (a ABI) Matches(machine elf.Machine, class elf.Class, data elf.Data, flags uint32) bool {
	return a.Machine == machine && a.Class == class && (a.Data == elf.ELFDATANONE || a.Data == data) && flags&a.Mask == a.Flags
}

// DataModel are the sizes of C's types, in bytes, that differ between machines. An int
// is of 4 bytes, and a long long of 8.
type DataModel struct{ Long, Pointer int }

// The data models of Unix.
var (
	LP64  = DataModel{Long: 8, Pointer: 8}
	ILP32 = DataModel{Long: 4, Pointer: 4}
)

// RelativeReloc is one of the relocations of a PC-relative 32-bit field.
type RelativeReloc struct {
	Type uint32
	Sub  bool // names the field, whose address is subtracted
}

// ReturnThunk is what compilers jump to instead of returning, where a processor's
// faults ask for it.
type ReturnThunk struct {
	Symbol string
	// Code is what gcc makes of the thunk with -mfunction-return=thunk.
	Code  []byte
	Field uint64 // offset of the relocated field in the jump, bytes
	// Near are the forms of sites that have no room for such a jump, and jump to one
	// that is near.
	Near []Form
	// Sites is the section of distances that lists all these jumps, where a kernel
	// has its objects have one.
	Sites string
}

// Features is the property of an object that promises something of all its code
// (.note.gnu.property): a linker promises what all objects do.
type Features struct {
	Property   uint32 // GNU_PROPERTY_*_FEATURE_1_AND, 0 when the machine has none
	Supported  uint32 // the promises that stubs keep
	LandingPad uint32 // the one that takes a landing pad
}

// DataReloc is the arithmetic of a relocation in data: debug information is
// read through it. Size is in bytes; 0 means that the type is none of these.
type DataReloc struct {
	Size int
	Op   DataOp
}

// DataReloc returns the meaning of a relocation type in debug sections.
func (t *Traits) DataReloc(typ uint32) DataReloc {
	if typ < uint32(len(t.DataRelocs)) {
		return t.DataRelocs[typ]
	}
	return DataReloc{}
}

// ULEB128 is the Size of fields that are such numbers, as long as they are.
const ULEB128 = -1

type DataOp uint8

const (
	Set DataOp = iota // field = S + A
	Add               // field += S + A
	Sub               // field -= S + A
)

// ThunkChoice is the return thunk that code is to jump to instead of returning. The zero value is
// for none.
type ThunkChoice struct {
	Own    bool   // the machine's own, whatever its name is
	Symbol string // else one of this name
}

// Thunk returns the symbol of a return thunk, "" for none, and refuses one on a machine without
// return thunks.
func (t *Traits) Thunk(c ThunkChoice) (symbol string, refused *Refusal) {
	switch {
	case c == ThunkChoice{}:
		return "", nil
	case t.ReturnThunk.Symbol == "":
		return "", Refuse("do not give --return-thunk", "a machine without return thunks")
	case c.Own:
		return t.ReturnThunk.Symbol, nil
	}
	return c.Symbol, nil
}

// Conventions are what must be known of a machine to find functions in its objects
// and images. It is known of more machines than those that probes can be disabled
// for. The zero value is that of most: the value of a symbol is an address.
type Conventions struct {
	// Mode has the bits of a function's symbol that choose an instruction set, and
	// are not part of the address.
	Mode uint64

	// Descriptors is the section of function descriptors: a symbol in it stands
	// for the code whose address is the first word there. "" means none.
	Descriptors string
	// Descriptor makes one.
	Descriptor []Insn
	// Absolute is the type of the relocation that stores an address in a word of
	// an object, and Loaded of the one that adds the load base to it in an image.
	Absolute, Loaded uint32

	// UnwindTypes are the types of the sections that describe functions to unwinders,
	// and UnwindNames what the names of some begin with, besides .eh_frame.
	UnwindTypes []elf.SectionType
	UnwindNames []string
	// UnwindIndex is the type of the section, and UnwindSegment that of the segment, with an
	// index of functions as .ARM.exidx is; 0 for none.
	UnwindIndex   elf.SectionType
	UnwindSegment elf.ProgType

	// LinkerStubNames are names that linkers give to code of their own, and to places
	// without any of it.
	LinkerStubNames []string

	// WideHash reports that the entries of DT_HASH are of 8 bytes, and not of 4.
	WideHash bool
}
