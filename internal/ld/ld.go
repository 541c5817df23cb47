// Package ld is a linker that runs the real one, and gives it converted bytes of each file
// that holds probes.
//
// The linker gets its command line, its streams and its environment as they are. A link has
// phases, each of which takes values and returns a value:
//
//   - The look (look.go, examine.go, script.go) returns a survey: the files that the line leads to, and what
//     they hold. If the link has nothing to do with probes, the process becomes the linker.
//   - The conversion (convert.go) returns what becomes of each file, in memory. What these files lack is one more
//     input, behind the line (needs.go), whose path is the program's own.
//   - The generation (generate.go) runs lld for the code of link-time optimisation, which lld
//     makes within itself, where no file shows it.
//   - The run (run.go, state.go) supervises the linker: where it opens a file with probes, it gets the converted
//     bytes. A file that only the linker finds is converted when it is opened. The result says
//     what was found, and whether it lacks a definition: then the linker runs again, from the survey
//     and that result.
//   - The verification (verify.go) looks for tracepoints that the output holds unconverted.
//
// --in-place converts the files of the survey themselves, without supervision (inplace.go).
//
// An inputFile is a path that the line leads to, and what the look has found there. A servedFile is an inputFile, once
// for all paths that lead to it, and what the linker gets for it. A foundFile becomes a servedFile while the linker waits:
// the look has missed it, and the linker opens it.
package ld

import (
	"errors"
	"os"
	"os/exec"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/convert"
	"sdtconvert/internal/probedefs"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/responsefile"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// Options say how a link is made.
type Options struct {
	// Convert says how inputs are converted: what, and to what, by how many threads, and
	// what is told of it.
	Convert convert.Options

	Linker  string // a path, or a name along PATH; "" for what the environment says
	Off     bool   // only run the linker
	InPlace bool   // convert the inputs themselves
	NoStubs bool   // add no object to the link

	// NoUndefinedProbes refuses a link with a probe that nothing defines, though a source
	// defines others of its provider. Without it that is a warning.
	NoUndefinedProbes bool
}

// errReported stands for errors that have been printed.
var errReported = errors.New("already reported")

// Run runs the real linker of a name with some arguments. It returns the linker's status, or status 1 after
// printing why an input cannot be converted. If there is nothing to convert, it execs the linker, and does not
// return.
func Run(p *process.Process, o Options, name string, args []string) (process.Status, error) {
	real, err := findReal(p, o.Linker, name)
	if err != nil {
		return process.Status{}, err
	}
	l := &link{Options: o, Process: p, session: newSession(p), linker: real, args: args}
	status, err := l.run()
	if errors.Is(err, errReported) {
		return process.Status{Code: process.ExitFailed}, nil
	}
	return status, err
}

// link is what a link is made with. The look adds what the files are made for; after that only the session changes.
type link struct {
	Options
	*process.Process
	session *session
	linker  linker
	args    []string // as they came, or with a response file that can be read once in its place
}

func (l *link) run() (process.Status, error) {
	if l.Off {
		return l.execLinker(nil)
	}
	args, isRead, err := responsefile.ExpandOnce(l.args)
	if err != nil {
		return process.Status{}, err
	}
	if isRead {
		l.args = args
	}
	ln := parseLine(args, l.linker.family == gold)
	if !ln.hasInputs() && len(ln.scripts) == 0 || ln.unfinished || l.linker.family == lld && ln.generatesInputs() {
		return l.execLinker(nil)
	}
	if err := checkPipes(ln); err != nil {
		return process.Status{}, err
	}
	s := look(ln, newExaminer(l, ln), l.Convert.Jobs)
	s.missesFiles = s.missesFiles || l.linker.mayAddInputs()
	l.warnOfKernelTracepoints(s.inputs())
	l.Convert.Patch.Target = s.target()
	l.Convert.Patch.GroupedNotes = l.linker.family == gnu && s.contains(func(in *inputFile) bool { return in.hasUnlinkedNotes })
	if err := s.checkRecordsTogether(l.layout()); err != nil {
		return process.Status{}, err
	}
	if err := l.checkDroppedCode(s); err != nil {
		return process.Status{}, err
	}
	if l.InPlace {
		return l.linkInPlace(s)
	}
	return l.linkSupervised(s)
}

// layout returns the layout of the records of the link, whose target is known.
func (l *link) layout() linkerset.Layout { return l.Convert.Patch.Decide(nil).Layout }

// conversionOptions returns the options for a number of files.
func (l *link) conversionOptions(files int, source patch.ProbeSource) convert.Options {
	o := l.Convert
	o.Files, o.Patch.LinkConverts = max(files, 1), true
	o.Patch.ProbeSource = source
	return o
}

// probeSource returns the descriptions of probes in the files of a link.
func (l *link) probeSource(inputs []*inputFile) patch.ProbeSource {
	var files []string
	for _, in := range inputs {
		if in.isShared() || in.namesProbes && in.lto.Compiler == "" && (in.isObject() || in.isArchive()) {
			files = append(files, in.path)
		}
	}
	return probedefs.New(files, probedefs.Options{ProbePrefix: l.Convert.Patch.ProbePrefix, Jobs: l.Convert.Jobs, FollowThin: true})
}

// execLinker execs the linker, as it was called but for more words before the others, or runs it
// where nothing can be execed.
func (l *link) execLinker(first []string) (process.Status, error) {
	args := slices.Concat(first, l.args)
	if l.Exec != nil {
		return process.Status{}, l.Exec(l.linker.path, append([]string{l.linker.path}, args...), l.linker.environ)
	}
	return l.runLinker(args)
}

// runLinker runs the linker, and waits for its end.
func (l *link) runLinker(args []string) (process.Status, error) {
	cmd := l.command(args)
	l.session.Watch()
	return l.wait(cmd, l.session.Start(cmd))
}

// command returns a run of the linker with the streams of the process.
func (l *link) command(args []string) *exec.Cmd {
	cmd := l.linker.command(args)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.Stdin, l.Stdout, l.Stderr
	return cmd
}

// wait waits for a run that was started, unless that has failed.
func (l *link) wait(cmd *exec.Cmd, err error) (process.Status, error) {
	if err != nil {
		return process.Status{}, err
	}
	err = cmd.Wait()
	l.session.Ended()
	if cmd.ProcessState == nil {
		return process.Status{}, err
	}
	return process.StatusOf(cmd.ProcessState), nil
}

// boundFlags returns the flags that make the linker define the bounds of the sections of
// records that a link has. Linkers define __start_<section> and __stop_<section> only if something
// refers to them. Nothing in a FreeBSD kernel does: its linker_file_lookup_set asks for
// the symbols by name, and says ENOENT if they are missing.
func boundFlags(layout linkerset.Layout, needs []*probeNeeds) (words []string) {
	if layout.Format != linkerset.FreeBSD {
		return nil
	}
	for kind := range arch.Kinds {
		if slices.ContainsFunc(needs, func(p *probeNeeds) bool { return p.kinds[kind] }) {
			section := layout.Section(kind)
			words = append(words, "-u", "__start_"+section, "-u", "__stop_"+section)
		}
	}
	return words
}

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
