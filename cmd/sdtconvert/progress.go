package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress shows on a terminal how far a long run has come. It is silent for
// the first second, and where nobody watches.
type progress struct {
	w       io.Writer // nil when there is nothing to show
	total   int
	started time.Time
	last    time.Time
	shown   bool
}

const (
	progressDelay = time.Second
	progressEvery = 100 * time.Millisecond
	clearLine     = "\r\x1b[K"
)

func newProgress(w io.Writer, total int) *progress {
	p := &progress{total: total, started: time.Now()}
	if isTerminal(w) && total > 1 {
		p.w = w
	}
	return p
}

// pause makes room for other lines.
func (p *progress) pause() {
	if p.shown {
		io.WriteString(p.w, clearLine)
		p.shown = false
	}
}

func (p *progress) resume(done int) {
	now := time.Now()
	if p.w == nil || now.Sub(p.started) < progressDelay || now.Sub(p.last) < progressEvery {
		return
	}
	fmt.Fprintf(p.w, "%s%d of %d files", clearLine, done, p.total)
	p.last, p.shown = now, true
}

func (p *progress) stop() { p.pause() }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
