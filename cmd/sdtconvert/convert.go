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
	"sdtconvert/internal/replace"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// convert is the command that rewrites objects.
func convert(args []string, stdout, stderr io.Writer) (bool, error) {
	s, err := convertFlags().parse(args)
	if err != nil {
		return false, err
	}
	if err := checkOutputs(s); err != nil {
		return false, err
	}
	c := &converter{settings: s}
	return runAll(s, stdout, stderr, c.file)
}

// checkOutputs makes sure that no two files have one output.
func checkOutputs(s *settings) error {
	if s.outputDir == "" {
		return nil
	}
	from := make(map[string]string)
	files, err := distinct(s.files)
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

func (c *converter) elsewhere() bool { return c.output != "" || c.outputDir != "" }

// smallFile is the length, in bytes, of a file of which reading all costs no more
// than reading its headers and names one by one. A larger one is read whole if it
// will probably be wanted whole, because the last one was.
const smallFile = 16 << 10

// attempts is how often a file is tried that somebody changes under way: it may
// be another sdtconvert, which leaves nothing to do.
const attempts = 3

func (c *converter) file(name string) *result {
	for i := 1; ; i++ {
		r := &result{}
		if c.json {
			r.object = newManifestObject(name)
		}
		err := c.try(name, r)
		if i < attempts && errors.Is(err, replace.ErrChanged) {
			continue
		}
		if err != nil {
			r.fail(err)
		}
		return r
	}
}

// try converts one file once.
func (c *converter) try(name string, r *result) error {
	in, err := replace.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.Info.Size() > largeFile {
		collectLess()
	}
	if in.Info.Size() <= smallFile || c.mentioned.Load() {
		if err := in.Load(); err != nil {
			return err
		}
	}
	s, err := openSubject(in, c.patch.Names)
	if errors.Is(err, errPassedOver) {
		return c.copy(in)
	}
	if err != nil {
		return err
	}
	mentioned, err := mentionsStub(s, c.patch.Names)
	if err != nil {
		return err
	}
	c.mentioned.Store(mentioned)
	var plan *patch.Plan
	var draft *replace.Draft
	if mentioned {
		draft = c.begin(s)
		defer draft.Discard()
		plan, err = examine(s, c.patch)
	} else {
		_, err = c.patch.CheckEarlier(s.Object, s.machine)
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
		return c.copy(in)
	}
	if errs := plan.Err(); len(errs) > 0 {
		for _, err := range errs {
			r.fail(err)
		}
		return nil
	}
	return c.write(s, plan, draft, r)
}

// begin starts to write the output of a large object that will probably change.
func (c *converter) begin(s *subject) *replace.Draft {
	if c.dryRun || s.in.Info.Size() <= largeFile {
		return nil
	}
	watchSignals()
	return replace.Begin(c.target(s.in.Path), s.in, s.Lasting())
}

// describe puts the sites of an object, earlier ones too, into the manifest.
func (c *converter) describe(s *subject, plan *patch.Plan, object *manifestObject) error {
	entries, err := earlier(s, []linkerset.Layout{c.patch.Layout})
	if err != nil {
		return err
	}
	return object.describe(s, plan, c.patch.ProbePrefix, entries)
}

// write applies a plan that has no refusals.
func (c *converter) write(s *subject, plan *patch.Plan, draft *replace.Draft, r *result) error {
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
		return c.copy(s.in)
	}
	out, err := e.Save()
	if err != nil {
		return err
	}
	if err := warnTrailing(s, r); err != nil {
		return err
	}
	var lines bytes.Buffer
	if c.dryRun {
		fmt.Fprintf(&lines, "%s: %d sites to convert\n", s.Name, len(plan.Sites))
	}
	if c.verbose {
		if err := printSites(&lines, plan); err != nil {
			return err
		}
	}
	if !c.dryRun {
		if err := c.put(s.in, out, draft); err != nil {
			return err
		}
	}
	r.stdout.Write(lines.Bytes())
	if r.object != nil {
		r.object.Status = statusConverted
	}
	return nil
}

// copy makes the output of a file that does not change. In place there is
// nothing to do.
func (c *converter) copy(in *replace.Input) error {
	if !c.elsewhere() || c.dryRun {
		return nil
	}
	size := in.Info.Size()
	same := &elfreloc.Output{Size: size, Extents: []elfreloc.Extent{{Len: size}}}
	return c.put(in, same, nil)
}

// put writes what has come of a file.
func (c *converter) put(in *replace.Input, out *elfreloc.Output, draft *replace.Draft) error {
	watchSignals()
	return replace.File(c.target(in.Path), in, out, draft, c.jobs)
}

// warnTrailing tells that what stands behind the ELF file proper is lost.
func warnTrailing(s *subject, r *result) error {
	size, end := s.in.Info.Size(), s.End()
	if size <= end {
		return nil
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
		fmt.Fprintf(w, "%s: %s+%#x: %s: %s %s: % x -> % x\n", o.Name, o.Sections[s.Relocs.Target].Name, site.Offset,
			place, kindOf(s), s.Stub.ID, site.Code, s.Change.New)
	}
	return nil
}
