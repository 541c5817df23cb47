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
	"sdtconvert/internal/sitestate"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
	"sdtconvert/resolve"
)

// Describe lists the sites of an object: those of a plan that was made of the scan, or
// nil, those of records that the object holds already, in any of the layouts, and those of
// notes without records. The names of probe objects begin with prefix. omitted is what
// notes leave out, or would, or nil if not asked for (patch.Plan.OmittedArgs).
func (m *Object) Describe(scan *patch.Scan, plan *patch.Plan, omitted map[*patch.Stub]string, prefix string, layouts []linkerset.Layout) error {
	var found describer
	if scan.Machine != nil {
		im, err := scan.Image()
		if err != nil {
			return err
		}
		found = describer{scan: scan, im: im, states: sitestate.New(im, im, 0, scan.Names)}
	}
	entries, err := found.earlier(layouts)
	if err != nil {
		return err
	}
	if scan.Machine != nil {
		m.Machine = scan.Machine.Traits().Name
	}
	if plan != nil {
		m.plan(plan, omitted)
	}
	for _, find := range []func() ([]Site, error){
		func() ([]Site, error) { return found.recorded(prefix, entries) },
		func() ([]Site, error) { return found.withNotesOnly(m.Sites) },
		func() ([]Site, error) { return dofEdits(scan.Object, scan.Machine) },
	} {
		sites, err := find()
		if err != nil {
			return err
		}
		m.Sites = append(m.Sites, sites...)
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

// describer describes the sites that an object has without a conversion; none for a machine that is not known.
type describer struct {
	scan   *patch.Scan
	im     image.Image // nil for a machine that is not known
	states *sitestate.Reader
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
		text: s.Relocs.Target, Offset: s.Change.Site.Offset, Kind: arch.Describe(s.Stub.Kind, s.Change.Site.Form), State: Live,
		Probe: s.Stub.ID, Relocation: p.RelocName(s.Reloc.Type), Old: s.Change.Site.Code, New: s.Change.New,
	}
	if !p.Options.NoRecords && p.Scan.Machine != nil {
		m.Record = &Record{p.Options.Layout.Section(s.Stub.Kind), p.Options.ProbePrefix + s.Stub.ID, s.Change.RecordedOffset}
		m.HasNote = p.Options.Notes == patch.WithNotes && s.Stub.Kind == arch.Probe
	}
	return m
}

func refused(p *patch.Plan, r *patch.Refusal) Site {
	return Site{
		text: r.Relocs.Target, Offset: r.Reloc.Offset, Kind: arch.Describe(r.Stub.Kind, arch.Call), State: Refused,
		Probe: r.Stub.ID, Relocation: p.RelocName(r.Reloc.Type), Refused: r.Err.Error(),
	}
}

// earlier reads the records of an earlier conversion.
func (d *describer) earlier(layouts []linkerset.Layout) (records []linkerset.Entry, err error) {
	for _, l := range layouts {
		if d.im == nil {
			break
		}
		entries, faults, err := l.Read(d.im)
		if err != nil {
			return nil, err
		}
		if len(faults) > 0 {
			return nil, faults[0]
		}
		records = append(records, entries...)
	}
	linkerset.Sort(records)
	return records, nil
}

// recorded describes the sites of records that an object holds already.
func (d *describer) recorded(prefix string, entries []linkerset.Entry) ([]Site, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	anchored, err := linkerset.AnchoredSections(d.scan.Object, d.scan.Machine)
	if err != nil {
		return nil, err
	}
	probes, sites := linkerset.NewProbes(d.im, prefix), make([]Site, len(entries))
	for i := range entries {
		e := &entries[i]
		if sites[i], err = d.disabled(probes, e); err != nil {
			return nil, err
		}
		if anchored[e.Record.Section] {
			sites[i].Relocation = d.scan.Machine.RelocName(d.scan.Machine.Traits().None)
		}
	}
	return sites, nil
}

// disabled describes the site of a record.
func (d *describer) disabled(probes *linkerset.Probes, e *linkerset.Entry) (Site, error) {
	symbol, err := probes.Symbol(e.Probe)
	if err != nil {
		return Site{}, err
	}
	probe, err := probes.Lookup(e.Probe)
	if err != nil {
		return Site{}, err
	}
	m := Site{
		text: e.Site.Section, Offset: e.Site.Offset, Kind: arch.Describe(e.Kind, arch.Call), State: Unknown, Probe: probe.ID,
		Record: &Record{d.scan.Object.Sections[e.Record.Section].Name, symbol, e.Site.Offset},
	}
	site, ok := d.scan.Machine.Disabled(sitestate.CodeAround(d.im, e.Site), e.Site.Offset, e.Kind)
	if !ok {
		return m, nil
	}
	m.Offset = site.Offset
	m.Kind, m.New = arch.Describe(e.Kind, site.Form), bytes.Clone(site.Code)
	err = m.setState(d.states.StateOf(e))
	return m, err
}

// setState sets the state of a site that has no stub any more.
func (m *Site) setState(found sitestate.Site, err error) error {
	if found.State == sitestate.Disabled {
		m.State = Disabled
	}
	return err
}

// dofEdits lists the sites that `dtrace -G` has disabled in an object.
func dofEdits(o *elfreloc.Object, m arch.Machine) ([]Site, error) {
	edits, _, err := patch.DOFEdits(o)
	sites := make([]Site, len(edits))
	for i := range edits {
		e := &edits[i]
		sites[i] = Site{
			text: e.Section, Offset: e.Site.Offset, Kind: arch.Describe(e.Stub.Kind, e.Site.Form), State: Disabled,
			Probe: e.Stub.ID, Relocation: m.RelocName(m.Traits().None), New: e.Site.Code, DOF: &DOF{e.Alias, e.Record},
		}
	}
	return sites, err
}

// withNotesOnly describes the sites that have notes and no records, as the headers of provider files make
// them. It sets HasNote of the recordedSites that have a note.
// Notes that cannot be read name none; check finds them.
func (d *describer) withNotesOnly(recordedSites []Site) ([]Site, error) {
	isNotes := func(s elfreloc.Section) bool { return s.Name == notes.StapsdtSection }
	if d.im == nil || !slices.ContainsFunc(d.scan.Object.Sections, isNotes) {
		return nil, nil
	}
	notes, _, err := notes.Read(d.scan.Object, d.im)
	if err != nil {
		return nil, nil
	}
	siteAt := make(map[image.Addr]*Site, len(recordedSites))
	for i := range recordedSites {
		siteAt[recordedSites[i].recorded()] = &recordedSites[i]
	}
	var sites []Site
	for i := range notes {
		n := &notes[i]
		if n.Site.Undefined || !d.im.Executable(n.Site.Addr) {
			continue
		}
		if site := siteAt[n.Site.Addr]; site != nil {
			site.HasNote = site.HasNote || site.Record != nil
			continue
		}
		siteAt[n.Site.Addr] = &Site{} // for other notes of it
		site, err := d.ofNote(n)
		if err != nil {
			return nil, err
		}
		sites = append(sites, site)
	}
	return sites, nil
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

// ofNote describes the site of a note.
func (d *describer) ofNote(n *notes.Note) (m Site, err error) {
	m = Site{
		text: n.Site.Section, Offset: n.Site.Offset, Kind: arch.Describe(arch.Probe, arch.Call), State: Unknown,
		Probe: n.ID(), Note: &Note{Provider: n.Provider, Name: n.Name},
	}
	if !n.Semaphore.Null() {
		if m.Note.Semaphore, err = notes.SemaphoreNameAt(d.im, n.Semaphore); err != nil {
			return m, err
		}
	}
	err = m.setState(d.states.StateOfNote(n.Site.Addr))
	return m, err
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
	opts = opts.ForObject(o.Object)
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
	if err := m.Describe(scan, plan, omitted, opts.ProbePrefix, opts.Layout.Candidates()); err != nil {
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
	mentioned, err := o.NamesContain(opts.Names.StubTexts())
	if err != nil {
		return nil, nil, err
	}
	if !mentioned {
		return &patch.Scan{Object: o.Object, Machine: o.Machine}, nil, nil
	}
	scan, err := patch.Find(o.Object, o.Machine, opts.Names)
	if err != nil {
		return nil, nil, err
	}
	if o.Machine == nil {
		return scan, patch.UnsupportedPlan(scan), nil
	}
	plan, err := patch.NewPlan(scan, opts)
	return scan, plan, err
}

// FindSources adds file and line to each site of an object, where there is debug
// information, and returns what is wrong with that.
func (m *Object) FindSources(o *elfreloc.Object, machine arch.Machine) (faults []error) {
	if machine == nil || len(m.Sites) == 0 {
		return nil
	}
	table, err := debuginfo.NewLines(o, machine)
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
