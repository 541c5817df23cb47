package main

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// garbage is how much garbage there may be before it is collected, in percent of the bytes in
// use.
var garbage atomic.Int64

// saveTime has the process collect garbage rarely for as long as little is in use: a file
// leaves little behind, and the process soon ends. Once much is in use, garbage is
// collected as often as memory wants it, since a multiple of much is too much. Nothing is
// set before the first collection: that would take longer than to convert a small object.
func saveTime() {
	garbage.Store(100) // as the runtime begins
	afterCollection(func() { setGarbage(garbageFor(inUse(garbage.Load()))) })
}

// saveTimeFromStart also has the first collection wait: for a command that reads many files.
func saveTimeFromStart() { setGarbage(garbageFor(0)) }

func setGarbage(percent int64) {
	garbage.Store(percent)
	debug.SetGCPercent(int(percent))
}

// garbageFor is what garbage should be with so many bytes in use.
func garbageFor(used uint64) int64 {
	switch {
	case used < 32<<20:
		return 400
	case used < 256<<20:
		return 100
	}
	return 50
}

// inUse is about how many bytes of the heap the last collection has left, with so much
// garbage until the next one, in percent. Package runtime/metrics knows it to the byte, but
// takes a twentieth of what a small object takes to get ready.
func inUse(garbage int64) uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.NextGC * 100 / uint64(100+garbage)
}

// afterCollection calls f after each collection of garbage.
func afterCollection(f func()) {
	sentinel := new([16]byte)
	runtime.AddCleanup(sentinel, func(f func()) {
		f()
		afterCollection(f)
	}, f)
}
