package ld

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/supervise"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// survey is what the look knows of a link. It does not change once Run has completed missesFiles.
type survey struct {
	line  *commandLine
	files []*inputFile
	// missesFiles says that the linker will read files that are not among these. The look repeats no search of a
	// linker: a file that it misses is converted when the linker opens it.
	missesFiles bool
}

// look looks at the files that a command line leads to, and at those that scripts of libraries among them name.
func look(ln *commandLine, e *examiner, jobs int) survey {
	s := survey{line: ln}
	next, missesFiles := filesOnLine(ln)
	s.missesFiles = missesFiles
	seen := map[string]bool{}
	for len(next) > 0 {
		batch := withoutRepeated(next, seen)
		files := make([]*inputFile, len(batch))
		parallel.Each(len(batch), jobs, func(i int) { files[i] = e.examine(batch[i]) })
		s.files, next = append(s.files, files...), nil
		for _, in := range files {
			s.missesFiles = s.missesFiles || in.addsLibraries
			if in.isScript {
				files, isWhole := filesOfLibraryScript(ln, in.path)
				next, s.missesFiles = append(next, files...), s.missesFiles || !isWhole
			}
		}
	}
	return s
}

// withoutRepeated returns the files whose paths were not seen, and adds these. Data is no repetition:
// each use of it counts.
func withoutRepeated(files []inputFile, seen map[string]bool) []inputFile {
	return slices.DeleteFunc(slices.Clone(files), func(f inputFile) bool {
		isRepeated := seen[f.path] && !f.isData
		seen[f.path] = seen[f.path] || !f.isData
		return isRepeated
	})
}

// filesOnLine returns the files that a line names, and those that -l probably finds. missesFiles says that the
// line leads to others.
func filesOnLine(ln *commandLine) (files []inputFile, missesFiles bool) {
	missesFiles = ln.namesFilesElsewhere || len(ln.scripts) > 0
	target := input.Target{} // of the first file
	for i := range ln.args {
		arg := &ln.args[i]
		switch {
		case arg.kind == inputArg:
			path := ln.inDirectory(arg.value)
			if !isRegular(path) { // a pipe can be read once, and a missing file may be the value of the flag before it
				missesFiles = true
				continue
			}
			files = append(files, inputFile{path: path, name: path, argument: arg.value, isData: arg.foreign, isOptional: arg.lazy, isNamed: true})
			if target == (input.Target{}) && !arg.foreign {
				target = targetOf(path)
			}
		case arg.kind == libraryArg:
			path, ok := firstOfTarget(ln.candidates(arg), target)
			if !ok {
				missesFiles = true
				continue
			}
			files = append(files, inputFile{path: path, name: path, argument: "-l" + arg.value, isData: arg.foreign, isOptional: arg.lazy})
		case arg.name == "plugin":
			missesFiles = missesFiles || !slices.Contains(compilerPlugins, filepath.Base(arg.value))
		case arg.name == "just-symbols":
			path := ln.inDirectory(arg.value)
			files = append(files, inputFile{path: path, name: path})
		}
	}
	return files, missesFiles
}

// compilerPlugins add no other inputs than code that they generate. Others add libraries, as libdep of binutils does.
var compilerPlugins = []string{"liblto_plugin.so", "LLVMgold.so"}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// checkPipes refuses an input that is a pipe if the output does not show whether probes of the input are converted.
func checkPipes(ln *commandLine) error {
	for i := range ln.args {
		if ln.args[i].kind != inputArg {
			continue
		}
		if err := ln.checkPipe(ln.inDirectory(ln.args[i].value)); err != nil {
			return err
		}
	}
	return nil
}

// checkPipe refuses a file that is a pipe if the output does not show whether probes of it are converted.
func (l *commandLine) checkPipe(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return nil
	}
	reason, cure := l.hidesTracepoints()
	if reason == "" {
		return nil
	}
	return fmt.Errorf("%s: is a pipe, and with %s the output does not show whether its probes are converted; link a file%s", path, reason, cure)
}

