package main

import (
	"bytes"
	"cmp"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/sitestate"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

func liveSite(p *patch.Plan, s *patch.Site) manifestSite {
	m := manifestSite{
		text: s.Relocs.Target, Offset: s.Change.Site.Offset, Kind: kindOf(s), State: stateLive, Probe: s.Stub.ID,
		Relocation: p.RelocName(s.Reloc.Type), old: s.Change.Site.Code, new: s.Change.New,
	}
	if !p.Options.NoRecords && p.Scan.Machine != nil {
		m.Record = &manifestRecord{p.Options.Layout.Section(s.Stub.Kind), p.Options.ProbePrefix + s.Stub.ID, s.Change.Record}
	}
	return m
}

func refusedSite(p *patch.Plan, r *patch.Refusal) manifestSite {
	return manifestSite{
		text: r.Relocs.Target, Offset: r.Reloc.Offset, Kind: arch.Describe(r.Stub.Kind, arch.Call), State: stateRefused,
		Probe: r.Stub.ID, Relocation: p.RelocName(r.Reloc.Type), Refused: r.Err.Error(),
	}
}

// earlierSites describes the sites of records that the object holds already.
func earlierSites(s *input.Object, prefix string, entries []linkerset.Entry) ([]manifestSite, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	im, err := image.Open(s.Object, s.Machine)
	if err != nil {
		return nil, err
	}
	probes := linkerset.NewProbes(im, prefix)
	kept, err := linkerset.KeptAlive(s.Object, s.Machine)
	if err != nil {
		return nil, err
	}
	var sites []manifestSite
	for _, e := range entries {
		symbol, err := probes.Symbol(e.Probe)
		if err != nil {
			return nil, err
		}
		probe, err := probes.Of(e.Probe)
		if err != nil {
			return nil, err
		}
		m := manifestSite{
			text: e.Site.Section, Offset: e.Site.Offset, Kind: arch.Describe(e.Kind, arch.Call), State: stateUnknown,
			Probe:  probe.ID,
			Record: &manifestRecord{s.Sections[e.Record.Section].Name, symbol, e.Site.Offset},
		}
		if kept[e.Record.Section] {
			m.Relocation = s.Machine.RelocName(s.Machine.Traits().None)
		}
		if site, ok := s.Machine.Disabled(sitestate.CodeAround(im, e.Site), e.Site.Offset, e.Kind); ok {
			m.State, m.Offset = stateDisabled, site.Offset
			m.Kind, m.new = arch.Describe(e.Kind, site.Form), bytes.Clone(site.Code)
		}
		sites = append(sites, m)
	}
	return sites, nil
}

func sortSites(sites []manifestSite) {
	slices.SortStableFunc(sites, func(a, b manifestSite) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.Offset, b.Offset))
	})
}
