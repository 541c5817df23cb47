package manifest

import (
	"bytes"
	"cmp"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/input"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
	"sdtconvert/resolve"
)

// Describe lists the sites of an object: those of a plan that was made of the scan, or
// nil, and those that an earlier conversion, the headers of provider files or `dtrace -G` have left.
// omitted is what notes leave out, or would, or nil if not asked for (patch.Plan.OmittedArgs).
func (m *Object) Describe(scan *patch.Scan, plan *patch.Plan, omitted map[*patch.Stub]string, layouts []linkerset.Layout) error {
	if plan != nil {
		m.plan(plan, omitted)
	}
	if scan.Machine != nil {
		m.Machine = scan.Machine.Traits().Name
		if err := m.existing(scan, layouts); err != nil {
			return err
		}
	}
	if len(m.Sites) == 0 {
		return nil
	}
	functions, err := scan.Functions()
	if err != nil {
		return err
	}
	slices.SortStableFunc(m.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.Offset, b.Offset))
	})
	for i := range m.Sites {
		m.Sites[i].Section = scan.Object.Sections[m.Sites[i].text].Name
		m.Sites[i].findFunction(functions)
	}
	return nil
}

// existing adds the sites that call no stub any more. Notes that cannot be read name none; check finds them.
func (m *Object) existing(scan *patch.Scan, layouts []linkerset.Layout) error {
	im, err := scan.Image()
	if err != nil {
		return err
	}
	opts := sites.Conventions{Names: scan.Settings.Names, ProbePrefix: scan.Settings.ProbePrefix, Layouts: layouts}
	space := sites.New(scan.Object, im, im, 0, opts)
	if err := space.Read(); err != nil {
		return err
	}
	if len(space.Faults.Records) > 0 {
		return space.Faults.Records[0]
	}
	if len(space.Sites) == 0 {
		return nil
	}
	planned := make(map[image.Addr]*Site, len(m.Sites))
	for i := range m.Sites {
		planned[m.Sites[i].recorded()] = &m.Sites[i]
	}
	var anchored map[int]bool
	if len(space.RecordLayouts) > 0 {
		if anchored, err = linkerset.AnchoredSections(scan.Object, scan.Machine); err != nil {
			return err
		}
	}
	found := make([]Site, 0, len(space.Sites))
	for i := range space.Sites {
		e := &space.Sites[i]
		if site := planned[e.Address]; site != nil && e.Source == sites.FromNote {
			site.HasNote = site.HasNote || site.Record != nil
			continue
		}
		site, err := disabled(space, e)
		if err != nil {
			return err
		}
		if e.Source == sites.FromEdit || e.Source == sites.FromRecord && anchored[e.Record.Section] {
			site.Relocation = scan.Machine.RelocName(scan.Machine.Traits().None)
		}
		found = append(found, site)
	}
	m.Sites = append(m.Sites, found...)
	return nil
}

// plan lists the sites of a plan.
func (m *Object) plan(plan *patch.Plan, omitted map[*patch.Stub]string) {
	for _, s := range plan.Sites {
		site := planned(plan, &s)
		site.OmittedArgs = omitted[s.Stub]
		m.Sites = append(m.Sites, site)
	}
	for i := range plan.Refused {
		m.Sites = append(m.Sites, refused(plan, &plan.Refused[i]))
	}
}

func (m *Site) findFunction(functions *resolve.Table) {
	f, ok := functions.Lookup(m.text, m.Offset)
	if !ok {
		return
	}
	m.Function, m.FunctionOffset, m.FunctionSize = f.Name, m.Offset-f.Start, f.Size
	m.SourceFile = functions.SourceFile(f)
	if f.Raw != f.Name {
		m.Symbol = f.Raw
	}
}

func planned(p *patch.Plan, s *patch.Site) Site {
	m := Site{
		text: s.Relocs.Target, Offset: s.Change.Site.Offset, Kind: arch.ListedKind(s.Stub.Kind, s.Change.Site.Form), State: sites.Unconverted,
		Probe: s.Stub.ID, Relocation: p.RelocName(s.Reloc.Type), Old: s.Change.Site.Code, New: s.Change.New,
	}
	if !p.Scan.Settings.NoRecords && p.Scan.Machine != nil {
		m.Record = &Record{p.Scan.Settings.Layout.Section(s.Stub.Kind), p.Scan.Settings.ProbePrefix + s.Stub.ID, s.Change.RecordedOffset}
		m.HasNote = p.Scan.Settings.Notes && s.Stub.Kind == arch.Probe
	}
	return m
}

func refused(p *patch.Plan, r *patch.Refusal) Site {
	return Site{
		text: r.Relocs.Target, Offset: r.Reloc.Offset, Kind: arch.ListedKind(r.Stub.Kind, arch.Call), State: sites.Refused,
		Probe: r.Stub.ID, Relocation: p.RelocName(r.Reloc.Type), Refused: r.Err.Error(),
	}
}

