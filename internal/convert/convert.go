// Package convert converts files: objects, archives, and thin archives with the files
// that they name.
//
// What is to become of a source is decided in memory: a source is opened as an object,
// a plan is made of the object, and an output of the plan. Only then is anything
// written, by package replace. The members of an archive are written as they come, and the
// new archive takes the place of the old one once all of them are.
package convert

import (
	"errors"
	"fmt"
	"sync/atomic"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/replace"
	"sdtconvert/patch"
)

// Options say how files are converted.
type Options struct {
	Patch patch.Options
	Jobs  int // threads for all files, at least 1
	// Files is how many files there are, 0 for 1: the members of few archives are worked
	// on by as many threads as are left.
	Files int

	FollowThin bool // take files outside of the directory of a thin archive
	DryRun     bool // write nothing, and report how many sites would be converted
	Verbose    bool // report each site
	Manifest   bool // describe each object

	// SuggestOutput says that flags can name another target, which an error then advises.
	SuggestOutput bool
	// LinkGenerates says that objects without machine code stay as they are: the link converts
	// the code that it generates of them.
	LinkGenerates bool
	// SkipUnchanged says that targets are not there yet, in a directory that the caller removes
	// when anything goes wrong; and that what stays as it is needs none.
	SkipUnchanged bool
	// Planned is called, by several goroutines, with each object whose plan is about to
	// be carried out, unless it is nil. It may be called again with the same object. Its
	// error keeps the object from being converted.
	Planned func(o *input.Object, plan *patch.Plan) error
}

// Converter converts files. Several goroutines may use it at once.
type Converter struct {
	Options
	writer     *replace.Writer
	stubTexts  [][]byte // of Patch.Names
	memberJobs int      // members of an archive that are worked on at once

	kernel, program atomic.Bool // whether an object of each target was converted by its default
}

// New makes a converter that writes by w.
func New(o Options, w *replace.Writer) *Converter {
	return &Converter{
		Options: o, writer: w, stubTexts: o.Patch.StubTexts(),
		memberJobs: max(1, o.Jobs/max(1, o.Files)),
	}
}

// MixesTargets reports whether objects were converted by default both for a Linux kernel and for
// programs: not all code of a kernel shows what it is.
func (c *Converter) MixesTargets() bool { return c.kernel.Load() && c.program.Load() }

// File converts an object, or the members of an archive, to a target that may be the
// same file.
func (c *Converter) File(path, target string) *Result {
	var r *Result
	err := retry(func() error {
		r = &Result{path: path, manifest: c.Manifest, verbose: c.Verbose}
		return c.convertFile(path, target, r)
	})
	if err != nil && err != errMemberReported {
		r.AddError(err)
	}
	return r
}

// attempts is how often a file is tried that changes under way: it may be another
// sdtconvert's doing, which leaves nothing to do.
const attempts = 3

// retry tries something on a file again if the file has changed meanwhile.
func retry(try func() error) error {
	for i := 1; ; i++ {
		if err := try(); i == attempts || !errors.Is(err, input.ErrChanged) {
			return err
		}
	}
}

// convertFile tries once to convert a file.
func (c *Converter) convertFile(path, target string, r *Result) error {
	in, err := input.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	src := in.Source()
	isArchive, err := src.IsArchive()
	switch {
	case err != nil:
		return err
	case isArchive:
		return c.convertArchive(in, target, r)
	}
	return c.convertObject(src, target, r)
}

// convertObject converts a file that is no archive.
func (c *Converter) convertObject(src *input.Source, target string, r *Result) error {
	result := c.convertSource(src)
	r.entry = result.entry
	r.addConversion(result)
	if result.err != nil {
		return result.err
	}
	if err := c.write(src.File, target, result.output); err != nil {
		return err
	}
	r.markWritten(result.lines.Bytes())
	return nil
}

// write writes what becomes of a file: the output or, where it is nil, the file itself
// if there is to be a copy.
func (c *Converter) write(in *input.File, target string, out *elfreloc.Output) error {
	if out == nil && target != in.Path && !c.SkipUnchanged {
		size := in.Size()
		out = &elfreloc.Output{Size: size, Extents: []elfreloc.Extent{{Len: size}}}
	}
	if out == nil || c.DryRun {
		return nil
	}
	return c.withOutputHint(c.writer.File(target, in, out), in, target)
}

// withOutputHint adds to an error in writing a file what to do about it.
func (c *Converter) withOutputHint(err error, in *input.File, target string) error {
	if replace.IsReadOnly(err) && target == in.Path && c.SuggestOutput {
		return fmt.Errorf("%w; write the result elsewhere with -o or --output-dir", err)
	}
	return err
}
