package ld

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
)

// envSupervised tells a wrapper within the link that another one supervises it.
const envSupervised = "SDTCONVERT_SUPERVISED"

// supervise runs the linker, and gives it converted bytes; or the linker alone, if it is to read what
// it would.
func (l *link) supervise(ln *line.Line, k *examiner, found lookResult) (process.Status, error) {
	if !found.incomplete && !slices.ContainsFunc(found.inputs, func(in *linkInput) bool { return in != nil && (in.names || in.holdsProbes()) }) {
		return l.execLinker(nil)
	}
	supervisor, unavailable := supervise.New(supervise.Options{})
	if l.Getenv(envSupervised) != "" && errors.Is(unavailable, syscall.EBUSY) {
		return l.execLinker(nil) // the outer wrapper sees what this linker opens, too
	}
	if unavailable == nil {
		defer supervisor.Close()
	}
	inputs, err := newInputs(l, k, found)
	if err != nil {
		return process.Status{}, err
	}
	defer inputs.close()
	r := &run{link: l, inputs: inputs, line: ln}
	// Where no linker can be supervised, what the look has missed is found in the output.
	plainly, err := r.prepare(found.incomplete && unavailable == nil)
	switch {
	case err != nil:
		return process.Status{}, err
	case plainly && !found.incomplete && !slices.ContainsFunc(inputs.order, func(f *servedFile) bool { return f.in.holdsProbes() }):
		return l.execLinker(r.flags)
	case plainly:
		return l.verified(ln, inputs.unconverted, func() (process.Status, error) { return l.runLinker(slices.Concat(r.flags, l.args)) })
	case unavailable != nil:
		return process.Status{}, fmt.Errorf("%w%s", unavailable, cures)
	}
	return l.verified(ln, inputs.unconverted, func() (process.Status, error) { return r.run(supervisor) })
}

// holdsProbes reports whether a file has probes, or may have them and cannot be converted.
func (in *linkInput) holdsProbes() bool { return in.probes || in.generates || in.err != nil }

// run is a linker that runs under supervision.
type run struct {
	*link
	inputs *inputs
	line   *line.Line

	flags  []string // before the words of the line
	added  string   // the path of the input that defines what the link lacks, "" for none
	behind []string // words behind that

	output    supervise.Identity  // of the output of an earlier link, if there is one
	generated map[*servedFile]int // descriptors of what takes the place of bitcode
	empty     int                 // descriptor of an archive without members, which takes that place if the file is read again

	supervisor *supervise.Supervisor // of the linker that runs
	child      atomic.Int64          // process of the linker, 0 before it runs: this process may open files before

	mu        sync.Mutex // of the rest
	stopped   bool
	again     bool                 // the linker is to run again: a file that it has found lacks a definition
	complete  bool                 // what it has found before counts from the beginning
	provided  *stubs.Requirements  // what that input defines, nil before it is read
	read      bool                 // that input was
	foreign   string               // a script that has inputs read in another format than ELF
	converted bool                 // the linker has read converted bytes
	placed    map[*servedFile]bool // whose generated code the linker has read
}

// prepare converts what the look has found. plainly is whether the linker runs alone.
func (r *run) prepare(incomplete bool) (plainly bool, err error) {
	if r.inputs.convertFiles(r.inputs.order) {
		return false, errReported
	}
	files := r.inputs.list(false)
	converted, generates, refused := false, false, false
	for _, f := range r.inputs.order {
		converted, refused = converted || f.converted, refused || f.refusal != nil
		generates = generates || f.in.generates || f.in.typ == filetype.Bitcode && f.in.probes
	}
	need, flags, err := r.requirements(files, converted)
	if err != nil {
		return false, err
	}
	r.flags = flags
	if need != nil {
		if err := r.reportUnknown(need.Unknown()); err != nil {
			return false, err
		}
		r.behind = r.neededAgain(need, files)
	}
	if !converted && !generates && !refused && need == nil && !incomplete {
		return true, nil
	}
	if !r.line.Relocatable && !r.NoStubs && !r.Convert.Patch.NoRecords && (need != nil || incomplete || generates) {
		r.added, err = os.Executable()
	}
	return false, err
}

