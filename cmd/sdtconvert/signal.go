package main

import (
	"os"
	"syscall"

	"sdtconvert/internal/process"
)

// watchSignals makes an interrupted run leave no temporary file behind. A run
// without anything to write does without it.
func (p *program) watchSignals() {
	p.Watch(func(sig os.Signal) {
		p.files.Abandon()
		p.Exit(process.Status{Signal: sig}.ExitStatus())
	}, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
