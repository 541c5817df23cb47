package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/replace"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// convert is the command that rewrites objects.
func (p *program) convert(args []string) (bool, error) {
	s, err := convertFlags().parse(args)
	if err != nil {
		return false, err
	}
	if err := checkOutputs(s); err != nil {
		return false, err
	}
	c := &converter{settings: s, files: p.files, keep: keptMembers, memberJobs: memberJobs(s.jobs, len(s.files))}
	return p.runAll(s, c.file)
}

// checkOutputs makes sure that no two files have one output.
func checkOutputs(s *settings) error {
	if s.outputDir == "" {
		return nil
	}
	from := make(map[string]string)
	files, err := input.Distinct(s.files)
	if err != nil {
		return err
	}
	for _, file := range files {
		base := filepath.Base(file)
		if other, taken := from[base]; taken {
			return usagef("%s and %s would both be written to %s", other, file, filepath.Join(s.outputDir, base))
		}
		from[base] = file
	}
	if s.dryRun {
		return nil
	}
	return os.MkdirAll(s.outputDir, 0o777)
}

type converter struct {
	*settings
	files      *replace.Writer
	keep       int64 // what may be kept of an archive, see keptMembers
	memberJobs int   // how many members of an archive are worked on at once
	// fresh says that outputs are new files in a folder that nobody else knows of, and
	// that what does not change needs none.
	fresh bool
	// keepTime says that a file which is converted in its place keeps its time.
	keepTime bool
	// planned is told of each plan before it is carried out, unless it is nil.
	planned   func(s *input.Object, plan *patch.Plan) error
	mentioned atomic.Bool // whether the last file that was read mentions a stub
}

// target is where the result of a file goes.
func (c *converter) target(file string) string {
	switch {
	case c.output != "":
		return c.output
	case c.outputDir != "":
		return filepath.Join(c.outputDir, filepath.Base(file))
	}
	return file
}

// attempts is how often a file is tried that somebody changes under way: it may
// be another sdtconvert, which leaves nothing to do.
const attempts = 3

func (c *converter) file(name string) *result { return c.convert(name, c.target(name)) }

// convert converts an object, or the members of an archive, to a file that may be
// the same.
func (c *converter) convert(name, target string) *result {
	var r *result
	err := retry(func() error {
		r = newResult(name, c.json)
		return c.try(name, target, r)
	})
	if err != nil && !errors.Is(err, errReported) {
		r.fail(err)
	}
	return r
}

// retry tries something on a file again if somebody has changed it meanwhile.
func retry(try func() error) error {
	for i := 1; ; i++ {
		if err := try(); i == attempts || !errors.Is(err, input.ErrChanged) {
			return err
		}
	}
}

// errReported stands for errors that the result of a file holds already.
var errReported = errors.New("was reported")

// try is one attempt to.
func (c *converter) try(name, target string, r *result) error {
	in, err := input.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if c.mentioned.Load() {
		if err := in.Load(); err != nil {
			return err
		}
	}
	src := in.Source()
	if is, err := src.IsArchive(); err != nil {
		return err
	} else if is {
		return c.archive(in, target, r)
	}
	done := &outcome{target: target}
	defer func() { done.draft.Discard() }()
	if err := c.object(src, done, r); err != nil {
		return err
	}
	return c.put(in, done, r)
}

// outcome is what is to become of a source.
type outcome struct {
	target string           // the file that it is for; "" for a member of an archive
	object *input.Object    // nil when it is none
	out    *elfreloc.Output // nil when nothing changes
	change archive.Change   // for a member of a regular archive, with out
	lines  bytes.Buffer     // to print once it is written
	draft  *replace.Draft   // of out, or nil

}

// object converts an object in memory. Refusals are in the result.
func (c *converter) object(src *input.Source, done *outcome, r *result) error {
	s, err := src.Relocatable(c.patch.Names)
	if errors.Is(err, input.ErrPassedOver) {
		return nil
	}
	if err != nil {
		return err
	}
	done.object = s
	mentioned, err := s.MentionsStub(c.patch.Names)
	if err != nil {
		return err
	}
	c.mentioned.Store(mentioned)
	var plan *patch.Plan
	if mentioned {
		done.draft = c.begin(s, done.target)
		plan, err = examine(s, c.patch)
	} else {
		_, err = c.patch.CheckEarlier(s.Object, s.Machine)
	}
	if err != nil {
		return err
	}
	if r.object != nil {
		if err := c.describe(s, plan, r.object); err != nil {
			return err
		}
	}
	if plan == nil {
		return nil
	}
	if errs := plan.Err(); len(errs) > 0 {
		for _, err := range errs {
			r.fail(err)
		}
		return errReported
	}
	if c.planned != nil {
		if err := c.planned(s, plan); err != nil {
			return err
		}
	}
	return c.apply(s, plan, done, r)
}