// words returns the words of the linker: those of the line as they are and, behind them, the input
// that is added. If a flag ends the line, it may be one that takes a value: a directory that is
// none keeps it from taking the input.
func (r *run) words() []string {
	words := append(r.flags[:len(r.flags):len(r.flags)], r.args...)
	if r.added == "" {
		return words
	}
	if last := &r.line.Args[len(r.line.Args)-1]; last.Kind == line.Other {
		words = append(words, "-L/dev/null")
	}
	if r.line.Foreign && (r.linker.hasName("gold") || r.linker.hasName("lld") || r.linker.hasName("mold")) {
		words = append(words, "--format=elf")
	} else if r.line.Foreign {
		words = append(words, "--format=default")
	}
	return append(append(words, r.added), r.behind...)
}

// run runs the linker.
func (r *run) run(s *supervise.Supervisor) (process.Status, error) {
	if r.needsFirstRun() {
		if status, err := r.generate(); r.stopped || err != nil || status != (process.Status{}) {
			return status, cmp.Or(err, r.stopError())
		}
	}
	was, _ := os.Stat(output(r.line))
	r.output, _ = supervise.Identify(output(r.line))
	status, err := r.supervised(s, r.command(r.words()), r.answer)
	for err == nil && r.again {
		if status, err = r.runAgain(was); err != nil {
			return status, err
		}
	}
	if r.stopped {
		removeIfChanged(output(r.line), was)
		return status, r.stopError()
	}
	return status, err
}

// stopError returns an error if the link was stopped, and why was printed.
func (r *run) stopError() error {
	if r.stopped {
		return errReported
	}
	return nil
}

// runAgain runs the linker once more, with what it has opened by itself known from the beginning.
func (r *run) runAgain(was fs.FileInfo) (status process.Status, err error) {
	removeIfChanged(output(r.line), was)
	r.again, r.stopped, r.read, r.provided = false, false, false, nil
	clear(r.placed)
	r.complete = true
	if r.added, err = os.Executable(); err != nil {
		return status, err
	}
	s, err := supervise.New(supervise.Options{})
	if err != nil {
		return status, err
	}
	return r.supervised(s, r.command(r.words()), r.answer)
}

// supervised runs a command of the linker, and ends its supervision.
func (r *run) supervised(s *supervise.Supervisor, cmd *exec.Cmd, answer func(*supervise.Open)) (process.Status, error) {
	defer s.Close()
	r.supervisor = s
	r.child.Store(0)
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], envSupervised+"=1")
	r.session.Watch()
	return r.finish(cmd, s.Start(func() error {
		err := r.session.Start(cmd)
		if err == nil {
			r.child.Store(int64(cmd.Process.Pid))
		}
		return err
	}, answer))
}

// cures are what to do where no linker can be supervised.
const cures = "; so link with --in-place, or compile with sdtconvert cc"

// removeIfChanged removes what a linker has written where that file was before.
func removeIfChanged(path string, was fs.FileInfo) {
	if hasChanged(path, was) {
		os.Remove(path)
	}
}

// hasChanged reports whether a path has a regular file that is not the one that was there.
func hasChanged(path string, was fs.FileInfo) bool {
	now, err := os.Lstat(path)
	return err == nil && now.Mode().IsRegular() &&
		(was == nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) || was.Size() != now.Size())
}

// stop ends the linker, and says why.
func (r *run) stop(o *supervise.Open, why []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.stopped = true
		r.Stderr.Write(why)
	}
	if child := int(r.child.Load()); o.PID != os.Getpid() && child != 0 {
		supervise.Terminate(o.PID)
		supervise.Terminate(child)
	}
	o.Fail(syscall.EIO)
}

// stopFor is stop with an error.
func (r *run) stopFor(o *supervise.Open, err error) {
	f := servedFile{}
	f.refuse(err)
	r.stop(o, f.refusal)
}

// answer decides what the linker, or what it runs, reads.
func (r *run) answer(o *supervise.Open) {
	if o.Err != nil {
		r.stopFor(o, fmt.Errorf("%w%s", o.Err, cures))
		return
	}
	if o.PID != int(r.child.Load()) {
		switch linker, err := isLinker(o.PID); {
		case err != nil:
			r.stopFor(o, fmt.Errorf("%w%s", err, cures))
			return
		case !linker:
			o.Continue()
			return
		}
	}
	if r.added != "" && strings.HasSuffix(o.Path, r.added) {
		r.supervisor.Go(func() { r.define(o) })
		return
	}
	id, ok := supervise.Identify(o.File)
	if !ok {
		if err := o.CheckReachable(); err != nil {
			r.stopFor(o, fmt.Errorf("%w%s", err, cures))
			return
		}
		o.Continue() // there is no such file, or it is none of bytes that stay
		return
	}
	if id == r.output && !r.inputs.has(id) {
		o.Continue() // some linkers look at what is there
		return
	}
	f := r.inputs.lookup(id, o.File, o.Path, r.met)
	if f.isReady() {
		r.give(o, f)
		return
	}
	r.supervisor.Go(func() {
		<-f.ready
		r.give(o, f)
	})
}

