package tracers

import (
	"fmt"

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

// OmittedArgs returns which of a stub's arguments its notes leave out, "" for none. Only
// debug information has such: other types are those of integers and pointers.
func (p *Probes) OmittedArgs(s Stub) (string, error) {
	known, err := p.probe(s.ID)
	if err != nil || len(known.Args) > 0 {
		return "", err
	}
	declared, _ := p.prototypes() // the warning is the Writer's
	params := declared[s.Name]
	for i, param := range params {
		if param.Size != 0 {
			continue
		}
		text := fmt.Sprintf("argument %d, %s", i+1, param.Other)
		switch len(params) - i {
		case 1:
		case 2:
			text += ", and the one behind it"
		default:
			text += ", and those behind it"
		}
		return text, nil
	}
	return "", nil
}