// hasFlagValue reports whether a path is what a flag names, such as a linker script, and no input.
func (l *commandLine) hasFlagValue(path string) bool {
	return slices.ContainsFunc(l.args, func(a lineArg) bool { return a.kind != inputArg && a.value == path })
}

// hidesTracepoints returns the flag because of which an output does not show its tracepoints, and what to do besides, or "".
func (l *commandLine) hidesTracepoints() (reason, cure string) {
	for _, a := range l.args {
		switch {
		case a.name == "s" || a.name == "strip-all":
			return "-s", ", or strip the output afterwards"
		case a.name == "oformat" && isForeign(a.value):
			return "--oformat=" + a.value, ""
		}
	}
	if len(l.scripts) > 0 { // which may discard what shows them
		return "--script", ""
	}
	return "", ""
}

// checkRecordsTogether refuses flags with which records of a link with probes are not one array without gaps: gold leaves room behind
// each section for later links (--incremental), and GNU ld and gold make several sections of one name (--unique), of which
// __start_ and __stop_ bound one.
func (s *survey) checkRecordsTogether(layout linkerset.Layout) error {
	if !s.contains(func(in *inputFile) bool { return in.namesProbes }) {
		return nil
	}
	for _, a := range s.line.args {
		switch {
		case a.name == "incremental" || strings.HasPrefix(a.name, "incremental-"):
			return fmt.Errorf("--%s: gold leaves room behind records, which no reader expects; link what has probes without it", a.name)
		case a.name == "unique" && !s.line.relocatable && separates(a.value, layout):
			return fmt.Errorf("--unique: the linker makes several sections of records, and __start_%s leads to one; name the sections that are to be unique (--unique=.text.*), or leave it out", layout.Section(arch.Probe))
		}
	}
	return nil
}

// separates reports whether a pattern of --unique matches sections of records, as "" does.
func separates(pattern string, layout linkerset.Layout) bool {
	for kind := range arch.Kinds {
		if matched, err := path.Match(pattern, layout.Section(kind)); pattern == "" || matched || err != nil {
			return true
		}
	}
	return false
}

// isProgram reports whether a link is of a program or a library of a C library, whatever its objects look like: it has a
// dynamic linker, or the C library's start of initialisation. No kernel has either.
func isProgram(ln *commandLine) bool {
	return slices.ContainsFunc(ln.args, func(a lineArg) bool {
		return a.name == "dynamic-linker" || a.kind == inputArg && filepath.Base(a.value) == "crti.o"
	})
}

// firstOfTarget returns the first of the files that is for a target: a linker passes over the others.
func firstOfTarget(files []string, target input.Target) (file string, ok bool) {
	for _, file := range files {
		if t := targetOf(file); t == (input.Target{}) || target == (input.Target{}) || t == target {
			return file, true
		}
	}
	return "", false
}

// targetOf returns what an ELF file is made for, the first in an archive, or the format that a script
// names. It returns the zero target for other files.
func targetOf(file string) (target input.Target) {
	done := errors.New("done")
	input.Each(file, input.Options{FollowThin: true}, func(src *input.Source) error {
		var ok bool
		if target, _, ok = src.Ident(); !ok && src.Member == nil {
			target = targetOfScript(file)
		} else if !ok {
			return nil
		}
		return done
	})
	return target
}

// inputs returns the files that are not linked as data.
func (s *survey) inputs() (inputs []*inputFile) {
	for _, in := range s.files {
		if !in.isData {
			inputs = append(inputs, in)
		}
	}
	return inputs
}

// contains reports whether one of the files, but for those that are linked as they are, has a property.
func (s *survey) contains(property func(*inputFile) bool) bool {
	return slices.ContainsFunc(s.inputs(), property)
}

// concernsProbes reports whether the link has to do with probes, as far as the look tells.
func (s *survey) concernsProbes() bool {
	return s.missesFiles || s.contains(func(in *inputFile) bool { return in.namesProbes || in.mayHoldProbes() })
}

