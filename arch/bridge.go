package arch

// Bridger is a Machine whose linkers put code of their own between branches and where these
// go, if that is of another instruction set.
type Bridger interface {
	// Bridges calls f with the address and the length of each such piece in code, whose
	// first byte is at address pc, and with where it goes. None is longer than
	// Sizes.Branch.
	Bridges(code []byte, pc uint64, f func(at, size, to uint64))
}
