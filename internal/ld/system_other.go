//go:build !unix

package ld

import "os"

var passedOn = []os.Signal{os.Interrupt}

// forward does nothing: the system tells all processes of a console.
func forward(*os.Process, os.Signal) {}

func ends(os.Signal) bool { return true }

// stopReading waits for the end of the pipe.
func (p *pipe) stopReading() {}

func (p *pipe) drain() {}
