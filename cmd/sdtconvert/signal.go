package main

import (
	"errors"
	"io"
	"os"
	"syscall"

	"sdtconvert/internal/process"
)

// watchSignals makes an interrupted run leave no temporary file behind. A run
// without anything to write does without it. What the parent has the program ignore,
// as nohup does, stays ignored.
func (p *program) watchSignals() {
	p.Watch(p.end, p.Heeded([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP})...)
	if pipes := p.Heeded([]os.Signal{syscall.SIGPIPE}); len(pipes) > 0 {
		p.Watch(func(os.Signal) {}, pipes...) // or the runtime would end the process by itself
		p.pipes.Store(true)
	}
}

// end ends the process as a signal would, without a trace of what is half written.
func (p *program) end(sig os.Signal) {
	p.files.Abandon()
	p.Exit(process.Status{Signal: sig}.ExitStatus())
}

// outlet is standard output or error of a run that may have files half written. A pipe
// that nobody reads any more ends the run. It is told by the write: the signal may be of
// another pipe, which is an output.
type outlet struct {
	io.Writer
	run *program
}

// Write implements io.Writer.
func (o outlet) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) && o.run.pipes.Load() && o.run.Exit != nil {
		o.run.end(syscall.SIGPIPE)
	}
	return n, err
}
