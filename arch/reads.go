package arch

// Reader is a Machine that tells where code reads data. Others tell nothing.
type Reader interface {
	// Reads calls f with each instruction in code, whose first byte is at address pc, that
	// loads two bytes or so from an address in [lo, hi), and with that address. What only
	// makes an address reads nothing: it may be the end of what stands before it. got is that
	// of Machine.Slots. Forms that it does not know are passed over, and so are loads more
	// than ReadWindow behind what makes their address.
	Reads(code []byte, pc, got, lo, hi uint64, f func(at, address uint64))
}

// ReadWindow is how many bytes apart the instructions may be that make an address together.
const ReadWindow = 64
