package process

import (
	"os"
	"os/exec"
	"sync"
)

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
	case Ends(sig):
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
