// Sdtconvert replaces calls to DTrace probe stubs with NOPs and records each site.
// See docs/sdtconvert.1.
package main

import (
	"os"
	"runtime"

	"sdtconvert/internal/process"
)

// A run works on thousands of small objects. Without a reserve, the heap is so small that it is collected
// every few of them, which takes a third of the time. The reserve is never touched, and so takes no memory.
const reserve = 8 << 20 // bytes

func main() {
	heap := make([]byte, reserve)
	status := newProgram(process.Current()).run(os.Args[0], os.Args[1:])
	runtime.KeepAlive(heap)
	os.Exit(status)
}
