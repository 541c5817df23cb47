//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

// passedOn are the signals that ask a process to do something. Those that the
// parent has the wrapper ignore, as nohup does, stay ignored for the program too.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	syscall.SIGPIPE, syscall.SIGXCPU, syscall.SIGXFSZ,
}

// forward passes a signal on to the child, and reports whether that still runs.
func forward(child *os.Process, sig os.Signal) bool {
	if sig == syscall.SIGPIPE { // that was for us
		return true
	}
	return !errors.Is(child.Signal(sig), os.ErrProcessDone)
}

// Ends reports whether a signal ends a process that has no child. A broken pipe is
// an error of a write.
func Ends(sig os.Signal) bool { return sig != syscall.SIGPIPE }
