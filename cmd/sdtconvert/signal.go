package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"sdtconvert/internal/process"
)

// watchSignals makes an interrupted run leave no temporary file and no child behind. A run
// without either does without it.
func (p *program) watchSignals() { p.watch.Do(p.startWatching) }

func (p *program) startWatching() {
	watched := p.Watch(func(sig os.Signal) {
		if sig != syscall.SIGPIPE { // by which the runtime would end an unwatched process
			p.end(sig)
		}
	}, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	p.ownsSIGPIPE.Store(slices.Contains(watched, os.Signal(syscall.SIGPIPE)))
}

// end ends the process as a signal would, without a trace of what is half written.
func (p *program) end(sig os.Signal) {
	p.files.Abandon()
	if kill := p.killChild.Load(); kill != nil && *kill != nil {
		(*kill)()
	}
	p.Exit(process.Status{Signal: sig}.ExitStatus())
}

// outlet is standard output or error of a run that may have files half written. A pipe without a reader ends the run.
// The error of the write shows that, because SIGPIPE may come from another pipe, which is an output.
type outlet struct {
	io.Writer
	run *program
}

// Write implements io.Writer.
func (o outlet) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) && o.run.ownsSIGPIPE.Load() && o.run.Exit != nil {
		o.run.end(syscall.SIGPIPE)
	}
	return n, err
}
