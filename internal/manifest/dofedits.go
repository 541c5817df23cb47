package manifest

import (
	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/patch"
)

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
