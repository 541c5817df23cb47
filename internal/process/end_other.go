//go:build !unix

package process

import "os"

// StatusOf returns the status of a child that has ended.
func StatusOf(state *os.ProcessState) Status { return Status{Code: state.ExitCode()} }

// No process can end by a signal here, nor become another program.
var (
	kill   func(sig os.Signal)
	become func(path string, args, environ []string) error
)