// release gives back the object of what stays as it is.
func (done *outcome) release() {
	if done.object != nil {
		done.object.Release()
		done.object = nil
	}
}

// begin starts to write the output of a large object that will probably change.
func (c *converter) begin(s *input.Object, target string) *replace.Draft {
	if c.dryRun || target == "" || s.Source.Size <= input.LoadMax {
		return nil
	}
	return c.files.Draft(target, s.Source.File, s.Lasting())
}

// describe puts the sites of an object, earlier ones too, into the manifest.
func (c *converter) describe(s *input.Object, plan *patch.Plan, object *manifestObject) error {
	entries, err := earlier(s, []linkerset.Layout{c.patch.Layout})
	if err != nil {
		return err
	}
	return object.describe(s, plan, c.patch.ProbePrefix, entries)
}

// apply applies a plan that has no refusals.
func (c *converter) apply(s *input.Object, plan *patch.Plan, done *outcome, r *result) error {
	e, err := s.Edit()
	if err != nil {
		return err
	}
	if err := plan.Apply(e); err != nil {
		return err
	}
	for _, err := range plan.Warnings {
		r.warn(err)
	}
	if !e.Changed() {
		return nil
	}
	if done.out, err = e.Save(); err != nil {
		return err
	}
	if err := keepPadding(s, done.out); err != nil {
		return err
	}
	if err := warnTrailing(s, r); err != nil {
		return err
	}
	r.willConvert()
	if c.dryRun {
		message.Line(&done.lines, "%s: %d sites to convert", s.Name, len(plan.Sites))
	}
	if c.verbose {
		return printSites(&done.lines, plan)
	}
	return nil
}

// put writes what has become of a file. Where nothing has, there is nothing to do
// but to make a copy, if there is to be one.
func (c *converter) put(in *input.File, done *outcome, r *result) error {
	out := done.out
	if out == nil && done.target != in.Path && !c.fresh {
		size := in.Size()
		out = &elfreloc.Output{Size: size, Extents: []elfreloc.Extent{{Len: size}}}
	}
	if out != nil && !c.dryRun {
		o := replace.Options{Draft: done.draft, Workers: c.jobs, KeepTime: c.keepTime, Fresh: c.fresh && done.target != in.Path}
		if err := c.files.File(done.target, in, out, o); err != nil {
			return err
		}
	}
	r.stdout.Write(done.lines.Bytes())
	r.converted()
	return nil
}

// warnTrailing tells that what stands behind the ELF file proper is lost.
func warnTrailing(s *input.Object, r *result) error {
	size, end := s.Source.Size, s.End()
	if size <= end {
		return nil
	}
	if pad, err := padding(s); err != nil || pad != nil {
		return err
	}
	const magic = "~Module signature appended~\n"
	what := fmt.Sprintf("%d bytes behind the ELF file are dropped", size-end)
	if size-end >= int64(len(magic)) {
		tail, err := s.ReadFile(size-int64(len(magic)), int64(len(magic)))
		if err != nil {
			return err
		}
		if string(tail) == magic {
			what = "the module's signature is dropped, because it no longer fits; sign the module again"
		}
	}
	r.warn(fmt.Errorf("%s: %s", s.Name, what))
	return nil
}

// printSites prints a line for each site that a plan converts.
func printSites(w io.Writer, p *patch.Plan) error {
	functions, err := p.Scan.Functions()
	if err != nil {
		return err
	}
	o := p.Scan.Object
	for i := range p.Sites {
		s := &p.Sites[i]
		site := &s.Change.Site
		place := functions.Place(s.Relocs.Target, site.Offset)
		if place == "" {
			place = "?"
		}
		message.Line(w, "%s: %s+%#x: %s: %s %s: % x -> % x", o.Name, o.Sections[s.Relocs.Target].Name, site.Offset,
			place, kindOf(s), s.Stub.ID, site.Code, s.Change.New)
	}
	return nil
}
