package main

import (
	"runtime"
	"runtime/debug"

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
// the heap grows into it. The call collects garbage, which takes a millisecond: it pays
// before much work.
func reserveHeap() {
	garbage := debug.SetGCPercent(-1) // to collect it once is enough
	growHeap()
	debug.SetGCPercent(garbage)
	runtime.GC() // frees what growHeap has made: the heap grows into its addresses from now on
}

// growHeap makes slices in huge pages. One that overlaps memory that was in use before is
// cleared, which takes up its memory: of one large slice that would be all of it, and of
// pieces it is the first few.
func growHeap() {
	var heap [hugePieces][]byte
	for i := range heap {
		heap[i] = make([]byte, hugePiece)
		if unix.Madvise(heap[i], unix.MADV_HUGEPAGE) != nil {
			return
		}
	}
	runtime.KeepAlive(&heap)
}
