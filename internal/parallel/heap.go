package parallel

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// A run works on thousands of small objects, or on a large one. Without a reserve, the heap is so small that it is
// collected every few objects, which takes a third of the time; and in pages of 4 KB, their first touch takes a tenth. The
// reserve is never touched, and so takes no memory. To allocate it takes longer than the conversion of a few objects.
const (
	reserveSize  = 16 << 20 // bytes
	hugePageSize = 2 << 20  // bytes
	hugePages    = 32
)

// ReserveHeap makes the heap ready for much work, once.
func ReserveHeap() { reserve() }

// reserve keeps the reserve in use.
var reserve = sync.OnceValue(func() []byte {
	percent := debug.SetGCPercent(-1) // to collect once is enough
	unused := make([]byte, reserveSize)
	touchLater()
	debug.SetGCPercent(percent)
	runtime.GC() // frees what touchLater has made: the heap grows into it
	return unused
})

// touchLater allocates memory that will be in huge pages once it is touched.
func touchLater() {
	var pages [hugePages][]byte
	for i := range pages {
		pages[i] = make([]byte, hugePageSize)
		useHugePages(pages[i])
	}
	runtime.KeepAlive(&pages)
}
