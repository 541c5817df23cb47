package tracers

import (
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/linkerset"
)

// Probes are what is known of the probes of an object's stubs and guards.
type Probes struct {
	object   *Object
	options  *Options
	defined  *linkerset.Probes            // what probe objects say that this object defines
	declared map[string][]lines.Parameter // of stubs, by debug information; nil until it is asked
	fault    error                        // of debug information
}

// NewProbes keeps the object and the options.
func NewProbes(o *Object, opts *Options) *Probes {
	return &Probes{object: o, options: opts, defined: linkerset.NewProbes(o.Image, opts.ProbePrefix)}
}

// probe returns what is known of a probe: by this object, else by other files, else by its
// ID.
func (p *Probes) probe(id string) (linkerset.Probe, error) {
	if ref, ok := p.object.ProbeObjects.Definition(p.options.ProbePrefix + id); ok {
		return p.defined.Lookup(ref)
	}
	if p.options.ProbeSource != nil {
		if probe, ok, err := p.options.ProbeSource.Probe(id); err != nil {
			return linkerset.Probe{}, &elfreloc.Error{File: p.object.Name, Err: err}
		} else if ok {
			return probe, nil
		}
	}
	return linkerset.ProbeFromID(id), nil
}

// prototypes returns the parameters of stubs that debug information declares, by the
// stub's name. With a fault they are those that were read before it.
func (p *Probes) prototypes() (declared map[string][]lines.Parameter, fault error) {
	if p.declared != nil {
		return p.declared, p.fault
	}
	names := map[string]bool{}
	for i := range p.object.Stubs {
		names[p.object.Stubs[i].Name] = true
	}
	var table *lines.Table
	if table, p.fault = lines.New(p.object.Object, p.object.Machine); p.fault == nil {
		p.declared, p.fault = table.Prototypes(func(name string) bool { return names[name] })
	}
	if p.declared == nil {
		p.declared = map[string][]lines.Parameter{}
	}
	return p.declared, p.fault
}

// OmittedArgs returns which of a stub's arguments its notes leave out, "" for none: the first whose
// place no note can describe, and those behind it.
func (p *Probes) OmittedArgs(s Stub) (string, error) {
	known, err := p.probe(s.ID)
	if err != nil || len(known.Args) > 0 { // each is a word
		return "", err
	}
	sizes, others := p.declaredSizes(s)
	i := len(p.object.Machine.Traits().Operands(arch.Call, p.object.ABI().Data, sizes))
	if i == len(sizes) {
		return "", nil
	}
	what := others[i]
	if sizes[i] != 0 {
		what = fmt.Sprintf("an integer of %d bytes, in two registers", sizes[i])
	}
	text := fmt.Sprintf("argument %d, %s", i+1, what)
	switch len(sizes) - i {
	case 1:
	case 2:
		text += ", and the one behind it"
	default:
		text += ", and those behind it"
	}
	return text, nil
}

// declaredSizes returns the sizes of a stub's parameters in bytes, and of those with size 0 what they
// are, as debug information or the user's prototypes declare them.
func (p *Probes) declaredSizes(s Stub) (sizes []int, others []string) {
	declarations, _ := p.prototypes() // the warning is the Writer's
	if params, ok := declarations[s.Name]; ok {
		for _, param := range params {
			sizes, others = append(sizes, param.Size), append(others, param.Other)
		}
		return sizes, others
	}
	types, _ := declared(p.options.Prototypes, s, p.object.Machine)
	for _, t := range types {
		sizes, others = append(sizes, t.Size), append(others, "")
	}
	return sizes, others
}
