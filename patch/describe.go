package patch

import (
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
)

// ProbeSource says what other files of a link define: an object that uses a probe
// need not define it. Several goroutines ask at once.
type ProbeSource interface {
	// Probe is what the definition of a probe object says, by the probe's ID, and
	// whether there is one. An error says why it is not known which counts. The probe
	// is shared between all calls, and not to be modified.
	Probe(id string) (probe linkerset.Probe, ok bool, err error)
}

// probeDescriber describes the probes of an object's stubs and guards.
type probeDescriber struct {
	plan     *Plan
	objects  *ProbeObjects
	defined  *linkerset.Probes                  // what probe objects say that this object defines
	declared map[string][][]debuginfo.Parameter // of stubs, by debug information; nil until it is asked
	fault    error                              // of debug information
}

// probeDescriber returns the describer of the object's probes. It is made once for a plan:
// semaphores, notes and OmittedArgs need it. The machine must not be nil.
func (p *Plan) probeDescriber() (*probeDescriber, error) {
	if p.describer != nil {
		return p.describer, nil
	}
	im, err := p.Scan.Image()
	if err != nil {
		return nil, err
	}
	objects, err := p.probeObjects()
	if err != nil {
		return nil, err
	}
	p.describer = &probeDescriber{plan: p, objects: objects, defined: linkerset.NewProbes(im, p.Scan.Settings.ProbePrefix)}
	return p.describer, nil
}

// probe returns what is known of a probe: by this object, else by other files, else by its
// ID.
func (d *probeDescriber) probe(id string) (linkerset.Probe, error) {
	if ref, ok := d.objects.defined[d.plan.Scan.Settings.ProbePrefix+id]; ok {
		return d.defined.Lookup(ref)
	}
	if d.plan.Scan.Settings.ProbeSource != nil {
		if probe, ok, err := d.plan.Scan.Settings.ProbeSource.Probe(id); err != nil {
			return linkerset.Probe{}, &elfreloc.Error{File: d.plan.Scan.Object.Name, Err: err}
		} else if ok {
			return probe, nil
		}
	}
	return linkerset.ProbeFromID(id), nil
}

// prototypes returns the parameters of stubs that debug information declares, by the
// stub's name. With a fault they are those that were read before it.
func (d *probeDescriber) prototypes() (declared map[string][][]debuginfo.Parameter, fault error) {
	if d.declared != nil {
		return d.declared, d.fault
	}
	names := map[string]bool{}
	for _, stub := range d.plan.Scan.Stubs {
		names[stub.Name] = true
	}
	var table *debuginfo.Data
	if table, d.fault = debuginfo.New(d.plan.Scan.Object, d.plan.Scan.Machine); d.fault == nil {
		d.declared, d.fault = table.Prototypes(func(name string) bool { return names[name] }, len(names))
	}
	if d.declared == nil {
		d.declared = map[string][][]debuginfo.Parameter{}
	}
	return d.declared, d.fault
}

// arguments finds the types of the arguments of a stub's probe: what the program says of it, else
// the declaration of the stub as the compiler has seen it. unsizedTypes names
// the declared types of size 0. If nothing declares the arguments, any register may hold one: then
// they are not complete.
func (d *probeDescriber) arguments(s *Stub, probe linkerset.Probe) (types []notes.ArgType, unsizedTypes []string, complete bool) {
	m := d.plan.Scan.Machine
	if len(probe.Args) > 0 {
		for i, a := range probe.Args {
			if a.Index != i {
				return types, nil, false // one is missing, or there twice
			}
			types = append(types, notes.ArgumentType(a.Native, m))
		}
		return types, nil, true
	}
	declared, _ := d.prototypes() // its fault is a warning of the notes
	if prototypes, ok := declared[s.Name]; ok {
		for _, p := range prototypes[0] { // units may disagree
			types, unsizedTypes = append(types, notes.ArgType{Size: p.Size, Signed: p.Signed}), append(unsizedTypes, p.Other)
		}
		return types, unsizedTypes, true
	}
	return notes.WordTypes(m), nil, false
}

// omittedArgs returns which of a stub's arguments its notes leave out, "" for none: the first whose
// place no note can describe, and those behind it.
func (d *probeDescriber) omittedArgs(s *Stub) (string, error) {
	probe, err := d.probe(s.ID)
	if err != nil || len(probe.Args) > 0 { // each is a word
		return "", err
	}
	types, unsizedTypes, complete := d.arguments(s, probe)
	if !complete {
		return "", nil
	}
	sizes := make([]int, len(types))
	for i, t := range types {
		sizes[i] = t.Size
	}
	i := len(d.plan.Scan.Machine.Traits().Operands(arch.Call, d.plan.Scan.Object.ABI().Data, sizes))
	if i == len(sizes) {
		return "", nil
	}
	what := unsizedTypes[i]
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

// OmittedArgs returns which arguments of each stub's probe its notes leave out, as a part
// of a sentence: "argument 2, a floating-point number, and those behind it". What notes
// tell in full is not there.
func (p *Plan) OmittedArgs() (map[*Stub]string, error) {
	out := map[*Stub]string{}
	if len(p.Sites) == 0 || p.Scan.Machine == nil {
		return out, nil
	}
	describer, err := p.probeDescriber()
	if err != nil {
		return nil, err
	}
	for i := range p.Sites {
		s := p.Sites[i].Stub
		if _, done := out[s]; done || s.Kind != arch.Probe {
			continue
		}
		text, err := describer.omittedArgs(s)
		if err != nil {
			return nil, err
		}
		if text != "" {
			out[s] = text
		}
	}
	return out, nil
}
