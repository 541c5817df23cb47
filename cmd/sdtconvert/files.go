package main

// Commands that take any number of files work on several at once, and print in the
// order of the command line.

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"sdtconvert/internal/input"
	"sdtconvert/internal/manifest"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
)

// result is what a command has to print of one file.
type result struct {
	lines    []byte // for standard output, unless there is a manifest
	messages []byte // for standard error
	warnings []message.FileWarning
	failed   bool
	objects  []*manifest.Object // of a manifest
}

// runAll works on all files of a command, and prints the results.
func (p *program) runAll(s *settings, work func(file string) *result) (failed bool, err error) {
	files, err := input.Distinct(s.files)
	if err != nil {
		return false, err
	}
	progress := newProgress(p.Stderr, len(files))
	defer progress.stop()
	stdout, stderr := outlet{p.Stdout, p}, outlet{p.Stderr, p}
	out := &resultPrinter{w: stdout}
	var warnings message.Tally
	if s.json {
		out.manifest = manifest.NewWriter(stdout)
	}
	parallel.InOrder(len(files), s.jobs, func(i int) *result { return work(files[i]) }, func(i int, r *result) {
		progress.pause()
		if len(r.messages) > 0 {
			stderr.Write(r.messages)
		}
		warnings.Add(r.warnings...)
		out.print(r)
		failed = failed || r.failed
		progress.resume(i + 1)
	})
	progress.stop()
	warnings.Print(stderr)
	return failed, out.close()
}

// resultPrinter prints results: as one manifest, or as they are.
type resultPrinter struct {
	w        io.Writer
	manifest *manifest.Writer // nil where none is wanted
	err      error            // of w, the first
}

func (o *resultPrinter) print(r *result) {
	if o.manifest == nil {
		if len(r.lines) > 0 && o.err == nil {
			_, o.err = o.w.Write(r.lines)
		}
		return
	}
	for i, object := range r.objects {
		o.manifest.Add(object)
		r.objects[i] = nil // an archive may have any number of members
	}
}

func (o *resultPrinter) close() error {
	if o.manifest != nil {
		return cmp.Or(o.err, o.manifest.Close())
	}
	return o.err
}

// progress shows on a terminal how far a long run has come. It is silent for
// the first second, and without a terminal.
type progress struct {
	w       io.Writer // nil when there is nothing to show
	total   int
	started time.Time
	last    time.Time
	visible bool
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
	if p.visible {
		io.WriteString(p.w, clearLine)
		p.visible = false
	}
}

func (p *progress) resume(done int) {
	now := time.Now()
	if p.w == nil || now.Sub(p.started) < progressDelay || now.Sub(p.last) < progressEvery {
		return
	}
	fmt.Fprintf(p.w, "%s%d of %d files", clearLine, done, p.total)
	p.last, p.visible = now, true
}

func (p *progress) stop() { p.pause() }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
