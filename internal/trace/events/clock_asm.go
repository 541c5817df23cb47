//go:build amd64 || arm64

package events

// ReadClock reads the processor's clock, which trampolines read, too.
func ReadClock() uint64
