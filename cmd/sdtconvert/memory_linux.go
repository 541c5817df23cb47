package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// hugeHeap is how much of the heap is to be in huge pages, in bytes. A dense object of some
// megabytes needs that much, and so do two threads that convert many files.
const hugeHeap = 48 << 20

// reserveHeap asks the kernel for huge pages for the heap. Without them, the first touch of
// memory, 4 KiB after 4 KiB, takes up to a third of a conversion. No memory is in use before
// the heap grows into it. The call collects garbage, which takes a millisecond: it pays
// before much work.
func reserveHeap() {
	heap := make([]byte, hugeHeap)
	if unix.Madvise(heap, unix.MADV_HUGEPAGE) != nil {
		return // the next collection frees it
	}
	runtime.GC() // frees it: the heap grows into these addresses from now on
}
