// Package process is what a run of the program has of the process that it is in:
// standard streams, environment, signals, and the end. Nothing else asks package os for
// them, so that several runs can be in one process at once.
package process

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Process is what a run is given. Only the streams have to be there.
type Process struct {
	Stdin          io.Reader // nil for one that is empty
	Stdout, Stderr io.Writer
	Environ        []string // "NAME=value", as os.Environ has them

	// Notify sends signals to a channel, as signal.Notify does; nil where none come, and
	// Exit is not needed.
	Notify func(c chan<- os.Signal, signals ...os.Signal)
	// Ignored reports whether a signal is ignored; nil where none is.
	Ignored func(sig os.Signal) bool
	// Exit ends the process at once. It is called only after a signal.
	Exit func(status int)
	// Kill ends the process by a signal, and returns only where it cannot; nil where the
	// process is not the run's to end.
	Kill func(sig os.Signal)
	// Exec makes another program of the process, and returns only an error; nil where
	// that cannot be, and the program is to be a child.
	Exec func(path string, args, environ []string) error
}

// Current returns the process itself.
func Current() *Process {
	return &Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Notify: signal.Notify, Ignored: signal.Ignored, Exit: os.Exit, Kill: kill, Exec: execProgram,
	}
}

// Getenv returns a variable of the environment, "" for one that is not there.
func (p *Process) Getenv(name string) string {
	for _, variable := range p.Environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// EnvironWith returns the environment with a variable changed, for what the run starts.
func (p *Process) EnvironWith(name, value string) []string {
	environ := slices.DeleteFunc(slices.Clone(p.Environ), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	return append(environ, name+"="+value)
}

// TempDir returns the directory for temporary files.
func (p *Process) TempDir() string {
	if directory := p.Getenv("TMPDIR"); directory != "" {
		return directory
	}
	return os.TempDir()
}

// Watch calls f with each of the signals that comes, one after the other. Those that
// are ignored, as nohup(1) has it of SIGHUP, stay so. It returns
// the others.
func (p *Process) Watch(f func(os.Signal), signals ...os.Signal) []os.Signal {
	if p.Ignored != nil {
		signals = slices.DeleteFunc(slices.Clone(signals), p.Ignored)
	}
	if p.Notify == nil || len(signals) == 0 {
		return nil
	}
	c := make(chan os.Signal, 16)
	p.Notify(c, signals...)
	go func() {
		for sig := range c {
			f(sig)
		}
	}()
	return signals
}

// ExitFailed is the exit status of a run that found something wrong with a file.
const ExitFailed = 1

// Status is how a program has ended.
type Status struct {
	Code   int       // its exit status
	Signal os.Signal // that ended it instead, or nil
}

// ExitStatus returns the exit status, or what shells report of a death by a signal.
func (s Status) ExitStatus() int {
	if s.Signal == nil {
		return s.Code
	}
	if n, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// End ends the process by the signal that a program has died by, if any. It returns the
// exit status where it does not.
func (p *Process) End(s Status) int {
	if s.Signal != nil && p.Kill != nil {
		p.Kill(s.Signal)
	}
	return s.ExitStatus()
}

// ChildRunner starts the programs that a run wraps, one at a time, and handles signals.
// While a program runs, it gets them. Before and after, they end this process, once Clean
// has removed what is unfinished.
type ChildRunner struct {
	Process *Process
	// Clean removes what is unfinished. It is called before a signal ends the process, with
	// the lock held.
	Clean func()

	// Mutex guards what Clean removes. A signal that ends the process keeps it locked: a
	// goroutine that is about to make another file, or to start a program, waits for the end.
	sync.Mutex
	watched sync.Once
	running *os.Process // the program, while it runs
	passed  os.Signal   // on to it, the last
}

// Watch begins to handle signals, if it has not begun.
func (s *ChildRunner) Watch() {
	s.watched.Do(func() { s.Process.Watch(s.signalled, passedOn...) })
}

func (s *ChildRunner) signalled(sig os.Signal) {
	s.Lock()
	switch {
	case s.running != nil && forward(s.running, sig):
		s.passed = sig
	case ends(sig):
		s.Clean()
		s.Process.Exit(s.Process.End(Status{Signal: sig})) // and never unlock
	}
	s.Unlock()
}

// Start starts a program, unless a signal has come first.
func (s *ChildRunner) Start(cmd *exec.Cmd) error {
	s.Lock()
	defer s.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.running = cmd.Process
	return nil
}

// Ended says that the program runs no more. It returns the last signal that the program
// was sent, or nil.
func (s *ChildRunner) Ended() os.Signal {
	s.Lock()
	defer s.Unlock()
	s.running = nil
	return s.passed
}
