package patch

import (
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
	"sdtconvert/stapsdt"
)

// noteWriter adds the notes of probe calls to an object.
type noteWriter struct {
	*stapsdt.Writer
	p      *Plan
	probes map[*Stub]stapsdt.Probe // what is known of each, but for the site
}

func newNoteWriter(p *Plan, e *elfreloc.Edit) (*noteWriter, error) {
	return &noteWriter{stapsdt.NewWriter(e, p.Scan.Machine), p, map[*Stub]stapsdt.Probe{}}, nil
}

// probe describes the probe of a stub.
func (w *noteWriter) probe(s *Stub) stapsdt.Probe {
	if known, ok := w.probes[s]; ok {
		return known
	}
	id := linkerset.FromID(s.ID)
	m := w.p.Scan.Machine
	probe := stapsdt.Probe{
		Provider: id.Provider, Name: id.Name,
		Args: stapsdt.Operands(m, stapsdt.Words(m, w.p.Scan.Object.Layout.Word())),
	}
	w.probes[s] = probe
	return probe
}

// note writes the notes of the probe calls of one section, whose recorded
// addresses are at, and has the section keep them alive.
func (a *applier) note(sites []*Site, at []linkerset.Ref) error {
	rs := sites[0].Relocs
	probes := make([]stapsdt.Probe, len(sites))
	for i, s := range sites {
		probes[i] = a.notes.probe(s.Stub)
		probes[i].Site = at[i]
	}
	keep, err := a.notes.Add(rs.Target, rs.Rela, probes)
	if err != nil || a.p.Options.DropRelocations {
		return err
	}
	for _, ref := range keep {
		r := elfreloc.Relocation{Offset: sites[0].Reloc.Offset, Type: a.m.Traits().None, Sym: ref.Sym, Addend: ref.Addend}
		if err := a.e.AddRelocation(rs.Target, r); err != nil {
			return err
		}
	}
	return nil
}
