//go:build !unix

package process

import "os"

var passedOn = []os.Signal{os.Interrupt}

// forward does nothing: the system tells all processes of a console.
func forward(*os.Process, os.Signal) bool { return true }

// Ends reports whether a signal ends a process that has no child.
func Ends(os.Signal) bool { return true }
