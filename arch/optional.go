package arch

// Interfaces that only some machines implement.

import "sdtconvert/elfreloc"

// DOFMachine is a Machine for which DTrace has disabled forms of its own: those that
// kernels arm which are told of sites by DTrace's object format (DOF). They differ from
// those of Disable where a kernel asks for more: a test is armed by a trap that sets the
// result and goes on behind one instruction, so there has to be one that is recorded.
type DOFMachine interface {
	Machine

	// DisableDOF gives such a form of a site, or a *Refusal. DOF gives the offset of the
	// site as RecordedOffset. The Target is TargetNone but for tests that no kernel arms,
	// which DOF leaves out.
	DisableDOF(s Site, k Kind) (Change, error)

	// DisabledDOF finds a site of such a form of a kind whose relocated field is at
	// offset field: where there is no target, the relocation has become one that does
	// nothing, and stays.
	// DisableDOF of the site changes no byte.
	DisabledDOF(t Text, field uint64, k Kind) (Site, bool)

	// RecordedDOF finds one by its record in DOF, the RecordedOffset of DisableDOF.
	RecordedDOF(t Text, record uint64, k Kind) (Site, bool)
}

// DOF are the traits of a DOFMachine.
type DOF struct {
	// Distance is the relocation type for the distance from a field of 8 bytes to what
	// the relocation names, plus its addend.
	Distance uint32
	// Tests reports that kernels with DTrace arm is-enabled tests. Elsewhere these stay
	// false, and DOF has no record of them.
	Tests bool
}

// CallChecker is a Machine whose calls leave something on the stack that code behind them may read.
type CallChecker interface {
	// CallCheck returns a function for the sites of a text, best in their order, which serves one goroutine. It refuses
	// a site, not of the form Nop, whose disabled form does not do to the stack what the code behind it relies on.
	CallCheck(t Text) func(s Site, k Kind) *Refusal
}

// Bridger is a Machine whose linkers put code of their own between branches and where these
// go, if that is of another instruction set.
type Bridger interface {
	// Bridges calls f with the address and the length of each such piece in code, whose
	// first byte is at address pc, and with where it goes. None is longer than
	// Sizes.Branch.
	Bridges(code []byte, pc uint64, f func(at, size, to uint64))
}

// Some calls are not where their relocation is: one instruction loads the stub's address
// into a register, and others call it. Which do, only the code of the whole function
// tells, and all that leads into it, so it takes more than a window.

// Follower is a Machine that has such calls.
type Follower interface {
	// Follows reports whether a relocation of a type may belong to a load of an address.
	Follows(typ uint32) bool

	// Follow returns a function for the text sections of one object, which serves one goroutine. It returns what becomes
	// of each load of a section, in the order of loads, which are sorted by offset. Its errors are those of
	// ObjectCode.Text.
	Follow(c ObjectCode) func(section int, loads []StubLoad) ([]Followed, error)
}

// StubLoad is a relocation of a type that a Machine follows, and the stub that it names.
type StubLoad struct {
	elfreloc.Relocation
	Stub int // any number that is another one for each stub
}

// Followed is what is known of a load.
type Followed struct {
	// Sites are the calls that the address reaches, sorted by offset. Those that loads of
	// one function share are told for the first of these alone.
	Sites []Site
	// Load is the instruction that loads the address, and New what takes its place; nil for
	// one that stays, and does no harm without its relocation.
	Load Site
	New  []byte
	// Refused says why the calls of the stub in this function cannot be disabled.
	Refused *Refusal
}

// ObjectCode is what a Follower asks of an object. Places are sorted by section, and then by
// offset.
type ObjectCode struct {
	Text    func(section int) (Text, error) // all of a text section
	Symbols []Symbol                        // that text sections define, but for those of sections
	// Refs are the relocations of all text sections, and those of other sections that are
	// loaded against symbols in text sections. What describes functions to unwinders is
	// left out.
	Refs []CodeRef
	// LandingPads reports that unwinders may continue functions in places that Refs leave out.
	LandingPads bool
}

// Symbol is what a symbol says about an address.
type Symbol struct {
	elfreloc.Addr
	Func bool // a function begins there
}

// CodeRef is a relocation in a section.
type CodeRef struct {
	elfreloc.Relocation
	Section int           // that the relocated field is in
	Code    bool          // which is a text section
	To      elfreloc.Addr // what its symbol names, without the addend; no place for an undefined one
}
