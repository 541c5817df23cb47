package ld

import (
	"io"
	"os"
	"sync"
)

// pipe is what the linker writes to.
type pipe struct {
	r, w *os.File
	to   io.WriteCloser
	done sync.WaitGroup
}

func newPipe(to io.WriteCloser) (*pipe, error) {
	r, w, err := os.Pipe()
	return &pipe{r: r, w: w, to: to}, err
}

// begin passes on what comes.
func (p *pipe) begin() {
	p.done.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := p.r.Read(buf)
			if n > 0 {
				if _, err := p.to.Write(buf[:n]); err != nil {
					p.r.Close() // so that the linker meets what it would have met without us
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
}

// finish passes on what is left once the linker has ended. What it has left
// running, as mold does to have its memory freed, may hold the pipe open.
func (p *pipe) finish() {
	p.stopReading()
	p.done.Wait()
	p.drain()
	p.to.Close()
}

func (p *pipe) close() {
	p.r.Close()
	p.w.Close()
}
