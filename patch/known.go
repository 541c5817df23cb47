package patch

import (
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/linkerset"
)

// Known tells what other files of a link say of probes: an object that uses a probe
// need not define it. Several goroutines ask at once.
type Known interface {
	// Probe is what the definition of a probe object says, by the probe's ID, and
	// whether there is one. An error says why it is not known which counts. The probe
	// is shared between all calls, and not to be modified.
	Probe(id string) (probe linkerset.Probe, ok bool, err error)
}

// elsewhere is what is known of a probe that an object does not define: its ID alone,
// unless other files say more.
func (opts *Options) elsewhere(o *elfreloc.Object, id string) (linkerset.Probe, error) {
	if opts.Known != nil {
		if probe, ok, err := opts.Known.Probe(id); err != nil {
			return linkerset.Probe{}, &elfreloc.Error{File: o.Name, Err: err}
		} else if ok {
			return probe, nil
		}
	}
	return linkerset.FromID(id), nil
}

// knowledge is what notes can tell of the probes of stubs and guards.
type knowledge struct {
	scan     *Scan
	options  *Options
	objects  map[string]image.Ref         // probe objects that this object defines, by name
	probes   *linkerset.Probes            // what they say
	declared map[string][]lines.Parameter // of stubs, by debug information; nil until it is asked
	fault    error                        // of debug information
}

// knowledge is made once for a plan: semaphores, notes and LeftOut need it. The machine
// must not be nil.
func (p *Plan) knowledge() (*knowledge, error) {
	if p.known == nil {
		im, err := p.Scan.Image()
		if err != nil {
			return nil, err
		}
		k := &knowledge{scan: p.Scan, options: &p.Options, probes: linkerset.NewProbes(im, p.Options.ProbePrefix)}
		if err := k.findObjects(); err != nil {
			return nil, err
		}
		p.known = k
	}
	return p.known, nil
}

// findObjects finds the probe objects of stubs, as far as this object defines
// them for all of a program.
func (k *knowledge) findObjects() error {
	k.objects = map[string]image.Ref{}
	prefix := k.options.ProbePrefix
	syms, err := k.scan.Object.Symbols()
	if err != nil || !syms.Mentions(prefix) {
		return err
	}
	wanted := map[string]bool{}
	for _, s := range k.scan.Stubs {
		wanted[prefix+s.ID] = true
	}
	for _, g := range k.scan.Guards {
		wanted[prefix+g.ID] = true
	}
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		name := syms.Name(i)
		if s := syms.Nameless(i); wanted[name] && s.Defined() {
			k.objects[name] = image.Ref{Symbol: name, Addr: image.Addr{Section: s.Section, Offset: s.Value}}
		}
	}
	return nil
}

// probe is what is known of a probe: by this object, else by others, else by its ID.
func (k *knowledge) probe(id string) (linkerset.Probe, error) {
	if ref, ok := k.objects[k.options.ProbePrefix+id]; ok {
		return k.probes.Of(ref)
	}
	return k.options.elsewhere(k.scan.Object, id)
}

// prototypes are the parameters of stubs that debug information declares, by the stub's
// name. With a fault they are those that were read before it.
func (k *knowledge) prototypes() (declared map[string][]lines.Parameter, fault error) {
	if k.declared != nil {
		return k.declared, k.fault
	}
	names := map[string]bool{}
	for _, s := range k.scan.Stubs {
		names[s.Name] = true
	}
	var table *lines.Table
	if table, k.fault = lines.New(k.scan.Object, k.scan.Machine); k.fault == nil {
		k.declared, k.fault = table.Prototypes(func(name string) bool { return names[name] })
	}
	if k.declared == nil {
		k.declared = map[string][]lines.Parameter{}
	}
	return k.declared, k.fault
}
