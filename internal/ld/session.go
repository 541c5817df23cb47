package ld

import (
	"os"
	"path/filepath"

	"sdtconvert/internal/paths"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
)

// session is what there is of a link that a signal ends: the linker that runs, the
// directory of temporary files, and files that are not complete. It is all that changes
// while a link goes on.
type session struct {
	process.Supervisor
	files *replace.Writer // of all files that are written

	temp *tempDirectory // nil for none; the lock is of it
}

func newSession(p *process.Process) *session {
	s := &session{files: &replace.Writer{}}
	s.files.Begin = s.Watch
	s.Process, s.Clean = p, func() {
		s.files.Abandon()
		s.temp.remove()
	}
	return s
}

// diedOf says that a signal which was passed on has ended the linker.
func diedOf(sig os.Signal) error { return &diedError{process.Status{Signal: sig}} }

// needTemp makes the temporary directory unless it is there, and keeps it for f.
func (s *session) needTemp(f func(t *tempDirectory) error) error {
	s.Watch()
	s.Lock()
	defer s.Unlock()
	if s.temp == nil {
		var err error
		if s.temp, err = newTempDirectory(s.Process.TempDir()); err != nil {
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
	s.Lock()
	defer s.Unlock()
	return paths.Join(s.temp.path+string(filepath.Separator), name)
}

// remove removes the temporary directory, if there is one.
func (s *session) remove() error {
	s.Lock()
	defer s.Unlock()
	return s.temp.remove()
}
