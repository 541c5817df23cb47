//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
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

func execProgram(path string, args, environ []string) error {
	err := syscall.Exec(path, args, environ)
	return &os.PathError{Op: "exec", Path: path, Err: err}
}

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

// ends reports whether a signal ends a process that has no child. A broken pipe is
// an error of a write.
func ends(sig os.Signal) bool { return sig != syscall.SIGPIPE }

// Group makes a process group of a command: a compiler's driver runs other programs.
func Group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills a command that Group was called for, and all that it runs.
func KillGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }
