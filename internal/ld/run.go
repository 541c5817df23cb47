package ld

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"sdtconvert/internal/input"
	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
)

// envSupervised tells a wrapper within the link that another one supervises it.
const envSupervised = "SDTCONVERT_SUPERVISED"

// cures are what to do where no linker can be supervised.
const cures = "; so link with --in-place, or compile with sdtconvert cc"

// linkSupervised converts what the look has found, and runs the linker. It supervises the linker, unless that
// reads no other bytes than it would alone.
func (l *link) linkSupervised(s survey) (process.Status, error) {
	if !s.concernsProbes() {
		return l.execLinker(nil)
	}
	supervisor, unavailable := supervise.New(supervise.Options{})
	if l.Getenv(envSupervised) != "" && errors.Is(unavailable, syscall.EBUSY) {
		return l.execLinker(nil) // the outer wrapper sees what this linker opens, too
	}
	if unavailable == nil {
		defer supervisor.Close()
	}
	files, err := s.distinctFiles()
	if err != nil {
		return process.Status{}, err
	}
	converter := newFileConverter(l, newExaminer(l, s.line), s.inputs())
	defer converter.close()
	c, err := converter.convertAll(files)
	if err != nil {
		return process.Status{}, err
	}
	// Where no linker can be supervised, what the look has missed is found in the output.
	plan, err := l.plan(s.line, c, s.missesFiles && unavailable == nil)
	switch {
	case err != nil:
		return process.Status{}, err
	case plan.isSupervised && unavailable != nil:
		return process.Status{}, fmt.Errorf("%w%s", unavailable, cures)
	case plan.isSupervised:
		return l.runUntilDefined(plan, converter, supervisor)
	case !s.missesFiles && !c.contains(func(f *servedFile) bool { return f.mayHoldProbes() }):
		return l.execLinker(plan.flags)
	}
	status, err := l.runLinker(slices.Concat(plan.flags, l.args))
	return l.finishUnseen(plan.output, status, err, s)
}

// runPlan is what a run of the linker starts from. It does not change.
type runPlan struct {
	line         *commandLine
	output       output // as it was before the first run
	conversion   conversion
	isSupervised bool
	additions
	code       generatedCode
	definesAll bool      // the definitions are of all files, and not only of those that the linker opened before them
	before     runResult // of the run before
}

// additions are what the command line of the linker gets besides its own words.
type additions struct {
	flags       []string // before them
	definitions string   // the path, after them, of the input that defines what the link lacks, or ""
	libraries   []string // that are named again after that
}

// plan returns how the linker runs. missesFiles says that it may open files that need a conversion.
func (l *link) plan(ln *commandLine, c conversion, missesFiles bool) (runPlan, error) {
	p := runPlan{line: ln, conversion: c, output: outputOf(ln)}
	converts := c.contains(func(f *servedFile) bool { return f.isConverted })
	generates := c.contains(func(f *servedFile) bool {
		return f.generatesProbes || f.format == input.BitcodeFile && f.callsStubs
	})
	refuses := c.contains(func(f *servedFile) bool { return f.refusal != nil })
	lacking, flags, err := l.requirements(withoutData(c.files), converts)
	if err != nil {
		return p, err
	}
	p.flags = flags
	if lacking != nil {
		if err := l.reportUnknown(lacking.Unknown()); err != nil {
			return p, err
		}
		p.libraries = l.librariesToRepeat(lacking, withoutData(c.files))
	}
	p.isSupervised = converts || generates || refuses || lacking != nil || missesFiles
	if !ln.relocatable && !l.NoStubs && !l.Convert.Patch.NoRecords && (lacking != nil || missesFiles || generates) {
		p.definitions, err = process.Executable()
	}
	return p, err
}

// nextRun returns the plan of the run after one whose result lacks a definition: with the files that the linker
// has found known from the beginning.
func (p runPlan) nextRun(r runResult) (runPlan, error) {
	var err error
	p.conversion = p.conversion.withFiles(r.found...)
	p.before, p.definesAll = r, true
	p.definitions, err = process.Executable()
	return p, err
}

