package main

// Commands that take any number of files work on several at once, and print in the
// order of the command line.

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/manifest"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
)

// runAll works on all files of a command, and prints the results: as one manifest, or as they are.
func (p *program) runAll(files []string, jobs int, asManifest bool, work func(file string) *convert.Result) (failed bool, err error) {
	files, err = input.Distinct(files)
	if err != nil {
		return false, err
	}
	progress := p.newProgress()
	stdout, stderr := endingWriter{p.Stdout, p}, endingWriter{p.Stderr, p}
	var warnings message.Tally
	objects := manifest.NewWriter(stdout)
	workOn := func(i int) *convert.Result { return work(files[i]) }
	parallel.InOrder(len(files), jobs, workOn, func(i int, r *convert.Result) {
		progress.pause()
		if r.Messages.Len() > 0 {
			stderr.Write(r.Messages.Bytes())
		}
		warnings.Add(r.Warnings...)
		for _, object := range r.Objects {
			objects.Add(object)
		}
		if !asManifest && r.Lines.Len() > 0 && err == nil {
			_, err = stdout.Write(r.Lines.Bytes())
		}
		failed = failed || r.Failed
		progress.resume(i+1, len(files))
	})
	progress.pause()
	warnings.Print(stderr)
	if asManifest {
		err = objects.Close()
	}
	return failed, err
}

// progress shows on a terminal how far a long run has come. It is silent for
// the first second, and without a terminal.
type progress struct {
	w       io.Writer // nil when there is nothing to show
	started time.Time
	last    time.Time
	visible bool
}

const (
	progressDelay = time.Second
	progressEvery = 100 * time.Millisecond
	clearLine     = "\r\x1b[K"
)

func (p *program) newProgress() *progress {
	progress := &progress{started: time.Now()}
	if isTerminal(p.Stderr) {
		progress.w = p.Stderr
	}
	return progress
}

// pause makes room for other lines.
func (p *progress) pause() {
	if p.visible {
		io.WriteString(p.w, clearLine)
		p.visible = false
	}
}

// resume shows how many files are done, if it is time to.
func (p *progress) resume(done, total int) {
	now := time.Now()
	if p.w == nil || now.Sub(p.started) < progressDelay || now.Sub(p.last) < progressEvery {
		return
	}
	fmt.Fprintf(p.w, "%s%d of %d files", clearLine, done, total)
	p.last, p.visible = now, true
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
