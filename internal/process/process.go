// Package process is what a run of the program has of the process that it is in:
// standard streams, environment and signals. Nothing else asks package os for them,
// so that several runs can be in one process at once.
package process

import (
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// Process is what a run is given. Only the streams have to be there.
type Process struct {
	Stdin          io.Reader // nil for one that is empty
	Stdout, Stderr io.Writer
	Environ        []string // "NAME=value", as os.Environ has them

	// Notify sends signals to a channel, as signal.Notify does; nil where none come.
	Notify func(c chan<- os.Signal, signals ...os.Signal)
	// Exit ends the process at once. It is called only after a signal.
	Exit func(status int)
}

// Current is the process itself.
func Current() *Process {
	return &Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Notify: signal.Notify, Exit: os.Exit,
	}
}

// Getenv returns a variable of the environment, "" for one that is not there.
func (p *Process) Getenv(name string) string {
	for _, variable := range p.Environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// Setenv changes the environment of what the run starts.
func (p *Process) Setenv(name, value string) {
	p.Environ = slices.DeleteFunc(slices.Clone(p.Environ), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	p.Environ = append(p.Environ, name+"="+value)
}

// Watch calls f with each of the signals that comes, one after the other.
func (p *Process) Watch(f func(os.Signal), signals ...os.Signal) {
	if p.Notify == nil || len(signals) == 0 {
		return
	}
	c := make(chan os.Signal, 16)
	p.Notify(c, signals...)
	go func() {
		for sig := range c {
			f(sig)
		}
	}()
}
