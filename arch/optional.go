package arch

// Interfaces that only some machines implement. One more, Follower, is in follow.go.

// DOFMachine is a Machine for which DTrace has disabled forms of its own: those that
// kernels arm which are told of sites by DTrace's object format (DOF). They differ from
// those of Disable where a kernel asks for more: a test is armed by a trap that sets the
// result and goes on behind one instruction, so there has to be one that is recorded.
type DOFMachine interface {
	Machine

	// DisableDOF gives such a form of a site, or a *Refusal. Its Record is what DOF tells
	// of the site. Its Target is TargetNone but for tests that no kernel arms, of which
	// nothing is told.
	DisableDOF(s Site, k Kind) (Change, error)

	// DisabledDOF finds a site of such a form of a kind whose relocated field is at
	// offset field: where there is no target, the relocation has become one that does
	// nothing, and stays.
	// DisableDOF of the site changes no byte.
	DisabledDOF(t Text, field uint64, k Kind) (Site, bool)

	// RecordedDOF finds one by its record in DOF, the Record of DisableDOF.
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
	// CheckCall refuses a site in a text, not of the form Nop, whose disabled form does not do to the stack what
	// the code behind it relies on.
	CheckCall(t Text, s Site, k Kind) *Refusal
}

// Bridger is a Machine whose linkers put code of their own between branches and where these
// go, if that is of another instruction set.
type Bridger interface {
	// Bridges calls f with the address and the length of each such piece in code, whose
	// first byte is at address pc, and with where it goes. None is longer than
	// Sizes.Branch.
	Bridges(code []byte, pc uint64, f func(at, size, to uint64))
}
