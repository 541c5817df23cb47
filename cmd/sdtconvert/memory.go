package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// saveTime has the process collect garbage rarely for as long as little is in use: a file
// leaves little behind, and the process soon ends. Once much is in use, garbage is
// collected as often as memory wants it, since a multiple of much is too much.
func saveTime() {
	debug.SetGCPercent(garbageFor(0))
	afterCollection(func() { debug.SetGCPercent(garbageFor(inUse())) })
}

// garbageFor is how much garbage there may be before it is collected, in percent of the
// bytes in use.
func garbageFor(used uint64) int {
	switch {
	case used < 32<<20:
		return 400
	case used < 256<<20:
		return 100
	}
	return 50
}

// inUse is how many bytes of the heap the last collection has left.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterCollection calls f after each collection of garbage.
func afterCollection(f func()) {
	sentinel := new([16]byte)
	runtime.AddCleanup(sentinel, func(f func()) {
		f()
		afterCollection(f)
	}, f)
}
