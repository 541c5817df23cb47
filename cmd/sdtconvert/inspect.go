package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/manifest"
	"sdtconvert/internal/message"
	"sdtconvert/internal/sites"
)

// inspectCommand shows what is in objects.
var inspectCommand = &command{
	name: "inspect", synopsis: "inspect [flags] FILE...", brief: "show the probe sites of objects",
	usage: []string{"sdtconvert inspect [flags] FILE..."},
	text: `Shows each probe site of objects and of the members of archives: where it is, its
kind and state, its probe, its relocation, and its instructions before and after
conversion.`,
	groups: []group{{
		options: []*option{jsonOption, jobsOption},
		asConvert: []*option{
			prefixOption, enabledPrefixOption, symbolOption, returnThunkOption, layoutOption, sectionOption, probePrefixOption, followOption,
		},
	}},
	after: "Colour is used on a terminal unless NO_COLOR is set.",
	exit:  "0 success, 1 something was wrong with a file, or it holds a site that cannot be converted, 2 the command line is wrong.",
	new:   func() invocation { return &inspectFlags{} },
}

// inspectFlags are the flags of inspect.
type inspectFlags struct {
	conversionFlags
	json bool
	jobs int
}

func (f *inspectFlags) bindFlags(s *flagSet) {
	f.conversionFlags.bindFlags(s)
	f.jobs = defaultJobs()
	s.bind("json", &f.json)
	s.bind("jobs", &f.jobs)
}

// run shows what is in objects.
func (f *inspectFlags) run(p *program, _ []string) (bool, error) {
	if err := cmp.Or(f.validate(), checkJobs(f.jobs)); err != nil {
		return false, err
	}
	colour := isTerminal(p.Stdout) && p.Getenv("NO_COLOR") == ""
	return p.runAll(f.files, f.jobs, f.json, func(file string) *convert.Result {
		i := &inspector{inspectFlags: f, colour: colour}
		if err := i.each(file); err != nil {
			i.fail(i.begin(file), err)
		}
		return &i.Result
	})
}

// inspector shows one file.
type inspector struct {
	*inspectFlags
	convert.Result
	colour bool
}

// each shows an object, or all members of an archive.
func (i *inspector) each(path string) error {
	return input.Each(path, input.Options{FollowThin: i.follow, Unpack: true}, func(src *input.Source) error {
		object := i.begin(src.Name)
		if err := i.object(src, object); err != nil {
			i.fail(object, err)
		}
		return nil
	})
}

// begin begins what the manifest says of an object.
func (i *inspector) begin(name string) *manifest.Object {
	object := manifest.New(name)
	if i.json {
		i.Objects = append(i.Objects, object)
	}
	return object
}

func (i *inspector) fail(object *manifest.Object, err error) {
	i.Failed = true
	message.Error(&i.Messages, err)
	object.Status = manifest.Failed
	object.Errors = append(object.Errors, err.Error())
}

func (i *inspector) object(src *input.Source, object *manifest.Object) error {
	if src.IsLinked() {
		return fmt.Errorf("%s: is a linked program or library, and inspect reads objects: `sdtconvert list -v` shows its probes, `sdtconvert check` what is wrong with them", src.Name)
	}
	o, err := src.Relocatable(i.patch.StubTexts())
	if errors.Is(err, input.ErrSkipped) {
		i.printNone(src.Name)
		return nil
	}
	if err != nil {
		return err
	}
	found, err := manifest.Inspect(object, o, i.patch)
	if err != nil {
		return err
	}
	for _, err := range found.Refused {
		i.fail(object, err)
	}
	for _, err := range found.Warnings {
		message.Warning(&i.Messages, err)
	}
	if !i.json {
		i.print(found)
	}
	return nil
}

func (i *inspector) printNone(name string) { message.Line(&i.Lines, "%s: no probes", name) }

// print shows the sites of an object: a table of them, with the instructions
// and the record below each line.
func (i *inspector) print(found *manifest.Inspection) {
	if len(found.Sites) == 0 {
		i.printNone(found.File)
		return
	}
	message.Line(&i.Lines, "%s: %s, %s", found.File, found.MachineName(), message.Plural(len(found.Sites), "site"))
	widths := make([]int, len(tableHead))
	cells(tableHead).widen(widths)
	for k := range found.Sites {
		row(&found.Sites[k]).widen(widths)
	}
	i.Lines.WriteString(i.paint("1", cells(tableHead).line(widths)))
	for k := range found.Sites {
		site := &found.Sites[k]
		i.Lines.WriteString(i.paint(stateColour(site.State), row(site).line(widths)))
		i.printDetails(found, site)
	}
}

// tableHead is the head of the table of sites.
var tableHead = [...]string{"SITE", "FUNCTION", "KIND", "STATE", "PROBE", "RELOCATION"}

// cells is a line of that table. It is made twice, for its widths and to be printed: an
// object may have so many sites that all lines at once take more memory than the rest.
type cells [len(tableHead)]string

func row(site *manifest.Site) cells {
	return cells{message.Escape(fmt.Sprintf("%s+%#x", site.Section, site.Offset)), message.Escape(functionText(site)),
		site.Kind, site.State, message.Escape(site.Probe), message.Escape(message.OrDash(site.Relocation))}
}

// widen makes room in columns of the given widths, in runes, for these cells too.
func (c cells) widen(widths []int) {
	for i, text := range c {
		widths[i] = max(widths[i], utf8.RuneCountInString(text))
	}
}

// line returns the text of the line, without spaces at its end.
func (c cells) line(widths []int) string {
	var b strings.Builder
	for i, text := range c {
		fmt.Fprintf(&b, "  %-*s", widths[i], text)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// stateColour is the colour of a state, as SGR parameters (ECMA-48, 8.3.117).
func stateColour(state string) string {
	switch state {
	case sites.Unconverted:
		return "33"
	case sites.Disabled:
		return "32"
	}
	return "31"
}

func (i *inspector) paint(colour, line string) string {
	if !i.colour {
		return line
	}
	return "\x1b[" + colour + "m" + strings.TrimSuffix(line, "\n") + "\x1b[m\n"
}

func (i *inspector) printDetails(found *manifest.Inspection, site *manifest.Site) {
	detail := func(name, format string, args ...any) {
		message.Line(&i.Lines, "      %-7s "+format, append([]any{name}, args...)...)
	}
	code := func(name string, code manifest.Code) {
		if len(code) > 0 {
			text := strings.Join(found.Disassemble(code, site.Offset), "; ")
			detail(name, "%-24s %s", fmt.Sprintf("% x", []byte(code)), text)
		}
	}
	code("before", site.Old)
	code("after", site.New)
	if rec := site.Record; rec != nil {
		detail("record", "%s: %s, %s+%#x", rec.Section, message.OrDash(rec.Probe), site.Section, rec.Offset)
	}
	if n := site.Note; n != nil {
		detail("note", "%s, %s, semaphore %s", n.Provider, n.Name, message.OrDash(n.Semaphore))
	}
	if d := site.DOF; d != nil {
		detail("dtrace", "-G: %s, %s+%#x", message.OrDash(d.Alias), site.Section, d.Offset)
	}
	if site.Refused != "" {
		detail("refused", "%s", site.Refused)
	}
	if site.OmittedArgs != "" {
		detail("no note", "tells %s", site.OmittedArgs)
	}
	if site.Source != "" {
		detail("source", "%s", site.Source)
	}
}

// functionText returns the place of a site in its function.
func functionText(site *manifest.Site) string {
	if site.Function == "" {
		return "-"
	}
	return fmt.Sprintf("%s+%#x", site.Function, site.FunctionOffset)
}
