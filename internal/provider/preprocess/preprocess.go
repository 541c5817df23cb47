// Package preprocess runs the preprocessor of a C compiler over provider files, as
// dtrace -C does.
//
// A preprocessor of its own would be a second dialect of C: it decides which probes exist,
// and each difference from the compiler's adds or loses some. So there is none here. A file
// that is made for another system than the compiler's goes through a compiler for that, or
// through the host's without the macros by which the host is known (foreign.go).
package preprocess

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"sdtconvert/internal/process"
)

// Options say what a command line and the environment say of preprocessing.
type Options struct {
	Process *process.Process // environment and standard error
	Program string           // the preprocessor, -x cpppath; "" for that of the environment
	Flags   []string         // -D, -U, -I and -H, in their order
	Class   string           // -m32 or -m64, "" for the class of Target, or the compiler's own
	Sysroot string           // the tree of the target's system, "" for the compiler's own
	Quiet   bool             // print no warnings
	Target  Target

	// Started is called with a function that kills the compiler when one runs, and with
	// nil when it has ended.
	Started func(kill func())

	// Timeout is how long a compiler may take, 0 for two minutes.
	Timeout time.Duration
}

const (
	// maxOutput is how many bytes a compiler may write for one file. The headers of a
	// system are some 100 KiB.
	maxOutput      = 16 << 20
	defaultTimeout = 2 * time.Minute
)

// File preprocesses a file. The text holds line markers, which name the original's lines.
// What the compiler says of the file goes to standard error.
func (o *Options) File(path string) (text string, err error) {
	c, err := o.compiler()
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	words := slices.Concat(c.words, []string{"-E", "-x", "c"})
	if o.Quiet && !c.foreign {
		words = append(words, "-w")
	}
	// Compilers define some macros that do not begin with _, and a probe may have the name.
	for _, name := range []string{"linux", "unix", "i386", "sun"} {
		words = append(words, "-U"+name)
	}
	words = slices.Concat(words, c.flags, o.Flags)
	file := path
	if strings.HasPrefix(file, "-") {
		file = "./" + file
	}
	stderr := io.Writer(passOn{o.Process.Stderr})
	warnings := &messages{}
	if c.foreign {
		stderr = warnings
	}
	out, err := o.run(append(words, file), "", stderr)
	warnings.passOn(o.Process.Stderr)
	if err != nil && c.foreign {
		err = fmt.Errorf("%w; it is not a compiler for %s and has none of its headers: name one with CC or -x cpppath", err, o.Target.name())
	}
	if err != nil {
		return "", fmt.Errorf("%s: -C: %s -E: %w", path, strings.Join(c.words, " "), err)
	}
	if c.foreign {
		if err := o.checkForeign(path, string(out), warnings.String()); err != nil {
			return "", err
		}
	}
	return string(out), nil
}

// passOn hides what a writer is: a file would be given to the compiler itself, which may be
// stopped when it writes to a terminal.
type passOn struct{ io.Writer }

var errTooMuch = fmt.Errorf("writes more than %d bytes", maxOutput)

// run runs a program and returns what it writes.
func (o *Options) run(words []string, stdin string, stderr io.Writer) ([]byte, error) {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = o.Process.EnvironWith("LC_ALL", "C") // what it says is read, so it is not translated
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), stderr
	process.Group(cmd)
	kill := func() { process.KillGroup(cmd.Process) }
	out := &bounded{full: kill}
	cmd.Stdout = out
	// A program that was killed may leave others with its pipes.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w; install it, or name another one with CC, CPP or -x cpppath", err)
	}
	if o.Started != nil {
		o.Started(kill)
		defer o.Started(nil)
	}
	timer := time.AfterFunc(timeout, kill)
	err := cmd.Wait()
	switch {
	case out.over:
		return nil, errTooMuch
	case !timer.Stop():
		return nil, fmt.Errorf("was killed, as it took more than %v", timeout)
	case errors.Is(err, exec.ErrWaitDelay):
		kill()
	}
	return out.data, err
}

// bounded takes what a program writes, up to maxOutput.
type bounded struct {
	data []byte
	over bool
	full func()
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > maxOutput {
		b.over = true
		b.full()
		return 0, errTooMuch
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
