// Sdtconvert turns the calls of probe stubs in relocatable objects into no
// operations, and records where they were. See docs/sdtconvert.1.
package main

import (
	"os"
	"runtime/debug"

	"sdtconvert/internal/process"
)

func main() {
	// A file leaves little behind, and the process soon ends: collecting less often
	// costs little memory and saves much time.
	debug.SetGCPercent(400)
	os.Exit(newProgram(process.Current()).run(os.Args[0], os.Args[1:]))
}
