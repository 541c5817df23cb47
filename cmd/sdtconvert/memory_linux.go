package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// hugeHeap is for how much of the heap reserveHeap asks for huge pages, in bytes: a dense
// object of some megabytes needs that much, or two threads with many files.
const hugeHeap = 48 << 20

// reserveHeap has the kernel back the heap with huge pages, where it does so for who asks.
// To touch memory for the first time, 4 KiB after 4 KiB, takes up to a third of a conversion.
// The memory is not in use before the heap grows into it. It takes a collection of garbage,
// a millisecond, so it does not pay for less work than that.
func reserveHeap() {
	heap := make([]byte, hugeHeap)
	if unix.Madvise(heap, unix.MADV_HUGEPAGE) != nil {
		return // the next collection frees it
	}
	runtime.GC() // which frees it, so that the heap has these addresses from now on
}
