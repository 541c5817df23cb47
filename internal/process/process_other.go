//go:build !unix

package process

import (
	"os"
	"os/exec"
)

// StatusOf returns the status of a child that has ended.
func StatusOf(state *os.ProcessState) Status { return Status{Code: state.ExitCode()} }

// No process can end by a signal here, nor become another program.
var (
	kill        func(sig os.Signal)
	execProgram func(path string, args, environ []string) error
)

var passedOn = []os.Signal{os.Interrupt}

// forward does nothing: the system tells all processes of a console.
func forward(*os.Process, os.Signal) bool { return true }

// ends reports whether a signal ends a process that has no child.
func ends(os.Signal) bool { return true }

// Group does nothing.
func Group(*exec.Cmd) {}

// KillGroup kills a command.
func KillGroup(p *os.Process) { p.Kill() }
