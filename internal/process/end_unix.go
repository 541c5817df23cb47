//go:build unix

package process

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// StatusOf returns the status of a child that has ended.
func StatusOf(state *os.ProcessState) Status {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Status{Signal: ws.Signal()}
	}
	return Status{Code: state.ExitCode()}
}

// kill ends the process by a signal. The runtime of Go makes something else of
// those that faults raise, so they are a shell's to raise, without a dump of it.
func kill(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL:
		signal.Reset(s)
		syscall.Kill(os.Getpid(), s)
		time.Sleep(time.Second)
	default:
		script := "ulimit -c 0; kill -" + strconv.Itoa(int(s)) + " $$"
		syscall.Exec("/bin/sh", []string{"sh", "-c", script}, nil)
	}
}

func become(path string, args, environ []string) error {
	err := syscall.Exec(path, args, environ)
	return &os.PathError{Op: "exec", Path: path, Err: err}
}