// target returns what the files with probes are made for.
func (s *survey) target() (target patch.Target) {
	for _, in := range s.inputs() {
		target = max(target, in.target)
	}
	if target == patch.LinuxKernel && isProgram(s.line) {
		target = patch.LinuxProgram
	}
	return max(target, patch.LinuxProgram)
}

// distinctFiles returns the files of the survey, each once, and then the files with probes that thin archives
// name: the linker opens these itself. They are still to be converted. It fails if a file with probes is linked both as an
// object and as it is.
func (s *survey) distinctFiles() ([]*servedFile, error) {
	var files []*servedFile
	var members []*inputFile
	known, isMixed := map[supervise.Identity]*servedFile{}, map[*servedFile]bool{}
	for _, in := range s.files {
		id, ok := supervise.Identify(in.path)
		if !ok {
			continue
		}
		f := known[id]
		switch {
		case f == nil:
			f = &servedFile{inputFile: in, identity: id}
			known[id], files = f, append(files, f)
		case f.isData != in.isData:
			isMixed[f] = true
		}
		f.isSurelyRead = f.isSurelyRead || in.isNamed
		if in.isData {
			continue
		}
		// The path that leads to a thin archive decides where its members are.
		if f.isData || in.callsStubs {
			f.inputFile = in
		}
		members = append(members, in.members...)
	}
	var errs []error
	for _, f := range files {
		if isMixed[f] && f.callsStubs && f.format != input.ThinArchiveFile {
			errs = append(errs, mixedUse(f.path))
		}
	}
	for _, member := range members {
		id, ok := supervise.Identify(member.path)
		switch f := known[id]; {
		case !ok:
		case f == nil:
			f = &servedFile{inputFile: member, identity: id}
			known[id], files = f, append(files, f)
		case f.isData:
			errs = append(errs, mixedUse(member.path))
		}
	}
	return files, errors.Join(errs...)
}

func mixedUse(path string) error {
	return fmt.Errorf("%s: holds probes, and is linked both as an object and as it is (--format=binary); give the linker a copy of it", path)
}

// warnOfKernelTracepoints warns of objects of FreeBSD's kernel that were compiled with its
// own sys/sdt.h, as some of its makefiles' rules do if they can. Their tracepoints call no
// stub, so the link would leave them out without a word.
func (l *link) warnOfKernelTracepoints(inputs []*inputFile) {
	inputs = slices.DeleteFunc(inputs, func(in *inputFile) bool { return !in.hasKernelTracepoints })
	if len(inputs) == 0 {
		return
	}
	files := inputs[0].name
	if len(inputs) > 1 {
		files += fmt.Sprintf(" and %d more", len(inputs)-1)
	}
	message.Warning(l.Stderr, fmt.Errorf("%s: compiled with the kernel's own sys/sdt.h, whose tracepoints call sdt_probe_func and are not converted; give the compiler the -I of sdtconvert's header first, in CC", files))
}

// checkDroppedCode refuses what makes a linker drop records of code that it keeps, or fold functions
// that differ only in their probes: with --drop-relocations nothing keeps records together with
// their code.
func (l *link) checkDroppedCode(s survey) error {
	if !l.Convert.Patch.DropRelocations || s.line.relocatable || !s.contains(func(in *inputFile) bool { return in.callsStubs }) {
		return nil
	}
	collects, folds := false, false
	for _, a := range s.line.args {
		switch a.name {
		case "gc-sections", "no-gc-sections":
			collects = a.name == "gc-sections"
		case "icf", "no-icf":
			folds = a.name == "icf" && a.value != "none"
		}
	}
	const conflict = "--drop-relocations: --%s would lose sites, as nothing keeps them together with their code; leave out one of the two"
	var errs []error
	if collects {
		errs = append(errs, fmt.Errorf(conflict, "gc-sections"))
	}
	if folds {
		errs = append(errs, fmt.Errorf(conflict, "icf"))
	}
	return errors.Join(errs...)
}
