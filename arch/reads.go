package arch

// Reader is a Machine that tells where code reads data. Others tell nothing.
type Reader interface {
	// Reads calls f with each instruction in code, whose first byte is at address pc, that
	// loads from an address in [lo, hi) or makes it, and with that address. got is that of
	// Machine.Slots. Forms that it does not know are passed over, and so are instructions of
	// which the one that they depend on is more than a few before them.
	Reads(code []byte, pc, got, lo, hi uint64, f func(at, address uint64))
}

// ReadWindow is how many bytes apart the instructions may be that make an address together.
const ReadWindow = 64
