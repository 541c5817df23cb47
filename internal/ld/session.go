package ld

import (
	"os"

	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
)

// session is what there is of a link that a signal ends: the linker that runs, and files that are
// not complete. It is all that changes while a link goes on.
type session struct {
	process.Supervisor
	files   *replace.Writer // of files that are converted in place
	removed []string        // files to remove; the lock is of it
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

func (s *session) removeFiles() {
	for _, file := range s.removed {
		os.Remove(file)
	}
	s.removed = nil
}

// temporary writes a file that is removed when the link ends.
func (s *session) temporary(data []byte) (path string, err error) {
	s.Watch()
	s.Lock()
	defer s.Unlock()
	f, err := os.CreateTemp(s.Process.TempDir(), "sdtconvert-*.o")
	if err != nil {
		return "", err
	}
	s.removed = append(s.removed, f.Name())
	_, err = f.Write(data)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return f.Name(), err
}

// end removes what is to be removed.
func (s *session) end() {
	s.Lock()
	defer s.Unlock()
	s.removeFiles()
}
