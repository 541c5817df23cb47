package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/manifest"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// conversion is the result of converting a source in memory. If err is set, the other fields hold what the steps
// before the error have found. The output copies from the source, which has to be open.
type conversion struct {
	entry    *manifest.Object // nil where no manifest is wanted
	object   *input.Object    // as the source has it, before restore; nil for another file
	output   *elfreloc.Output // nil where nothing changes
	warnings []error
	lines    bytes.Buffer // to print once the output is written
	err      error
}

// convertSource converts a source in memory, and reports on it as the options say.
func (c *Converter) convertSource(src *input.Source) *conversion {
	result := &conversion{}
	if c.Manifest {
		result.entry = manifest.New(src.Name)
	}
	result.err = c.convert(src, result)
	return result
}

// convert takes the steps of a conversion, up to one that fails.
func (c *Converter) convert(src *input.Source, result *conversion) (err error) {
	var plan *patch.Plan
	if result.object, err = c.open(src); err != nil || result.object == nil {
		return err
	}
	object, restored, err := c.restore(result.object)
	if err != nil {
		return err
	}
	if plan, err = c.plan(object); err != nil {
		return err
	}
	if result.entry != nil {
		if err := c.describe(result.entry, object, plan); err != nil {
			return err
		}
	}
	result.output, result.warnings, err = c.output(object, plan)
	switch {
	case err != nil:
		return err
	case restored != nil:
		result.output = restored.with(result.output)
	}
	if result.output == nil {
		return nil
	}
	return c.printLines(&result.lines, plan)
}

// restoredObject is the file of an object that was restored.
type restoredObject []byte

// restore takes back what tools have done to a converted object, and names what only the link knows (patch.Restore). If nothing is to be
// done, it returns the object itself and nil.
func (c *Converter) restore(o *input.Object) (*input.Object, restoredObject, error) {
	out, err := patch.Restore(o.Object, c.Patch)
	if err != nil || out == nil {
		return o, nil, err
	}
	var file bytes.Buffer
	if err := out.Write(&file, o.Source); err != nil {
		return nil, nil, err
	}
	made, err := elfreloc.Open(bytes.NewReader(file.Bytes()), out.Size, o.Name)
	return &input.Object{Object: made, Machine: o.Machine, Source: o.Source}, file.Bytes(), err
}

// with returns an output of the object, nil for the object as it is, as one that reads no input.
func (r restoredObject) with(out *elfreloc.Output) *elfreloc.Output {
	if out == nil {
		return &elfreloc.Output{Size: int64(len(r)), Extents: []elfreloc.Extent{{Data: r, Len: int64(len(r))}}}
	}
	for i := range out.Extents {
		if x := &out.Extents[i]; x.Data == nil {
			x.Data = r[x.Src : x.Src+x.Len]
		}
	}
	return out
}

// open makes an object of a source; nil if it is not one, and need not be converted.
func (c *Converter) open(src *input.Source) (*input.Object, error) {
	o, err := src.Relocatable(c.stubTexts)
	if errors.Is(err, input.ErrSkipped) {
		return nil, nil
	}
	var late *lto.Error
	if (c.Patch.LinkConverts || c.LinkGenerates) && errors.As(err, &late) {
		late.Link = ""
		if c.LinkGenerates {
			return nil, nil
		}
	}
	return o, err
}

// plan makes a plan of an object.
func (c *Converter) plan(o *input.Object) (*patch.Plan, error) {
	if err := patch.CheckMarks(o.Object); err != nil {
		return nil, err
	}
	scan := patch.NewScan(o.Object, o.Machine, c.Patch)
	named, err := scan.NamesStub()
	if err != nil {
		return nil, err
	}
	if named || scan.HasNotedSites() {
		if o.Source.Load(); o.Source.Size > manyBytes {
			parallel.ReserveHeap()
		}
	}
	return scan.Examine()
}

// manyBytes is the size of an object that is worth a parallel.ReserveHeap.
const manyBytes = 1 << 20

// describe puts the sites of an object, earlier ones too, into its entry.
func (c *Converter) describe(entry *manifest.Object, o *input.Object, plan *patch.Plan) error {
	var omitted map[*patch.Stub]string
	if plan.Scan.Settings.Notes {
		var err error
		if omitted, err = plan.OmittedArgs(); err != nil {
			return err
		}
	}
	if err := entry.Describe(plan.Scan, plan, omitted, []linkerset.Layout{plan.Scan.Settings.Layout}); err != nil {
		return err
	}
	// Faults of debug information do not matter for a conversion: inspect warns of them.
	entry.FindSources(o.Object, o.Machine)
	return nil
}

// output makes the output of a plan; nil where nothing changes. The refusals of the
// plan, if there are any, are the error.
func (c *Converter) output(o *input.Object, plan *patch.Plan) (out *elfreloc.Output, warnings []error, err error) {
	if err := errors.Join(plan.Errors()...); err != nil {
		return nil, nil, err
	}
	if c.Planned != nil {
		if err := c.Planned(o, plan); err != nil {
			return nil, nil, err
		}
	}
	if len(plan.Scan.Stubs) > 0 && c.Patch.Notes == patch.AutoNotes && c.Patch.MayHaveNotes() {
		switch plan.Scan.Settings.Target {
		case patch.LinuxKernel:
			c.kernel.Store(true)
		case patch.LinuxProgram:
			c.program.Store(true)
		}
	}
	out, err = plan.Output()
	return out, plan.Warnings, err
}

// printLines writes the lines about an object that changes.
func (c *Converter) printLines(w io.Writer, plan *patch.Plan) error {
	switch {
	case c.DryRun && len(plan.Sites) == 0:
		message.Line(w, "%s: functions of sites to record", plan.Scan.Object.Name)
	case c.DryRun:
		message.Line(w, "%s: %s to convert", plan.Scan.Object.Name, message.Plural(len(plan.Sites), "site"))
	}
	if !c.Verbose {
		return nil
	}
	if err := printSites(w, plan); err != nil || !plan.Scan.Settings.Notes {
		return err
	}
	return printOmittedArgs(w, plan)
}

// printOmittedArgs writes a line for each probe whose notes leave out arguments.
func printOmittedArgs(w io.Writer, p *patch.Plan) error {
	out, err := p.OmittedArgs()
	for _, s := range p.Scan.Stubs {
		if text := out[s]; text != "" {
			message.Line(w, "%s: %s: its notes leave out %s", p.Scan.Object.Name, s.ID, text)
		}
	}
	return err
}

// printSites writes a line for each site that a plan converts.
func printSites(w io.Writer, p *patch.Plan) error {
	functions, err := p.Scan.Functions()
	if err != nil {
		return err
	}
	o := p.Scan.Object
	for _, s := range p.Sites {
		site := &s.Change.Site
		place := functions.Place(s.Relocs.Target, site.Offset)
		if place == "" {
			place = "?"
		}
		line := fmt.Sprintf("%s: %s+%#x: %s: %s %s: % x", o.Name, o.Sections[s.Relocs.Target].Name, site.Offset,
			place, arch.Describe(s.Stub.Kind, site.Form), s.Stub.ID, site.Code)
		if site.Form != arch.Nop { // which stays as it is
			line += fmt.Sprintf(" -> % x", s.Change.New)
		}
		message.Line(w, "%s", line)
	}
	return nil
}
