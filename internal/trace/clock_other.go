//go:build !amd64 && !arm64

package trace

// readClock returns nanoseconds: there are no trampolines here.
func readClock() uint64 { return monotonic() }
