// Package ld is a linker that hands everything to the real one, with a converted copy
// in the place of each input that holds probes.
//
// A link goes through phases. Each takes the values of earlier ones, does not change them,
// and returns values of its own:
//
//	linker.go      finds the real linker
//	line           parses its command line                          line.Line
//	script.go      reads the scripts that flags name                []*script
//	found.go       finds the file of each input and library         found
//	scan.go        scans these, and those that scripts name,
//	               for names of probes                              scanned
//	kernel.go      warns of objects of FreeBSD's kernel that were
//	               compiled with the kernel's header
//	choose.go      decides which are converted, and which contain
//	               code for link-time optimisation ("late"), or
//	               refuses the link                                 choice
//	copies.go      reads what all inputs say of probes, for notes
//	               (a "part" each), and converts inputs to copies,
//	               each at its "place", or in place                 converted
//	unread.go      refuses flags by which copies are not read
//	scriptcopy.go  copies scripts, with the names of the copies
//	generate.go    has the linker generate late code, and converts
//	               that                                             generated
//	complete.go    makes an object of definitions that are missing  addition
//	words.go       makes the words of the linker's command line     substitutions
//	run.go         runs the linker
//	lost.go        warns of records that it has put elsewhere
//	reports.go     puts the names of inputs into what it has written
//
// If no input was replaced and none added, the process execs the real linker. What changes
// during a link is its session: the directory of temporary files and the linker that runs,
// both of which a signal ends.
package ld

import (
	"errors"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/convert"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/ld/rename"
	"sdtconvert/internal/process"
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

// exitFailed is the exit status where an input cannot be converted.
const exitFailed = 1

// errReported stands for errors that have been printed.
var errReported = errors.New("already reported")

// diedError says that a signal has ended the linker before it was run for the user.
type diedError struct{ status process.Status }

func (e *diedError) Error() string { return "was ended by a signal" }

// Run runs the real linker for a program that was called by a name, and by arguments,
// of one. It returns how the linker has ended, or status 1 where an input could not be
// converted, which it has told; and does not return where the process has become the
// linker. Before it does either, all temporary files are removed.
func Run(p *process.Process, o Options, name string, args []string) (process.Status, error) {
	real, err := findReal(p, o.Linker, name)
	if err != nil {
		return process.Status{}, err
	}
	s := newSession(p)
	l := &link{Options: o, Process: p, session: s, linker: real, args: args}
	status, err := l.run()
	if removal := s.remove(); err == nil {
		err = removal
	}
	if died := (*diedError)(nil); errors.As(err, &died) {
		return died.status, nil
	}
	if errors.Is(err, errReported) {
		return process.Status{Code: exitFailed}, nil
	}
	return status, err
}

// link is what all phases know. None changes it but for the session, and the scan, which settles
// what the link is made for.
type link struct {
	Options
	*process.Process
	session *session
	linker  linker
	args    []string // as they came
}

// prepared is a link that is ready for the linker.
type prepared struct {
	*line.Line
	words    []string
	names    *rename.Names // of temporary files
	addition *addition
	copies   map[string]bool // of the inputs that the linker takes whole
	flags    []string        // if all else is missing: the linker runs as it was called, and with these
}

func (l *link) run() (process.Status, error) {
	var ready *prepared
	if !l.Off {
		var err error
		if ready, err = l.prepare(); err != nil {
			return process.Status{}, err
		}
	}
	if ready == nil || ready.Line == nil {
		if err := l.session.remove(); err != nil {
			return process.Status{}, err
		}
		return l.stepAside(ready)
	}
	status, err := l.runLinker(ready)
	if err != nil {
		return status, err
	}
	if status == (process.Status{}) {
		l.warnOfLostRecords(ready)
	}
	return status, rewriteReports(l.session.files, ready)
}

// prepare goes through all phases before the linker runs. It is nil, or without a Line,
// where the linker is to be run as it was called.
func (l *link) prepare() (*prepared, error) {
	args, err := line.Expand(l.args)
	if err != nil {
		return nil, err
	}
	ln := line.Parse(args, l.linker.rules())
	if !ln.HasInputs() {
		return nil, nil
	}
	reader := scriptReader{ln, ln.Rules.Dialect, l.InPlace}
	scripts, err := reader.flags()
	if err != nil {
		return nil, err
	}
	scan := newScanner(l.linker, reader, l.Convert.Patch, l.Convert.Jobs)
	inputs := scan.whole(scripts)
	l.warnOfKernelTracepoints(inputs.inputs)
	l.Convert.Patch = l.Convert.Patch.For(inputs.target())
	chosen, errs := choose(chooser{Line: ln, inPlace: l.InPlace, linker: l.linker, gcc: l.Getenv(envGCC) != "", unanchored: l.Convert.Patch.DropRelocations}, inputs)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	done, err := l.convertInputs(ln, chosen.convert, inputs.inputs)
	if err != nil {
		return nil, err
	}
	if err := scan.checkJustSymbols(); err != nil {
		return nil, err
	}
	if err := scan.checkRepeated(inputs.byArg, done.copies); err != nil {
		return nil, err
	}
	if err := scan.checkRemaps(len(done.copies)+len(chosen.late) > 0); err != nil {
		return nil, err
	}
	if err := l.copyScripts(scan, scripts, inputs, chosen.late, &done); err != nil {
		return nil, err
	}
	code, err := l.generate(scan, inputs, chosen, done)
	if err != nil {
		return nil, err
	}
	stand := substitutions{copies: done.copies, scripts: done.scripts, generated: code.byArg}
	names := slices.Concat(done.names, code.names)
	if !ln.Relocatable {
		var kinds []arch.Kind
		if stand.added, kinds, err = l.complete(ln, inputs, done, code); err != nil {
			return nil, err
		}
		stand.flags = bounds(l.Convert.Patch.Layout, kinds)
	}
	if stand.none() {
		return &prepared{flags: stand.flags}, nil
	}
	if stand.added != nil {
		names = append(names, renamed{stand.added.file, addedName})
	}
	return &prepared{Line: ln, words: stand.words(ln, inputs.byArg), names: l.session.renames(names), addition: stand.added, copies: linkedCopies(ln, inputs, done)}, nil
}