// give answers with a file.
func (r *run) give(o *supervise.Open, f *servedFile) {
	f.opened.Store(true)
	r.mu.Lock()
	again := r.again
	r.mu.Unlock()
	if again {
		r.stop(o, nil)
		return
	}
	generated, generates := r.codeOf(f)
	if script := r.mixesFormats(f); script != "" {
		r.stopFor(o, fmt.Errorf("%s: TARGET in it has inputs read in another format than ELF, and the link holds probes; sdtconvert cannot tell which inputs those are", script))
		return
	}
	switch {
	case f.refusal != nil && !f.binary:
		r.stop(o, f.refusal)
		return
	case !generates && (!f.converted || f.binary):
		o.Continue()
		return
	}
	fd, err := -1, error(nil)
	if generates {
		fd, err = openDescriptor(descriptorPath(generated))
	} else {
		fd, err = r.inputs.open(f)
	}
	if err != nil {
		r.stopFor(o, err)
		return
	}
	o.Give(fd)
	closeDescriptor(fd)
}

// codeOf returns a descriptor of what takes the place of bitcode that lld reads, once: of a file that
// the line names twice, lld generates code once.
func (r *run) codeOf(f *servedFile) (fd int, ok bool) {
	fd, ok = r.generated[f]
	if !ok {
		return fd, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.placed[f] {
		return r.empty, true
	}
	r.placed[f] = true
	return fd, true
}

// mixesFormats returns the name of a script that has inputs read in another format than ELF, if the
// link holds probes, too. f is what the linker reads next.
func (r *run) mixesFormats(f *servedFile) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.in.foreign {
		r.foreign = f.in.name
	}
	r.converted = r.converted || f.converted && !f.binary
	if r.converted {
		return r.foreign
	}
	return ""
}

// isLinker reports whether a process is a linker, as all their names tell, or one of GCC's programs for
// intermediate code, which read it at the places where the linker has found it. What others read under
// the link is their own: tools that a linker's script runs, and assemblers, which include data (.incbin).
func isLinker(pid int) (bool, error) {
	path, err := supervise.Executable(pid)
	name := filepath.Base(path)
	return strings.Contains(name, "ld") || strings.HasPrefix(name, "lto"), err
}

// emptyArchive is an input of which nothing becomes a part of the link. gold does not read an index
// without symbols.
const emptyArchive = "!<arch>\n"

// define answers with the input that defines what the link lacks.
func (r *run) define(o *supervise.Open) {
	// gold opens the files of the line before those that they lead it to.
	inputs := r.inputs.list(!r.complete && !r.linker.hasName("gold"))
	data, err := r.definitions(inputs)
	if err != nil {
		r.stopFor(o, err)
		return
	}
	fd, err := newDescriptor(data)
	if err != nil {
		r.stopFor(o, err)
		return
	}
	o.Give(fd)
	closeDescriptor(fd)
}

// definitions returns that input.
func (r *run) definitions(inputs []*linkInput) ([]byte, error) {
	r.mu.Lock()
	converted := r.converted
	r.mu.Unlock()
	need, _, err := r.requirements(inputs, converted)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.read, r.provided = true, need
	r.mu.Unlock()
	if references := ltoReferences(inputs); len(references) > 0 && !r.inputs.examiner.lld {
		if need == nil {
			need = r.machineOf(inputs)
		}
		need.Refer(references)
	}
	if need == nil || !need.HasMachine() {
		return []byte(emptyArchive), nil
	}
	return need.Object()
}

// met is called with each file that the look before the link has not found. If the definitions were
// read before, and lack what the file needs, the linker runs again.
func (r *run) met(f *servedFile) {
	if f.in.needs == nil || r.line.Relocatable || f.refusal != nil {
		return
	}
	r.mu.Lock()
	isFixed, provided := r.read || r.added == "", r.provided
	r.mu.Unlock()
	if !isFixed {
		return
	}
	need, err := r.missing(r.inputs.readyWith(f))
	if err != nil {
		f.refuse(err)
		return
	}
	if need == nil || provided != nil && !slices.ContainsFunc(need.Objects(), func(name string) bool { return !slices.Contains(provided.Objects(), name) }) {
		return
	}
	r.mu.Lock()
	r.again = true
	r.mu.Unlock()
}
