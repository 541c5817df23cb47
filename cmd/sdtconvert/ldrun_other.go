//go:build !unix

package main

import (
	"os"
	"os/exec"
)

var passedOn = []os.Signal{os.Interrupt}

// stepAside runs the linker where no process can become another.
func (l *link) stepAside() error {
	cmd := exec.Command(l.linker, l.given...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.Stdin, l.Stdout, l.Stderr
	l.watch()
	if err := l.start(cmd); err != nil {
		return err
	}
	err := cmd.Wait()
	status, err := statusOf(cmd.ProcessState, err)
	if err == nil {
		os.Exit(status.end())
	}
	return err
}

// exitStatus is how the linker has ended.
type exitStatus struct{ code int }

func statusOf(state *os.ProcessState, err error) (exitStatus, error) {
	if state == nil {
		return exitStatus{}, err
	}
	return exitStatus{state.ExitCode()}, nil
}

func (s exitStatus) end() int { return s.code }

func notable(signals []os.Signal) []os.Signal { return signals }

// forward does nothing: the system tells all processes of a console.
func forward(*os.Process, os.Signal) {}

func ends(os.Signal) bool { return true }

func dieBy(os.Signal) { os.Exit(exitFailed) }

// stopReading waits for the end of the pipe.
func (p *pipe) stopReading() {}

func (p *pipe) drain() {}
