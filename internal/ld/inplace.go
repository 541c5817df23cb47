package ld

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
)

// linkInPlace converts the files that the look has found, and runs the linker with its line and,
// behind it, an object of what the link lacks. Calls of a file that the look has missed are
// undefined.
func (l *link) linkInPlace(s survey) (process.Status, error) {
	convertible, err := inputsToConvert(s.inputs())
	if err != nil {
		return process.Status{}, err
	}
	if err := l.convertInPlace(convertible, s.inputs()); err != nil {
		return process.Status{}, err
	}
	var files []*servedFile
	for _, in := range s.inputs() {
		f := &servedFile{inputFile: in, needs: in.needs}
		if f.needs == nil && in.callsStubs && !s.line.relocatable {
			f.needs = readNeeds(l.Convert.Patch, in.path)
		}
		files = append(files, f)
	}
	lacking, flags, err := l.requirements(files, len(convertible) > 0)
	if err != nil {
		return process.Status{}, err
	}
	linkWith := func(last ...string) (process.Status, error) {
		o := outputOf(s.line)
		status, err := l.runLinker(slices.Concat(flags, l.args, last))
		return l.finishUnseen(o, status, err, s)
	}
	if s.line.relocatable || lacking == nil {
		if !s.contains(func(in *inputFile) bool { return in.mayHoldProbes() }) && !s.missesFiles {
			return l.execLinker(flags)
		}
		return linkWith()
	}
	if err := l.reportUnknown(lacking.Unknown()); err != nil {
		return process.Status{}, err
	}
	data, err := lacking.Object()
	if err != nil {
		return process.Status{}, err
	}
	defer l.session.removeTemporaries()
	added, err := l.session.writeTemporary(data)
	if err != nil {
		return process.Status{}, err
	}
	status, err := linkWith(append([]string{added}, l.librariesToRepeat(lacking, files)...)...)
	if err != nil || status != (process.Status{}) {
		return status, err
	}
	return status, renameDependency(s.line, added, l.session.files)
}

// inputsToConvert returns the inputs to convert in place. It fails if one cannot be.
func inputsToConvert(inputs []*inputFile) (convertible []*inputFile, err error) {
	var errs []error
	for _, in := range inputs {
		switch {
		case in.err != nil:
			errs = append(errs, in.err)
		case in.generatesProbes:
			errs = append(errs, errors.New(in.name+": holds probes in code for link-time optimisation, which --in-place does not convert; link without --in-place, or compile it with -fno-lto"))
		case in.isConvertible() || in.callsStubs && in.isArchive():
			convertible = append(convertible, in)
		}
	}
	return convertible, errors.Join(errs...)
}

// renameDependency has a dependency file name sdtconvert in place of an object that is removed, as
// ninja links again when a dependency is missing.
func renameDependency(ln *commandLine, removed string, files *replace.Writer) error {
	for i := range ln.args {
		arg := &ln.args[i]
		if arg.name != "dependency-file" {
			continue
		}
		path := ln.inDirectory(arg.value)
		self, err := process.Executable()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // of several such flags, linkers heed the last
		}
		if err != nil {
			return err
		}
		if err := files.New(path, bytes.ReplaceAll(data, []byte(removed), []byte(self))); err != nil {
			return err
		}
	}
	return nil
}

// convertInPlace converts files, each once. Notes take definitions of probes from the inputs, which are all of the
// link.
func (l *link) convertInPlace(convertible, inputs []*inputFile) error {
	var files []string
	for _, in := range convertible {
		files = append(files, in.path)
	}
	files, err := input.Distinct(files)
	if err != nil || len(files) == 0 {
		return err
	}
	o := l.conversionOptions(len(files), l.probeSource(inputs))
	c, failed := convert.New(o, l.session.files), false
	var warnings message.Tally
	parallel.InOrder(len(files), o.Jobs, func(i int) *convert.Result { return c.File(files[i], files[i]) }, func(_ int, r *convert.Result) {
		r.Print(l.Stderr, &warnings) // standard output is the linker's
		failed = failed || r.Failed
	})
	warnings.Print(l.Stderr)
	if failed {
		return errReported
	}
	return nil
}