// arguments returns the arguments of the linker: those of the line as they are and, behind them, the
// definitions. A flag at the end of the line may take the next word as its value. A directory that does not
// exist keeps it from taking the definitions.
func (p runPlan) arguments(args []string, gnu bool) []string {
	words := slices.Concat(p.flags, args)
	if p.definitions == "" {
		return words
	}
	if last := &p.line.args[len(p.line.args)-1]; last.kind == otherArg {
		words = append(words, "-L/dev/null")
	}
	switch {
	case p.line.foreign && gnu:
		words = append(words, "--format=default")
	case p.line.foreign:
		words = append(words, "--format=elf")
	}
	return append(append(words, p.definitions), p.libraries...)
}

// runUntilDefined runs the linker, again while a file that it finds lacks a definition, and verifies the output.
func (l *link) runUntilDefined(p runPlan, c *fileConverter, s *supervise.Supervisor) (process.Status, error) {
	if p.needsGeneratedCode(c.examiner) {
		generated, r, err := l.generate(p, c)
		if r.isStopped && err == nil {
			err = errReported
		}
		if err != nil || r.status != (process.Status{}) {
			return r.status, err
		}
		p = generated
		s.Close()
		if s, err = supervise.New(supervise.Options{Writes: true}); err != nil {
			return process.Status{}, err
		}
	}
	r, err := l.runForOutput(p, c, s)
	for err == nil && r.mustRunAgain {
		p.output.removeIfChanged()
		if p, err = p.nextRun(r); err != nil {
			return r.status, err
		}
		if s, err = supervise.New(supervise.Options{Writes: p.code.descriptors != nil}); err != nil {
			return process.Status{}, err
		}
		if r, err = l.runForOutput(p, c, s); err != nil {
			return r.status, err
		}
	}
	if r.isStopped {
		p.output.removeIfChanged()
		return r.status, errReported
	}
	return l.finishLink(p.output, r.status, err, p.conversion.withFiles(r.found...).unconverted())
}

// runForOutput runs the linker for its output.
func (l *link) runForOutput(p runPlan, c *fileConverter, s *supervise.Supervisor) (runResult, error) {
	cmd := l.command(p.arguments(l.args, l.linker.family == gnu))
	if p.code.descriptors == nil {
		return l.superviseCommand(p, c, s, cmd, nil)
	}
	report := newCodeReport(cmd)
	r, err := l.superviseCommand(p, c, s, cmd, &report.code)
	err = cmp.Or(err, report.finish())
	c.closeLater(slices.Collect(maps.Values(report.code.descriptors))...)
	if err != nil || r.status != (process.Status{}) || r.isStopped || r.mustRunAgain {
		return r, err
	}
	if err := report.check(p.code.extracted); err != nil {
		p.output.removeIfChanged()
		return r, fmt.Errorf("%s: %w", p.output.path, err)
	}
	return r, nil
}

// superviseCommand runs a command of the linker, and ends its supervision. code gets the files that lld writes,
// nil if none are.
func (l *link) superviseCommand(p runPlan, c *fileConverter, s *supervise.Supervisor, cmd *exec.Cmd, code *codeFiles) (runResult, error) {
	r := &supervisedRun{link: l, plan: p, converter: c, supervisor: s, code: code, state: newRunState(p.before)}
	status, err := r.runCommand(cmd)
	return r.state.result(status), err
}

// supervisedRun answers the opens of a linker. All that changes is in the state, but for child and code.
type supervisedRun struct {
	*link
	plan       runPlan
	converter  *fileConverter
	supervisor *supervise.Supervisor
	child      atomic.Int64 // process of the linker, 0 before it runs: this process may open files before
	code       *codeFiles   // that lld writes, or nil
	state      *runState
}

// runCommand runs a command of the linker, and waits for its end.
func (r *supervisedRun) runCommand(cmd *exec.Cmd) (process.Status, error) {
	defer r.supervisor.Close()
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], envSupervised+"=1")
	r.session.Watch()
	return r.wait(cmd, r.supervisor.Start(func() error {
		err := r.session.Start(cmd)
		if err != nil {
			return err
		}
		r.child.Store(int64(cmd.Process.Pid))
		if r.state.wasStopped() { // before its number was known
			supervise.Terminate(cmd.Process.Pid)
		}
		return nil
	}, r.answer))
}

// stop ends the linker, and prints why.
func (r *supervisedRun) stop(o *supervise.Open, reason []byte) {
	if r.state.stop() {
		r.Stderr.Write(reason)
	}
	if child := int(r.child.Load()); o.PID != os.Getpid() && child != 0 {
		supervise.Terminate(o.PID)
		supervise.Terminate(child)
	}
	o.Fail(syscall.EIO)
}

// stopWithError ends the linker, and prints an error.
func (r *supervisedRun) stopWithError(o *supervise.Open, err error) { r.stop(o, refusalOf(err)) }

// stopUnsupervised ends the linker, and prints why it cannot be supervised, and what to do.
func (r *supervisedRun) stopUnsupervised(o *supervise.Open, err error) {
	r.stopWithError(o, fmt.Errorf("%w%s", err, cures))
}

// answer decides what the linker, or what it starts, reads or writes.
func (r *supervisedRun) answer(o *supervise.Open) {
	switch {
	case o.Write && r.code != nil:
		r.code.answer(o)
		return
	case o.Err != nil:
		r.stopUnsupervised(o, o.Err)
		return
	case o.PID != int(r.child.Load()):
		switch linker, err := isLinkerProcess(o.PID); {
		case err != nil:
			r.stopUnsupervised(o, err)
			return
		case !linker:
			o.Continue()
			return
		}
	}
	if r.isDefinitions(o) {
		r.supervisor.Go(func() { r.answerDefinitions(o) })
		return
	}
	if at := strings.LastIndex(o.Path, codePath); at >= 0 { // a linker may put a directory before it
		if code, ok := r.plan.code.inputs[o.Path[at:]]; ok {
			fd, err := openDescriptor(descriptorPath(code))
			r.giveDescriptor(o, fd, err)
			return
		}
	}
	id, ok := supervise.Identify(o.File)
	if !ok {
		if err := o.CheckReachable(); err != nil {
			r.stopUnsupervised(o, err)
			return
		}
		if err := r.plan.line.checkPipe(o.File); err != nil && !r.plan.line.hasFlagValue(o.Path) {
			r.stopWithError(o, err)
			return
		}
		o.Continue() // there is no such file, or it has no bytes that stay
		return
	}
	if f := r.plan.conversion.byIdentity[id]; f != nil {
		r.serve(o, f)
		return
	}
	if id == r.plan.output.identity {
		o.Continue() // some linkers look at what is there
		return
	}
	f := r.state.find(id, func(f *servedFile) { r.convertFound(f, o.File, o.Path) })
	if f.isReady() {
		r.serve(o, f.servedFile)
		return
	}
	r.supervisor.Go(func() {
		<-f.ready
		r.serve(o, f.servedFile)
	})
}

// isDefinitions reports whether the linker opens the input behind the line, sdtconvert's own path. A linker may put a directory before it, where
// there is no file, or this one.
func (r *supervisedRun) isDefinitions(o *supervise.Open) bool {
	own := r.plan.definitions
	if own == "" || !strings.HasSuffix(o.Path, own) {
		return false
	}
	if o.Path == own {
		return true
	}
	id, exists := supervise.Identify(o.File)
	self, _ := supervise.Identify(own)
	return !exists || id == self
}

// convertFound converts a file that only the linker has found. path leads to it, and name is what the linker
// calls it.
func (r *supervisedRun) convertFound(f *servedFile, path, name string) {
	if id, ok := supervise.Identify(name); ok && id == f.identity {
		path = name
	}
	f.inputFile = r.converter.examiner.examine(inputFile{path: path, name: name})
	r.converter.print(r.converter.convert(f))
	if f.needs == nil || r.plan.line.relocatable || f.refusal != nil {
		return
	}
	lacks, err := r.needsMoreDefinitions(f)
	if err != nil {
		f.refusal = refusalOf(err)
	} else if lacks {
		r.state.recordLackingDefinition()
	}
}

// needsMoreDefinitions reports whether a file that the linker has found needs more than the definitions that it has
// read.
func (r *supervisedRun) needsMoreDefinitions(f *servedFile) (bool, error) {
	definitions := r.state.definitionsSoFar()
	if !definitions.isRead && r.plan.definitions != "" {
		return false, nil // they are still to be read
	}
	lacking, err := r.lackingDefinitions(r.state.filesWhileConverting(r.plan.conversion.files, f))
	if err != nil || lacking == nil {
		return false, err
	}
	return definitions.lack(lacking.Objects()), nil
}

