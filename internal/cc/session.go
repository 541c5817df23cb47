package cc

import (
	"sdtconvert/internal/convert"
	"sdtconvert/internal/probedefs"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
	"sdtconvert/patch"
)

// session is what there is of a run that a signal ends: the compiler, files that are not
// complete, and objects that are not converted yet.
type session struct {
	process.Supervisor
	files   *replace.Writer
	pending []*object // that the compiler may have written; the lock is of it
}

func newSession(p *process.Process) *session {
	s := &session{files: &replace.Writer{}}
	s.Process, s.Clean = p, s.clean
	return s
}

// clean removes what is unfinished. An object that is not converted is: make would take it
// for done.
func (s *session) clean() {
	s.files.Abandon()
	for _, o := range s.pending {
		if !o.done && o.isWritten() {
			o.remove()
		}
	}
}

// setPending notes the objects that the compiler may write from now on.
func (s *session) setPending(objects []*object) {
	s.Lock()
	defer s.Unlock()
	s.pending = objects
}

// readKnown returns what the objects say about probes, if there are to be notes.
func readKnown(o convert.Options, objects []*object) patch.ProbeSource {
	if !o.Patch.MayHaveNotes() {
		return nil
	}
	var files []string
	for _, o := range objects {
		files = append(files, o.path)
	}
	return probedefs.New(files, probedefs.Options{ProbePrefix: o.Patch.ProbePrefix, Jobs: o.Jobs})
}
