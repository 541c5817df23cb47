//go:build unix

package ld

import (
	"os"
	"syscall"
	"time"
)

// passedOn are the signals that ask a process to do something. Those that the
// parent has the wrapper ignore, as nohup does, stay ignored for the linker too.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	syscall.SIGPIPE, syscall.SIGXCPU, syscall.SIGXFSZ,
}

func forward(child *os.Process, sig os.Signal) {
	if sig != syscall.SIGPIPE { // that was for us
		child.Signal(sig)
	}
}

// ends reports whether a signal ends a process that has no child. A broken pipe is
// an error of a write.
func ends(sig os.Signal) bool { return sig != syscall.SIGPIPE }

// stopReading wakes the reader, once all is there that is to come.
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
