package ld

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/process"
)

// linkInPlace converts the files that the look has found, and runs the linker with its line and,
// behind it, an object of what the link lacks. Calls of a file that the look has missed are
// undefined.
func (l *link) linkInPlace(ln *line.Line, found lookResult) (process.Status, error) {
	var wanted []*linkInput
	var inputs []*linkInput
	var errs []error
	for _, in := range found.inputs {
		if in == nil {
			continue
		}
		inputs = append(inputs, in)
		switch {
		case in.err != nil:
			errs = append(errs, in.err)
		case in.generates:
			errs = append(errs, errors.New(in.name+": holds probes in code for link-time optimisation, which --in-place does not convert; link without --in-place, or compile it with -fno-lto"))
		case in.converts() || in.probes && in.isArchive():
			wanted = append(wanted, in)
		}
	}
	if len(errs) > 0 {
		return process.Status{}, errors.Join(errs...)
	}
	if err := l.convertInPlace(wanted, inputs); err != nil {
		return process.Status{}, err
	}
	for _, in := range inputs {
		if in.needs == nil && in.probes && !ln.Relocatable {
			in.needs = readNeeds(l.Convert.Patch, in.path)
		}
	}
	need, flags, err := l.requirements(inputs, len(wanted) > 0)
	if err != nil {
		return process.Status{}, err
	}
	verified := func(last ...string) (process.Status, error) {
		return l.verified(ln, func() []*linkInput { return inputs }, func() (process.Status, error) {
			return l.runLinker(slices.Concat(flags, l.args, last))
		})
	}
	if ln.Relocatable || need == nil {
		if !slices.ContainsFunc(inputs, (*linkInput).holdsProbes) && !found.incomplete {
			return l.execLinker(flags)
		}
		return verified()
	}
	data, err := l.object(need)
	if err != nil {
		return process.Status{}, err
	}
	defer l.session.end()
	added, err := l.session.temporary(data)
	if err != nil {
		return process.Status{}, err
	}
	status, err := verified(append([]string{added}, l.neededAgain(need, inputs)...)...)
	if err != nil || status != (process.Status{}) {
		return status, err
	}
	return status, renameDependency(ln, added)
}

// renameDependency has a dependency file name sdtconvert in place of an object that is removed, as
// ninja links again when a dependency is missing.
func renameDependency(ln *line.Line, removed string) error {
	for i := range ln.Args {
		arg := &ln.Args[i]
		if arg.Name != "dependency-file" {
			continue
		}
		path := ln.InDirectory(arg.Value)
		self, err := os.Executable()
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
		if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(removed), []byte(self)), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// convertInPlace converts files, each once.
func (l *link) convertInPlace(wanted, inputs []*linkInput) error {
	var files []string
	for _, in := range wanted {
		files = append(files, in.path)
	}
	files, err := input.Distinct(files)
	if err != nil || len(files) == 0 {
		return err
	}
	o := l.conversion(len(files), l.probeSource(inputs))
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
