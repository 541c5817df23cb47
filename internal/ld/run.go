package ld

import (
	"io"
	"os"
	"os/exec"
	"slices"

	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/process"
)

// maxArguments is how many bytes of arguments a linker gets on its command line;
// more go into a response file. Windows takes 32 KiB, and the others more.
const maxArguments = 30 << 10

// arguments returns words for a linker, or a response file that has them.
func (l *link) arguments(words []string, name string) ([]string, error) {
	size := 0
	for _, w := range words {
		size += len(w) + 1
	}
	if size <= maxArguments {
		return words, nil
	}
	file, err := l.session.write(name, line.Join(words))
	return []string{"@" + file}, err
}

// stepAside execs the linker, as it was called, or runs that with its
// own streams. The flags of ready, which may be nil, come first.
func (l *link) stepAside(ready *prepared) (process.Status, error) {
	args := l.args
	if ready != nil {
		args = slices.Concat(ready.flags, args)
	}
	if l.Exec != nil {
		return process.Status{}, l.Exec(l.linker.path, append([]string{l.linker.path}, args...), l.linker.environ)
	}
	cmd := l.linker.command(args)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.Stdin, l.Stdout, l.Stderr
	l.session.Watch()
	return l.finish(cmd, nil)
}

// runLinker runs the linker and waits for it, while what it writes passes through.
func (l *link) runLinker(ready *prepared) (process.Status, error) {
	words, err := l.arguments(ready.words, "arguments")
	if err != nil {
		return process.Status{}, err
	}
	cmd := l.linker.command(words)
	cmd.Stdin = l.Stdin
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
		p, err := newPipe(ready.names.Writer(out.to))
		if err != nil {
			return process.Status{}, err
		}
		pipes = append(pipes, p)
		*out.file = p.w
	}
	return l.finish(cmd, pipes)
}

// finish runs a command that writes to pipes.
func (l *link) finish(cmd *exec.Cmd, pipes []*pipe) (process.Status, error) {
	if err := l.session.Start(cmd); err != nil {
		return process.Status{}, err
	}
	for _, p := range pipes {
		p.w.Close()
		p.begin()
	}
	err := cmd.Wait()
	l.session.Ended()
	for _, p := range pipes {
		p.finish()
	}
	if cmd.ProcessState == nil {
		return process.Status{}, err
	}
	return process.StatusOf(cmd.ProcessState), nil
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
