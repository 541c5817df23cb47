// Sdtconvert turns the calls of probe stubs in relocatable objects into no
// operations, and records where they were. See docs/sdtconvert.1.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
