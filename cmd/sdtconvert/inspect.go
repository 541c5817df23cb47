package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"sdtconvert/arch"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/patch"
)

// inspect is the command that shows what is in objects.
func (p *program) inspect(args []string) (bool, error) {
	s, err := newFlags("inspect").parse(args)
	if err != nil {
		return false, err
	}
	i := &inspector{s, isTerminal(p.Stdout) && p.Getenv("NO_COLOR") == ""}
	return p.runAll(s, i.file)
}

type inspector struct {
	*settings
	colour bool
}

func (i *inspector) file(name string) *result {
	r := newResult(name, i.json)
	if err := i.try(name, r); err != nil {
		r.fail(err)
	}
	return r
}

func (i *inspector) try(name string, r *result) error {
	in, err := input.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	src := in.Source()
	if is, err := src.IsArchive(); err != nil {
		return err
	} else if !is {
		return i.object(src, r)
	}
	r.isArchive()
	defer r.endMembers()
	return in.Each(input.Options{FollowThin: i.follow}, func(src *input.Source) error {
		r.begin(src.Name)
		if err := i.object(src, r); err != nil {
			r.fail(err)
		}
		return nil
	})
}

func (i *inspector) object(src *input.Source, r *result) error {
	s, err := src.Relocatable(i.patch.Names)
	if errors.Is(err, input.ErrPassedOver) {
		message.Line(&r.stdout, "%s: no probes", src.Name)
		return nil
	}
	if err != nil {
		return err
	}
	if r.object == nil { // it is only to be printed
		r.object = newManifestObject(src.Name)
	}
	plan, err := i.plan(s)
	if err != nil {
		return err
	}
	entries, err := earlier(s, recordLayouts(i.patch.Layout))
	if err != nil {
		return err
	}
	if err := r.object.describe(s, plan, i.patch.ProbePrefix, entries); err != nil {
		return err
	}
	if plan != nil {
		for _, err := range plan.Err() {
			r.fail(err)
		}
	}
	r.object.findSources(s, r)
	i.print(s, r)
	return nil
}

// plan finds what convert would do, were there no earlier records.
func (i *inspector) plan(s *input.Object) (*patch.Plan, error) {
	mentioned, err := s.MentionsStub(i.patch.Names)
	if err != nil || !mentioned {
		return nil, err
	}
	scan, err := patch.Find(s.Object, s.Machine, i.patch.Names)
	if err != nil {
		return nil, err
	}
	if s.Machine == nil {
		return patch.Undecided(scan), nil
	}
	return patch.NewPlan(scan, i.patch)
}

// findSources adds file and line to each site, where there is debug
// information. That it makes no sense is only worth a warning.
func (m *manifestObject) findSources(s *input.Object, r *result) {
	if s.Machine == nil || len(m.Sites) == 0 {
		return
	}
	table, err := lines.New(s.Object, s.Machine)
	if err != nil {
		r.warn(err)
	}
	for i := range m.Sites {
		m.Sites[i].Source = table.Lookup(m.Sites[i].text, m.Sites[i].Offset)
	}
	if err := table.Err(); err != nil {
		r.warn(err)
	}
}

// print shows the sites of an object: a table of them, with the instructions
// and the record below each line.
func (i *inspector) print(s *input.Object, r *result) {
	sites := r.object.Sites
	if len(sites) == 0 {
		message.Line(&r.stdout, "%s: no probes", s.Name)
		return
	}
	machine := r.object.Machine
	if machine == "" {
		machine = s.Object.Machine.String() + ", not supported"
	}
	message.Line(&r.stdout, "%s: %s, %d sites", s.Name, machine, len(sites))
	var table strings.Builder
	tw := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "  SITE\tFUNCTION\tKIND\tSTATE\tPROBE\tRELOCATION\n")
	for k := range sites {
		site := &sites[k]
		fmt.Fprintf(tw, "  %s+%#x\t%s\t%s\t%s\t%s\t%s\n", message.OneLine(site.Section), site.Offset, message.OneLine(site.place()), site.Kind, site.State, message.OneLine(site.Probe), message.OrDash(site.Relocation))
	}
	tw.Flush()
	rows := strings.SplitAfter(table.String(), "\n")
	r.stdout.WriteString(i.paint("1", rows[0]))
	for k := range sites {
		r.stdout.WriteString(i.paint(stateColour[sites[k].State], rows[k+1]))
		i.printDetails(s, &sites[k], r)
	}
}

// stateColour holds SGR parameters (ECMA-48, 8.3.117).
var stateColour = map[string]string{stateLive: "33", stateDisabled: "32", stateRefused: "31", stateUnknown: "31"}

func (i *inspector) paint(colour, line string) string {
	if !i.colour {
		return line
	}
	return "\x1b[" + colour + "m" + strings.TrimSuffix(line, "\n") + "\x1b[m\n"
}

func (i *inspector) printDetails(s *input.Object, site *manifestSite, r *result) {
	detail := func(name, format string, args ...any) {
		message.Line(&r.stdout, "      %-7s "+format, append([]any{name}, args...)...)
	}
	if len(site.old) > 0 {
		detail("before", "%s", showCode(s.Machine, site.old, site.Offset))
	}
	if len(site.new) > 0 {
		detail("after", "%s", showCode(s.Machine, site.new, site.Offset))
	}
	if rec := site.Record; rec != nil {
		detail("record", "%s: %s, %s+%#x", rec.Section, message.OrDash(rec.Probe), site.Section, rec.Offset)
	}
	if site.Refused != "" {
		detail("refused", "%s", site.Refused)
	}
	if site.Source != "" {
		detail("source", "%s", site.Source)
	}
}

func showCode(m arch.Machine, code []byte, pc uint64) string {
	return fmt.Sprintf("%-24s %s", fmt.Sprintf("% x", code), strings.Join(m.Disassemble(code, pc), "; "))
}

func (m *manifestSite) place() string {
	if m.Function == "" {
		return "-"
	}
	return fmt.Sprintf("%s+%#x", m.Function, m.FunctionOffset)
}
