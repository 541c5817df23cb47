package patch

import (
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// Known tells what other files of a link say of probes: an object that uses a probe
// need not define it. Several goroutines ask at once.
type Known interface {
	// Probe is what the definition of a probe object says, by the probe's ID, and
	// whether there is one. An error says why it is not
	// known which counts. The probe is shared between all calls, and not to be
	// modified.
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
