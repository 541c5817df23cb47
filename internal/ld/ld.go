// Package ld is a linker that runs the real one, and gives it converted bytes of each file
// that holds probes.
//
// The linker gets its command line, its streams and its environment as they are. A look at the
// files that the line names (hints.go, examine.go) tells whether the link has to do with probes: if
// not, the process becomes the linker. Otherwise the files with probes are converted, in memory
// (inputs.go), and the linker runs under supervision (supervise.go): where it opens such a file, it
// gets the converted bytes. A file that only the linker finds is converted when it is opened. What
// a link lacks is one more input, the last (needs.go), whose path is the program's own.
//
// lld generates the code of link-time optimisation within itself, where no file shows it. It runs
// once before, for that code alone (generate.go). --in-place converts the files themselves, without
// supervision (inplace.go).
package ld

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/convert"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/probedefs"
	"sdtconvert/internal/process"
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

// exitFailed is the exit status where an input cannot be converted.
const exitFailed = 1

// errReported stands for errors that have been printed.
var errReported = errors.New("already reported")

// Run runs the real linker for a program that was called by a name, and by arguments,
// of one. It returns how the linker has ended, or status 1 where an input could not be
// converted, which it has told; and does not return where the process has become the
// linker.
func Run(p *process.Process, o Options, name string, args []string) (process.Status, error) {
	real, err := findReal(p, o.Linker, name)
	if err != nil {
		return process.Status{}, err
	}
	l := &link{Options: o, Process: p, session: newSession(p), linker: real, args: args}
	status, err := l.run()
	if errors.Is(err, errReported) {
		return process.Status{Code: exitFailed}, nil
	}
	return status, err
}

// link is what is known from the beginning. The look before the link settles what it is made for.
type link struct {
	Options
	*process.Process
	session *session
	linker  linker
	args    []string // as they came
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
	ln := line.Parse(args, l.linker.hasName("gold"))
	if !ln.HasInputs() && len(ln.Scripts) == 0 || ln.Unfinished {
		return l.execLinker(nil)
	}
	lld := l.linker.hasName("lld")
	plugin := hasFlag(ln, "plugin") && !lld // which ignores it
	k := &examiner{
		options: l.Convert.Patch, stubTexts: l.Convert.Patch.Names.StubTexts(), probeTexts: probeTexts(l.Convert.Patch),
		relocatable: ln.Relocatable, lld: lld, mold: l.linker.hasName("mold"),
		fatLTO: map[lto.Compiler]bool{lto.GCC: plugin, lto.LLVM: plugin || hasFlag(ln, "fat-lto-objects")},
	}
	found := l.lookAt(ln, k)
	if err := checkPipes(ln); err != nil {
		return process.Status{}, err
	}
	l.warnOfKernelTracepoints(found.inputs)
	target := patch.Target(0)
	for _, in := range found.inputs {
		if in != nil {
			target = max(target, in.target)
		}
	}
	if target == patch.LinuxKernel && isProgram(ln) {
		target = patch.LinuxProgram
	}
	l.Convert.Patch = l.Convert.Patch.For(target)
	k.options = l.Convert.Patch
	if err := l.checkDroppedCode(ln, found.inputs); err != nil {
		return process.Status{}, err
	}
	if l.InPlace {
		return l.linkInPlace(ln, found)
	}
	return l.supervise(ln, k, found)
}

func hasFlag(ln *line.Line, name string) bool {
	return slices.ContainsFunc(ln.Args, func(a line.Arg) bool { return a.Name == name })
}

// checkDroppedCode refuses what makes a linker drop records of code that it keeps, or fold functions
// that differ only in their probes: with --drop-relocations nothing keeps records together with
// their code.
func (l *link) checkDroppedCode(ln *line.Line, inputs []*linkInput) error {
	if !l.Convert.Patch.DropRelocations || ln.Relocatable || !slices.ContainsFunc(inputs, func(in *linkInput) bool { return in != nil && in.probes }) {
		return nil
	}
	collects, folds := false, false
	for _, a := range ln.Args {
		switch a.Name {
		case "gc-sections", "no-gc-sections":
			collects = a.Name == "gc-sections"
		case "icf", "no-icf":
			folds = a.Name == "icf" && a.Value != "none"
		}
	}
	const refused = "--drop-relocations: --%s would lose sites, as nothing keeps them together with their code; leave out one of the two"
	var errs []error
	if collects {
		errs = append(errs, fmt.Errorf(refused, "gc-sections"))
	}
	if folds {
		errs = append(errs, fmt.Errorf(refused, "icf"))
	}
	return errors.Join(errs...)
}

// conversion returns the options for so many files.
func (l *link) conversion(files int, source patch.ProbeSource) convert.Options {
	o := l.Convert
	o.Files, o.Patch.LinkConverts = max(files, 1), true
	o.Patch.ProbeSource = source
	return o
}

// probeSource returns what the inputs of a link say about probes, for notes: nil
// otherwise.
func (l *link) probeSource(inputs []*linkInput) patch.ProbeSource {
	if !l.Convert.Patch.MayHaveNotes() {
		return nil
	}
	var files []string
	for _, in := range inputs {
		if in != nil && (in.isShared() || in.names && in.lto.Compiler == "" && (in.isObject() || in.isArchive())) {
			files = append(files, in.path)
		}
	}
	return probedefs.New(files, probedefs.Options{ProbePrefix: l.Convert.Patch.ProbePrefix, Jobs: l.Convert.Jobs, FollowThin: true})
}

// execLinker execs the linker, as it was called but for more words before the others, or runs that
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
	return l.finish(cmd, l.session.Start(cmd))
}

// command returns a run of the linker with the streams of the process.
func (l *link) command(words []string) *exec.Cmd {
	cmd := l.linker.command(words)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.Stdin, l.Stdout, l.Stderr
	return cmd
}

// finish waits for a run that was started, unless that has failed.
func (l *link) finish(cmd *exec.Cmd, err error) (process.Status, error) {
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

// output returns what a link writes.
func output(ln *line.Line) string {
	if ln.Output == "" {
		return ln.InDirectory("a.out")
	}
	return ln.InDirectory(ln.Output)
}

// kinds returns the kinds of sites that a link has records of.
func kinds(needs []*probeNeeds) (recorded []arch.Kind) {
	for kind := range arch.Kinds {
		if slices.ContainsFunc(needs, func(p *probeNeeds) bool { return p.records[kind] }) {
			recorded = append(recorded, kind)
		}
	}
	return recorded
}

// bounds returns the flags that make the linker define the bounds of the sections of
// records of some kinds. Linkers define __start_<section> and __stop_<section> only if something
// refers to them. Nothing in a FreeBSD kernel does: its linker_file_lookup_set asks for
// the symbols by name, and says ENOENT if they are missing.
func bounds(layout linkerset.Layout, kinds []arch.Kind) []string {
	if layout.Format != linkerset.FreeBSD {
		return nil
	}
	var words []string
	for _, kind := range kinds {
		section := layout.Section(kind)
		words = append(words, "-u", "__start_"+section, "-u", "__stop_"+section)
	}
	return words
}
