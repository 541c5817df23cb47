// Sdtconvert replaces calls to DTrace probe stubs with NOPs and records each site.
// See docs/sdtconvert.1.
package main

import (
	"os"

	"sdtconvert/internal/process"
)

func main() {
	os.Exit(newProgram(process.Current()).run(os.Args[0], os.Args[1:]))
}
