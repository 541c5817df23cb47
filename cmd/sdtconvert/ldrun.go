package main

import (
	"io"
	"os"
	"os/exec"
	"sync"

	"sdtconvert/internal/ld/line"
)

// maxArguments is how many bytes of arguments a linker gets on its command line;
// more go into a response file. Windows takes 32 KiB, and the others more.
const maxArguments = 30 << 10

// run runs the linker.
func (l *link) run() (exitStatus, error) {
	if len(l.copies) == 0 && l.added == nil && l.generated == nil {
		if err := l.temp.remove(); err != nil {
			return exitStatus{}, err
		}
		return exitStatus{}, l.stepAside()
	}
	words, err := l.arguments(l.words(), "arguments")
	if err != nil {
		return exitStatus{}, err
	}
	status, err := l.child(words)
	if err != nil {
		return status, err
	}
	return status, l.rewriteReports()
}

// arguments are words for a linker, or a response file that has them.
func (l *link) arguments(words []string, name string) ([]string, error) {
	size := 0
	for _, w := range words {
		size += len(w) + 1
	}
	if size <= maxArguments {
		return words, nil
	}
	file, err := l.writeTemp(name, line.Join(words))
	return []string{"@" + file}, err
}

// child runs the linker and waits for it, while what it writes passes through.
func (l *link) child(words []string) (exitStatus, error) {
	cmd := exec.Command(l.linker, words...)
	cmd.Args[0] = l.linker
	cmd.Stdin, cmd.Env = l.Stdin, l.Environ
	var pipes []*pipe
	defer func() {
		for _, p := range pipes {
			p.close()
		}
	}()
	for _, out := range []struct {
		to   io.Writer
		file *io.Writer
	}{{l.Stdout, &cmd.Stdout}, {l.Stderr, &cmd.Stderr}} {
		if len(pipes) > 0 && sameOutput(l.Stdout, l.Stderr) {
			*out.file = pipes[0].w // in the order in which it is written
			continue
		}
		p, err := newPipe(l.names.Writer(out.to))
		if err != nil {
			return exitStatus{}, err
		}
		pipes = append(pipes, p)
		*out.file = p.w
	}
	if err := l.start(cmd); err != nil {
		return exitStatus{}, err
	}
	for _, p := range pipes {
		p.w.Close()
		p.begin()
	}
	err := cmd.Wait()
	l.ended()
	for _, p := range pipes {
		p.finish()
	}
	return statusOf(cmd.ProcessState, err)
}

// sameOutput reports whether two outputs are one.
func sameOutput(a, b io.Writer) bool {
	fileA, okA := a.(*os.File)
	fileB, okB := b.(*os.File)
	if !okA || !okB {
		return false
	}
	infoA, errA := fileA.Stat()
	infoB, errB := fileB.Stat()
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

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
