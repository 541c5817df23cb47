package manifest

import (
	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/input"
	"sdtconvert/patch"
)

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
	table, err := lines.New(o, machine)
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
