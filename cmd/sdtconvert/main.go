// Sdtconvert turns the calls of probe stubs in relocatable objects into no
// operations, and records where they were. See docs/sdtconvert.1.
package main

import (
	"os"
	"runtime/debug"
)

func main() {
	// Each file leaves little behind, and the process soon ends: collecting
	// garbage less often costs little memory and saves much time.
	debug.SetGCPercent(400)
	onSignal()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
