//go:build unix

package ld

import (
	"syscall"
	"time"
)

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
