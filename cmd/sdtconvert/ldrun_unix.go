//go:build unix

package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// passedOn are the signals that ask a process to do something. Those that the
// parent has the wrapper ignore, as nohup does, stay ignored for the linker too.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	syscall.SIGPIPE, syscall.SIGXCPU, syscall.SIGXFSZ,
}

// stepAside becomes the linker.
func (l *link) stepAside() error {
	err := syscall.Exec(l.linker, append([]string{l.linker}, l.given...), l.Environ)
	return &os.PathError{Op: "exec", Path: l.linker, Err: err}
}

// exitStatus is how the linker has ended.
type exitStatus struct {
	code   int
	signal syscall.Signal // 0 if none ended it
}

func statusOf(state *os.ProcessState, err error) (exitStatus, error) {
	if state == nil {
		return exitStatus{}, err
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return exitStatus{signal: ws.Signal()}, nil
	}
	return exitStatus{code: state.ExitCode()}, nil
}

// end returns the exit status, or dies as the linker did.
func (s exitStatus) end() int {
	if s.signal == 0 {
		return s.code
	}
	die(s.signal)
	return 128 + int(s.signal) // as shells report a death by signal
}

// die ends the process by a signal. The runtime of Go makes something else of
// those that faults raise, so they are a shell's to raise, without a dump of it.
func die(sig syscall.Signal) {
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL:
		signal.Reset(sig)
		syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second)
	default:
		script := "ulimit -c 0; kill -" + strconv.Itoa(int(sig)) + " $$"
		syscall.Exec("/bin/sh", []string{"sh", "-c", script}, nil)
	}
}

// notable are those of a list that the process does not ignore.
func notable(signals []os.Signal) []os.Signal {
	var all []os.Signal
	for _, s := range signals {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
}

func forward(child *os.Process, sig os.Signal) {
	if sig != syscall.SIGPIPE { // that was for us
		child.Signal(sig)
	}
}

// ends reports whether a signal ends a process that has no child. A broken pipe is
// an error of a write.
func ends(sig os.Signal) bool { return sig != syscall.SIGPIPE }

// dieBy is die for what a channel of signals holds.
func dieBy(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		die(s)
		os.Exit(128 + int(s))
	}
	os.Exit(exitFailed)
}

// stopReading wakes who reads, once all is there that is to come.
func (p *pipe) stopReading() { p.r.SetReadDeadline(time.Now()) }

// drain passes on what the pipe still holds.
func (p *pipe) drain() {
	conn, err := p.r.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) {
		buf := make([]byte, 64<<10)
		for {
			n, err := syscall.Read(int(fd), buf)
			if err == syscall.EINTR {
				continue
			}
			if n <= 0 {
				return
			}
			if _, err := p.to.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}
