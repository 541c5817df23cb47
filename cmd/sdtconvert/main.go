// Sdtconvert turns the calls of probe stubs in relocatable objects into no
// operations, and records where they were. See docs/sdtconvert.1.
package main

import "os"

func main() {
	if linker, ok := linkerName(os.Args[0]); ok {
		os.Exit(runAsLinker(linker, os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
