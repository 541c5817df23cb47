package arch

// Some calls are not where their relocation is: an address is loaded into a register
// in one place, and called in another. Whether a register holds it there is told by the
// code between, and by all that may lead into it, so it takes more than a window.

// Follower is a Machine that has such calls.
type Follower interface {
	// Follows reports whether a relocation of a type may belong to one. Flow.Site is
	// asked for its site then, and not Decode.
	Follows(typ uint32) bool

	// Flow prepares to find the sites of one object.
	Flow(c Code) Flow
}

// Flow finds sites that are away from their relocations. It serves one goroutine.
type Flow interface {
	// Site finds the site that relocs[0] of a text section belongs to, as Decode does.
	// What cannot be disabled is a *Refusal; other errors are those of Code.Text.
	Site(section int, relocs []Reloc) (Site, error)
}

// Code is what a Flow asks of an object. Places are sorted by section, and then by
// offset.
type Code struct {
	Text    func(section int) (Text, error) // all of a text section
	Symbols []Symbol                        // that text sections define, but for those of sections
	// Refs are the relocations of all text sections, and those of other sections that are
	// loaded against symbols in text sections. What describes functions to unwinders is
	// left out.
	Refs []Ref
}

// Place is an offset in a section.
type Place struct {
	Section int // its index, 0 for none
	Offset  uint64
}

// Symbol is what a symbol tells of a place.
type Symbol struct {
	Place
	Func bool // a function begins there
}

// Ref is a relocation in a section.
type Ref struct {
	Reloc
	Section int   // that the relocated field is in
	Code    bool  // which is a text section
	To      Place // what its symbol names, without the addend; no place for an undefined one
}
