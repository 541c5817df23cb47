package main

import (
	"os"
	"syscall"
)

// watchSignals makes an interrupted run leave no temporary file behind. A run
// without anything to write does without it.
func (p *program) watchSignals() {
	p.Watch(func(sig os.Signal) {
		p.files.Abandon()
		status := 1
		if n, ok := sig.(syscall.Signal); ok {
			status = 128 + int(n) // as shells report a death by signal
		}
		p.Exit(status)
	}, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
