// Package cc runs a compiler, and converts the objects that it writes.
//
// The compiler gets the arguments, streams and environment of the run. Its command line
// says which objects it is to write (words.go); those that it has written (object.go) are
// converted in place. So whatever keeps or moves objects, as ccache and distcc do, has them
// converted. An object that cannot be converted is removed: make would take it for done.
//
// If the command line names no object, the process becomes the compiler instead.
package cc

import (
	"errors"
	"fmt"
	"os/exec"

	"sdtconvert/internal/check"
	"sdtconvert/internal/convert"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/probedefs"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
	"sdtconvert/patch"
)

// Options say how objects are converted.
type Options struct {
	Convert convert.Options
	Off     bool // only run the compiler
}

// Run runs a compiler: its name and arguments, perhaps behind programs that run it. It
// returns how the compiler has ended, or status 1 if that was successful and an object
// cannot be converted, which Run has reported. It does not return if the process has become
// the compiler. It fails if there is no compiler of that name.
func Run(p *process.Process, o Options, words []string) (process.Status, error) {
	cmd, err := command(p, words)
	if err != nil {
		return process.Status{}, err
	}
	s := newSession(p)
	var objects []*object
	if !o.Off {
		objects = newObjects(outputs(words))
	}
	if len(objects) == 0 && o.Convert.Verbose {
		why := "the command line names no object"
		if o.Off {
			why = "SDTCONVERT is off"
		}
		message.Line(p.Stderr, "sdtconvert: converts nothing: %s", why)
	}
	var programs []*object
	if !o.Off && len(objects) == 0 {
		programs = newObjects(programsOf(words))
	}
	if len(objects)+len(programs) == 0 && p.Exec != nil {
		return process.Status{}, p.Exec(cmd.Path, words, p.Environ)
	}
	status, err := s.compile(cmd, objects)
	if err != nil {
		return status, err
	}
	for _, program := range programs {
		if status == (process.Status{}) {
			return status, program.checkConverted(o.Convert.Patch.Names, words)
		}
	}
	o.Convert.Patch.LinkConverts = linksThroughWrapper(words)
	if failed := s.convert(o.Convert, objects); failed && status == (process.Status{}) {
		status.Code = process.ExitFailed
	}
	return status, nil
}

// checkConverted fails if a program that the compiler has linked holds a tracepoint, or does not show whether it does. It removes
// the program. words are the compiler's.
func (o *object) checkConverted(names patch.Names, words []string) error {
	if !o.isWritten() {
		return nil
	}
	cure := "link with " + message.LinkersFlag() + ", or compile with -c first. The program is removed"
	findings, err := check.UnconvertedFile(o.path, names)
	switch {
	case errors.Is(err, check.ErrNotELF) && !changesFormat(words): // a precompiled header, or a program of another system
		return nil
	case errors.Is(err, check.ErrNotELF):
		err = fmt.Errorf("%s: cannot look for unconverted tracepoints in the program: %w; %s", o.path, err, cure)
	case err != nil:
		err = fmt.Errorf("cannot look for unconverted tracepoints in the program: %w", err)
	case len(findings) > 0:
		err = fmt.Errorf("%s: holds tracepoints that were not converted, of sources that were compiled and linked at once or of objects that did not pass through sdtconvert; %s", o.path, cure)
	default:
		return nil
	}
	return errors.Join(err, o.remove())
}

// command returns a run of the compiler with the streams of the process.
func command(p *process.Process, words []string) (*exec.Cmd, error) {
	path, err := exec.LookPath(words[0])
	if err != nil && path == "" { // else it is in the current directory, which PATH names
		return nil, fmt.Errorf("the compiler: %w", err)
	}
	cmd := &exec.Cmd{Path: path, Args: words, Env: p.Environ, Stdout: p.Stdout, Stderr: p.Stderr}
	if p.Stdin != nil {
		cmd.Stdin = p.Stdin
	}
	return cmd, nil
}

// compile runs the compiler, which is to write objects, and waits for it.
func (s *session) compile(cmd *exec.Cmd, objects []*object) (process.Status, error) {
	s.setPending(objects)
	s.Watch()
	if err := s.Start(cmd); err != nil {
		return process.Status{}, err
	}
	err := cmd.Wait()
	s.Ended()
	if cmd.ProcessState == nil {
		return process.Status{}, err
	}
	return process.StatusOf(cmd.ProcessState), nil
}

// convert converts the objects that were written, and removes those that cannot be
// converted. It reports whether there was one.
func (s *session) convert(o convert.Options, objects []*object) (failed bool) {
	objects = s.written(objects, o.Patch.StubTexts(), func(left *object, reason error) {
		late := (*lto.Error)(nil)
		switch {
		case errors.As(reason, &late) && !o.Patch.LinkConverts:
			message.Warning(s.Process.Stderr, fmt.Errorf("%s: %s, and left as it is; link it through sdtconvert ld (-B)", left.path, late.What))
		case o.Verbose:
			message.Line(s.Process.Stderr, "sdtconvert: %s: %v", left.path, reason)
		}
	})
	if len(objects) == 0 {
		return false
	}
	o.Files = len(objects)
	o.Patch.ProbeSource = readKnown(o, objects)
	c := convert.New(o, s.files)
	var warnings message.Tally
	parallel.InOrder(len(objects), o.Jobs, func(i int) *convert.Result {
		r := c.File(objects[i].path, objects[i].path)
		if o.Verbose && !r.Failed && r.Lines.Len() == 0 {
			message.Line(&r.Lines, "sdtconvert: %s: has nothing to convert", objects[i].path)
		}
		s.finish(objects[i], r)
		return r
	}, func(_ int, r *convert.Result) {
		r.Print(s.Process.Stderr, &warnings) // standard output is the compiler's
		failed = failed || r.Failed
	})
	warnings.Print(s.Process.Stderr)
	return failed
}

// session is what there is of a run that a signal ends: the compiler, files that are not
// complete, and objects that are not converted yet.
type session struct {
	process.ChildRunner
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

// readKnown returns what the objects say about probes.
func readKnown(o convert.Options, objects []*object) patch.ProbeSource {
	var files []string
	for _, o := range objects {
		files = append(files, o.path)
	}
	return probedefs.New(files, probedefs.Options{ProbePrefix: o.Patch.ProbePrefix, Jobs: o.Jobs})
}
