package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// How much of the heap is to be in huge pages: so many pieces, of so many bytes each. A dense
// object of some megabytes needs that much, and so do two threads that convert many files.
const (
	hugePieces = 24
	hugePiece  = 2 << 20
)

// reserveHeap asks the kernel for huge pages for the heap. Without them, the first touch of
// memory, 4 KiB after 4 KiB, takes up to a third of a conversion. No memory is in use before
// the heap grows into it: a new piece is touched only where it lies in memory that was in
// use before. The call collects garbage, which takes a millisecond: it pays before much
// work.
func reserveHeap() {
	var heap [hugePieces][]byte
	for i := range heap {
		heap[i] = make([]byte, hugePiece)
		if unix.Madvise(heap[i], unix.MADV_HUGEPAGE) != nil {
			return // the next collection frees them
		}
	}
	runtime.KeepAlive(&heap)
	runtime.GC() // frees them: the heap grows into these addresses from now on
}
