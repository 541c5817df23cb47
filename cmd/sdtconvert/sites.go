package main

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"sdtconvert/arch"
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
func earlierSites(s *subject, entries []linkerset.Entry) ([]manifestSite, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	kept, err := linkerset.KeptAlive(s.Object, s.machine)
	if err != nil {
		return nil, err
	}
	var sites []manifestSite
	for _, e := range entries {
		m := manifestSite{
			text: e.Text, Offset: e.Site, Kind: arch.Describe(e.Kind, arch.Call), State: stateUnknown,
			Probe:  probeID(e.Probe),
			Record: &manifestRecord{s.Sections[e.Section].Name, e.Probe, e.Site},
		}
		if kept[e.Section] {
			m.Relocation = s.machine.RelocName(s.machine.Traits().None)
		}
		size := s.Sections[e.Text].Size
		from := e.Site - min(e.Site, arch.Window)
		if from > size {
			sites = append(sites, m)
			continue
		}
		code, err := s.Bytes(e.Text, from, min(size-from, 2*arch.Window))
		if err != nil {
			return nil, err
		}
		if site, ok := s.machine.Disabled(arch.Text{Code: code, Start: from}, e.Site, e.Kind); ok {
			m.State, m.Offset = stateDisabled, site.Offset
			m.Kind, m.new = arch.Describe(e.Kind, site.Form), bytes.Clone(site.Code)
		}
		sites = append(sites, m)
	}
	return sites, nil
}

// probeID is the probe id of a probe object's symbol.
func probeID(symbol string) string {
	if i := strings.Index(symbol, "sdt_"); i >= 0 {
		symbol = symbol[i+len("sdt_"):]
	}
	return symbol
}

func sortSites(sites []manifestSite) {
	slices.SortStableFunc(sites, func(a, b manifestSite) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.Offset, b.Offset))
	})
}
