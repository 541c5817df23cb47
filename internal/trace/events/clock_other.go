//go:build !amd64 && !arm64

package events

// ReadClock returns nanoseconds: there are no trampolines here.
func ReadClock() uint64 { return monotonic() }
