package ld

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"sdtconvert/internal/paths"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
)

// session is what there is of a link that a signal ends: the linker that runs, the
// directory of temporary files, and files that are not complete. It is all that changes
// while a link goes on.
type session struct {
	process *process.Process
	files   *replace.Writer // of all files that are written
	watched sync.Once

	// mu guards the rest. A signal that ends the process keeps it, so that making another
	// file, or running the linker, waits for the end.
	mu      sync.Mutex
	temp    *tempDirectory // nil for none
	running *os.Process    // the linker, while it runs
	passed  os.Signal      // on to it, the last
}

func newSession(p *process.Process) *session {
	s := &session{process: p, files: &replace.Writer{}}
	s.files.Begin = s.watch
	return s
}

// watch passes signals on to the linker while it runs. Before and after, they end
// this process, without a trace of what it has made.
func (s *session) watch() {
	s.watched.Do(func() { s.process.Watch(s.signalled, passedOn...) })
}

func (s *session) signalled(sig os.Signal) {
	s.mu.Lock()
	switch {
	case s.running != nil:
		s.passed = sig
		forward(s.running, sig)
	case ends(sig):
		s.files.Abandon()
		s.temp.remove()
		s.process.Exit(s.process.End(process.Status{Signal: sig})) // and never unlock
	}
	s.mu.Unlock()
}

// diedOf says that a signal which was passed on has ended the linker.
func diedOf(sig os.Signal) error { return &diedError{process.Status{Signal: sig}} }

// start starts the linker, unless a signal has come first.
func (s *session) start(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.running = cmd.Process
	return nil
}

// ended says that the linker runs no more, and returns the last signal that it was
// passed, or nil.
func (s *session) ended() os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	return s.passed
}

// needTemp makes the temporary directory unless it is there, and keeps it for f.
func (s *session) needTemp(f func(t *tempDirectory) error) error {
	s.watch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.temp == nil {
		var err error
		if s.temp, err = newTempDirectory(s.process.TempDir()); err != nil {
			return err
		}
	}
	return f(s.temp)
}

// makePlaces decides where in the temporary directory the copies of files are that the
// linker is told of by paths, and makes the directories that these are to be in.
func (s *session) makePlaces(told []string) (places map[string]string, err error) {
	places = map[string]string{}
	err = s.needTemp(func(t *tempDirectory) error {
		for _, path := range told {
			if places[path] != "" {
				continue
			}
			if places[path], err = t.place(path); err != nil {
				return err
			}
		}
		return nil
	})
	return places, err
}

// linkTo makes a symbolic link to a file, in the place that a copy would have of what the
// linker is told of as path.
func (s *session) linkTo(path, file string) (place string, err error) {
	places, err := s.makePlaces([]string{path})
	if err != nil {
		return "", err
	}
	target, err := paths.Absolute(file)
	if err != nil {
		return "", err
	}
	return places[path], s.needTemp(func(*tempDirectory) error { return os.Symlink(target, places[path]) })
}

// mkdir makes a directory in the temporary one.
func (s *session) mkdir(name string) (directory string, err error) {
	err = s.needTemp(func(t *tempDirectory) error {
		directory = paths.Join(t.path, name)
		return os.Mkdir(directory, 0o700)
	})
	return directory, err
}

// write writes a file into the temporary directory.
func (s *session) write(name string, data []byte) (file string, err error) {
	err = s.needTemp(func(t *tempDirectory) error {
		file = paths.Join(t.path, name)
		return os.WriteFile(file, data, 0o600)
	})
	return file, err
}

// writeAt writes a file to a path within the temporary directory, and makes the directories on
// the way.
func (s *session) writeAt(path string, data []byte) error {
	return s.needTemp(func(t *tempDirectory) error {
		if err := t.makeDirectory(paths.Directory(path)); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o600)
	})
}

// inTemp returns the path of a name in the temporary directory, which has to be there: ""
// is what all of them begin with.
func (s *session) inTemp(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return paths.Join(s.temp.path+string(filepath.Separator), name)
}

// remove removes the temporary directory, if there is one.
func (s *session) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.temp.remove()
}