// lack reports whether one of some probe objects is not defined.
func (d definitionsRead) lack(objects []string) bool {
	return slices.ContainsFunc(objects, func(name string) bool { return !slices.Contains(d.objects, name) })
}

// serve answers with a file.
func (r *supervisedRun) serve(o *supervise.Open, f *servedFile) {
	if r.state.open(f) {
		r.stop(o, nil)
		return
	}
	codeFD, hasCode := r.plan.code.descriptors[f]
	if hasCode {
		isFirst, err := r.isFirstRead(f, o.Path)
		if err != nil {
			r.stopWithError(o, err)
			return
		}
		if !isFirst {
			codeFD = r.plan.code.empty
		}
	}
	if script := r.state.scriptOfMixedFormats(f); script != "" {
		r.stopWithError(o, fmt.Errorf("%s: TARGET in it has inputs read in another format than ELF, and the link holds probes; sdtconvert cannot tell which inputs those are", script))
		return
	}
	var fd int
	var err error
	switch {
	case f.refusal != nil && !f.isData:
		r.stop(o, f.refusal)
		return
	case hasCode:
		fd, err = openDescriptor(descriptorPath(codeFD))
	case !f.isConverted || f.isData:
		o.Continue()
		return
	default:
		fd, err = r.converter.open(f)
	}
	r.giveDescriptor(o, fd, err)
}

// isFirstRead reports whether the linker reads a file in whose place it gets generated code for the first time: of a file that the line
// names twice, lld generates code once. A member of a thin archive may be a file that the line names as well. lld leaves such
// a member out of the link, so the code is for the file under the name that the line has; it fails if both have one name.
func (r *supervisedRun) isFirstRead(f *servedFile, path string) (bool, error) {
	named := 0
	for _, a := range r.plan.line.args {
		if a.kind == inputArg && a.value == path {
			named++
		}
	}
	if f.isSurelyRead && named == 0 {
		return false, nil
	}
	before := r.state.readCode(f, path)
	reads := 1
	for _, earlier := range before {
		if earlier == path {
			reads++
		}
	}
	if f.isSurelyRead && reads > named {
		return false, fmt.Errorf("%s: is linked by this name and as a member of a thin archive, and holds code for link-time optimisation; "+
			"leave it out of one of the two, or compile it with -fno-lto", path)
	}
	return len(before) == 0, nil
}

// giveDescriptor answers with a descriptor, and closes it, or stops the linker for the error that there is
// instead.
func (r *supervisedRun) giveDescriptor(o *supervise.Open, fd int, err error) {
	if err != nil {
		r.stopWithError(o, err)
		return
	}
	o.Give(fd)
	closeDescriptor(fd)
}

// emptyArchive is an input of which nothing becomes a part of the link. gold does not read an index
// without symbols.
const emptyArchive = "!<arch>\n"

// answerDefinitions answers with the input that defines what the link lacks.
func (r *supervisedRun) answerDefinitions(o *supervise.Open) {
	data, err := r.definitions()
	if err != nil {
		r.stopWithError(o, err)
		return
	}
	fd, err := newDescriptor(data)
	r.giveDescriptor(o, fd, err)
}

// definitions returns the input that defines what the link lacks.
func (r *supervisedRun) definitions() ([]byte, error) {
	// gold opens the files of the line before those that they lead it to.
	files := r.state.filesBeforeDefinitions(r.plan.conversion.files, r.plan.definesAll || r.linker.family == gold)
	lacking, _, err := r.requirements(files, r.state.readsConverted())
	if err != nil {
		return nil, err
	}
	var defined []string // probe objects
	if lacking != nil {
		defined = lacking.Objects()
	}
	r.state.recordDefinitions(defined)
	if references := ltoReferences(files); len(references) > 0 && r.linker.family != lld {
		if lacking == nil {
			lacking = r.machineOf(files)
		}
		lacking.Refer(references)
	}
	if lacking == nil || !lacking.HasMachine() {
		return []byte(emptyArchive), nil
	}
	return lacking.Object()
}
