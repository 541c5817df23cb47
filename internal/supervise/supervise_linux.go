package supervise

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Options say which opens are answered.
type Options struct {
	Writes bool // those for writing, too
}

// Supervisor answers for a program, until Close.
type Supervisor struct {
	listener *listener
	start    chan func()   // what the thread with the filter is to do
	serving  bool          // since Start
	end      chan struct{} // closed by Close
	threads  sync.WaitGroup
	close    sync.Once
}

// New returns a supervisor, whose thread waits for Start. It fails with an UnavailableError
// if the host forbids supervision.
func New(o Options) (*Supervisor, error) {
	if err := CheckProc(); err != nil {
		return nil, err
	}
	s := &Supervisor{start: make(chan func()), end: make(chan struct{})}
	installed := make(chan error)
	s.threads.Go(func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with the goroutine
		var err error
		s.listener, err = install(newFilter(o.Writes))
		installed <- err
		if err == nil {
			s.serveThread()
		}
	})
	if err := <-installed; err != nil {
		return nil, err
	}
	return s, nil
}

// serveThread runs what Start asks for. It lasts until Close: a program may be told when the
// thread that has started it ends.
func (s *Supervisor) serveThread() {
	for {
		select {
		case f := <-s.start:
			f()
		case <-s.end:
			if s.serving {
				s.wake()
			}
			return
		}
	}
}

// Start calls start, which starts a program, in the thread with the filter, and has a
// function answer the opens of the program and of all that it starts. One goroutine calls
// it, with one open after the other; the answer may come later, by another. Start is called
// once.
func (s *Supervisor) Start(start func() error, answer func(*Open)) error {
	s.serving = true
	s.threads.Go(func() { s.serve(answer) })
	started := make(chan error)
	s.start <- func() { started <- start() }
	return <-started
}

// serve answers until Close.
func (s *Supervisor) serve(answer func(*Open)) {
	for {
		n, err := s.listener.receive()
		if err != nil {
			return // no process is left
		}
		if n == nil {
			continue
		}
		o := s.listener.newOpen(n)
		switch {
		case o == nil:
			s.listener.answer(n.id, 0, unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE)
		case o.Path == wakePath && s.isEnded():
			o.Fail(unix.ENOENT)
			return
		default:
			answer(o)
		}
	}
}

// Go runs f, which answers an open later, beside the others. It is called by the function that
// Start got, and Close waits for f.
func (s *Supervisor) Go(f func()) { s.threads.Go(f) }

func (s *Supervisor) isEnded() bool {
	select {
	case <-s.end:
		return true
	default:
		return false
	}
}

// wakePath is what the thread of the supervisor opens to end it: a path that no program
// asks for.
const wakePath = "/proc/self/sdtconvert-end"

// wake makes the serving goroutine look at s.end. No signal wakes it on all kernels.
func (s *Supervisor) wake() { unix.Open(wakePath, unix.O_RDONLY|unix.O_CLOEXEC, 0) }

// Close ends the supervision, once. What the program has left running cannot open files any more.
func (s *Supervisor) Close() {
	s.close.Do(func() {
		close(s.end)
		s.threads.Wait()
		unix.Close(s.listener.fd)
	})
}
