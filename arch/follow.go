package arch

import "sdtconvert/elfreloc"

// Some calls are not where their relocation is: one instruction loads the stub's address
// into a register, and others call it. Which do, only the code of the whole function
// tells, and all that leads into it, so it takes more than a window.

// Follower is a Machine that has such calls.
type Follower interface {
	// Follows reports whether a relocation of a type may belong to a load of an address.
	Follows(typ uint32) bool

	// Flow prepares to follow the loads of one object.
	Flow(c ObjectCode) Flow
}

// Flow follows addresses from loads to calls. It serves one goroutine.
type Flow interface {
	// Follow returns what becomes of each load of a text section, in the order of loads,
	// which are sorted by offset. Its errors are those of ObjectCode.Text.
	Follow(section int, loads []StubLoad) ([]Followed, error)
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

// ObjectCode is what a Flow asks of an object. Places are sorted by section, and then by
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
