// Sdtconvert turns the calls of probe stubs in relocatable objects into no
// operations, and records where they were. See docs/sdtconvert.1.
package main

import (
	"os"

	"sdtconvert/internal/process"
)

func main() {
	saveTime()
	os.Exit(newProgram(process.Current()).run(os.Args[0], os.Args[1:]))
}
