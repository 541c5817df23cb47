package ld

import (
	"os"

	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
)

// session is what a signal has to end or to remove: the linker that runs, and files that are not complete.
type session struct {
	process.ChildRunner
	files       *replace.Writer // of files that are converted in place
	temporaries []string        // files to remove; the lock is of it
}

func newSession(p *process.Process) *session {
	s := &session{files: &replace.Writer{}}
	s.files.BeforeFirstFile = s.Watch
	s.Process, s.Clean = p, func() {
		s.files.Abandon()
		s.removeFiles()
	}
	return s
}

// removeFiles is removeTemporaries with the lock held.
func (s *session) removeFiles() {
	for _, file := range s.temporaries {
		os.Remove(file)
	}
	s.temporaries = nil
}

// writeTemporary writes a file that is removed when the link ends.
func (s *session) writeTemporary(data []byte) (path string, err error) {
	s.Watch()
	s.Lock()
	defer s.Unlock()
	f, err := os.CreateTemp(s.Process.TempDir(), "sdtconvert-*.o")
	if err != nil {
		return "", err
	}
	s.temporaries = append(s.temporaries, f.Name())
	_, err = f.Write(data)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return f.Name(), err
}

// removeTemporaries removes the files of writeTemporary.
func (s *session) removeTemporaries() {
	s.Lock()
	defer s.Unlock()
	s.removeFiles()
}