// disabled describes a site that calls no stub any more.
func disabled(space *sites.Space, e *sites.Site) (m Site, err error) {
	code, err := space.Content(e)
	if err != nil {
		return m, err
	}
	probe, err := space.Probe(e)
	m = Site{text: e.Address.Section, Offset: e.Address.Offset, Kind: code.Kind, State: code.State, Probe: probe.ID}
	if err != nil {
		return m, err
	}
	switch e.Source {
	case sites.FromNote:
		m.Probe, m.Note = e.Note.ID(), &Note{Provider: e.Note.Provider, Name: e.Note.Name}
		if !e.Note.Semaphore.Null() {
			m.Note.Semaphore, err = notes.SemaphoreNameAt(space.File, e.Note.Semaphore)
		}
		return m, err
	case sites.FromRecord:
		m.HasNote, m.Record = e.Note != nil, &Record{Section: space.Object.Sections[e.Record.Section].Name, Offset: e.Address.Offset}
		m.Record.Probe, err = space.Probes.Symbol(e.Entry.Probe)
	case sites.FromEdit:
		m.DOF = &DOF{e.Edit.Alias, e.Address.Offset}
	}
	if code.Form.Code != nil {
		m.Offset, m.New = code.Form.Offset, bytes.Clone(code.Form.Code)
	}
	return m, err
}

// recorded returns the place of the instruction that the record of a site names, or will
// name.
func (m *Site) recorded() image.Addr {
	at := image.Addr{Section: m.text, Offset: m.Offset}
	if m.Record != nil {
		at.Offset = m.Record.Offset
	}
	return at
}

// Inspection is what there is to show of an object.
type Inspection struct {
	*Object
	Refused  []error // what keeps the object from being converted
	Warnings []error // what is wrong with its debug information

	machine arch.Machine // nil for one that is not known
	name    string       // of the machine then
}

// Inspect adds to m what an object holds, earlier records or none: what a conversion
// would do to it, what another one has done, and where in the source that is. m holds
// what was found when there is an error.
func Inspect(m *Object, o *input.Object, opts patch.Options) (*Inspection, error) {
	i := &Inspection{Object: m, machine: o.Machine, name: o.Object.Machine.String()}
	scan, plan, err := wouldBe(o, opts)
	if err != nil {
		return nil, err
	}
	var omitted map[*patch.Stub]string
	if plan != nil {
		if omitted, err = plan.OmittedArgs(); err != nil {
			return nil, err
		}
	}
	if err := m.Describe(scan, plan, omitted, scan.Settings.Layout.Candidates()); err != nil {
		return nil, err
	}
	if plan != nil {
		i.Refused = plan.Errors()
	}
	i.Warnings = m.FindSources(scan.Object, scan.Machine)
	return i, nil
}

// wouldBe finds what a conversion would do, were there no earlier records. The plan is
// nil where no stub is mentioned.
func wouldBe(o *input.Object, opts patch.Options) (*patch.Scan, *patch.Plan, error) {
	scan, err := patch.Find(o.Object, o.Machine, opts)
	if err != nil {
		return nil, nil, err
	}
	if o.Machine == nil {
		return scan, unsupportedPlan(scan), nil
	}
	plan, err := patch.NewPlan(scan)
	return scan, plan, err
}

// unsupportedPlan makes a plan that shows what a scan has found in an object of a machine that is not known: where the stubs
// are referred to, and no more.
func unsupportedPlan(s *patch.Scan) *patch.Plan {
	p := &patch.Plan{Scan: s}
	for i := range s.Calls {
		offset := s.Calls[i].Reloc.Offset
		p.Sites = append(p.Sites, patch.Site{
			Reference: &s.Calls[i], Change: arch.Change{Site: arch.Site{Offset: offset}, RecordedOffset: offset},
		})
	}
	return p
}

// FindSources adds file and line to each site of an object, where there is debug
// information, and returns what is wrong with that.
func (m *Object) FindSources(o *elfreloc.Object, machine arch.Machine) (faults []error) {
	if machine == nil || len(m.Sites) == 0 {
		return nil
	}
	table, err := debuginfo.New(o, machine)
	if err != nil {
		faults = append(faults, err)
	}
	for i := range m.Sites {
		m.Sites[i].Source = table.Lookup(m.Sites[i].text, m.Sites[i].Offset)
	}
	if err := table.Err(); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// MachineName returns the name of the machine, known or not.
func (i *Inspection) MachineName() string {
	if i.machine == nil {
		return i.name + ", not supported"
	}
	return i.machine.Traits().Name
}

// Disassemble gives the text of the instructions at an offset of a site's section.
func (i *Inspection) Disassemble(code Code, offset uint64) []string {
	return i.machine.Disassemble(code, offset)
}
