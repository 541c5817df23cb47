package main

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"sdtconvert/internal/process"
	"sdtconvert/internal/trace"
)

// traceRequests turns signals into requests. A terminal sends its signals to the program too, which decides what
// they mean.
func (p *program) traceRequests(hasProgram bool, keeper *os.File) <-chan trace.Request {
	requests := make(chan trace.Request, 16)
	if keeper != nil {
		go func() {
			io.Copy(io.Discard, keeper)
			requests <- trace.Request{End: true}
		}()
	}
	p.Watch(func(sig os.Signal) {
		number, _ := sig.(syscall.Signal)
		switch {
		case sig == syscall.SIGPIPE: // the write has failed, too
		case !hasProgram:
			requests <- trace.Request{End: true}
		case sig != os.Interrupt && sig != syscall.SIGQUIT:
			requests <- trace.Request{Signal: int(number)}
		}
	}, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	return requests
}

// envKeeper has the number of a descriptor, a pipe that ends when the process does which the user has started.
const envKeeper = "SDTCONVERT_TRACE_KEEPER"

// keeper returns the pipe to the process that has started this one to trace. ok is false in any other process.
func (p *program) keeper() (pipe *os.File, ok bool) {
	if p.Getenv(envKeeper) == "" {
		return nil, false
	}
	p.Environ = slices.DeleteFunc(slices.Clone(p.Environ), func(v string) bool { return strings.HasPrefix(v, envKeeper+"=") })
	syscall.CloseOnExec(keeperDescriptor) // for the program that is traced
	return os.NewFile(keeperDescriptor, "keeper"), true
}

const keeperDescriptor = 3

// keepTracer runs the tracer as a child, so that it lives on to put the code of traced programs back if this process is
// killed. ok is false if there is no child: then this process traces itself.
func (p *program) keepTracer() (status process.Status, ok bool) {
	self, err := os.Executable()
	if err != nil || p.Exec == nil {
		return status, false
	}
	read, write, err := os.Pipe()
	if err != nil {
		return status, false
	}
	defer write.Close()
	tracer := exec.Command(self, os.Args[1:]...)
	tracer.Env = p.EnvironWith(envKeeper, "1")
	tracer.Stdin, tracer.Stdout, tracer.Stderr, tracer.ExtraFiles = p.Stdin, p.Stdout, p.Stderr, []*os.File{read}
	err = tracer.Start()
	read.Close()
	if err != nil {
		return status, false
	}
	// A signal before this ends this process, and with it the tracer. A tracer may have got it from the terminal, too.
	p.Watch(func(sig os.Signal) { tracer.Process.Signal(sig) }, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	tracer.Wait()
	return process.StatusOf(tracer.ProcessState), true
}
