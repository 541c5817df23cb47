//go:build amd64 || arm64

package trace

// readClock reads the processor's clock, which trampolines read, too.
func readClock() uint64
