package tracers

import (
	"fmt"
	"maps"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/usdt"
)

// forDTrace makes the notes for DTrace of sites of one section. DTrace refuses all of an
// image whose notes do not describe each argument, so a probe whose notes would not
// has none, and there is a warning.
func (w *Writer) forDTrace(sites []Site, probes []probe) ([]usdt.Probe, error) {
	functions, err := w.o.Functions()
	if err != nil {
		return nil, err
	}
	var notes []usdt.Probe
	for i := range sites {
		s, p := &sites[i], &probes[i]
		if fault := w.unreadable(p); fault != "" {
			w.withoutDTrace(s.Stub, fault)
			continue
		}
		// Code of assembly may be in no function. DTrace knows no probe without one.
		name := w.o.Sections[s.Section].Name
		if f, ok := functions.Lookup(s.Section, s.Offset); ok {
			name = f.Name
		}
		notes = append(notes, usdt.Probe{
			Provider: p.Provider, Name: p.Name, Function: name, Arguments: p.arguments, Operands: p.operands, Site: p.Site,
		})
	}
	return notes, nil
}

// unreadable says why DTrace would not read the arguments of a probe, or "".
func (w *Writer) unreadable(p *probe) string {
	told, bad := usdt.Operands(p.operands)
	switch {
	case !p.known:
		return "nothing tells all arguments; compile with -g, or give --prototypes"
	case p.arguments > usdt.MaxArguments:
		return fmt.Sprintf("there are %d arguments, and there is room for %d", p.arguments, usdt.MaxArguments)
	case told < p.arguments:
		return fmt.Sprintf("argument %d is nowhere that a note can tell", told+1)
	case told > 0 && w.o.Machine.Traits().Arguments.NumericRegisters:
		return "it takes registers that are called by numbers for constants"
	case bad != "":
		return fmt.Sprintf("it does not read %s", bad)
	}
	return ""
}

// withoutDTrace notes a probe that has no notes for DTrace, once.
func (w *Writer) withoutDTrace(s Stub, fault string) {
	if w.silent == nil {
		w.silent = map[string][]Stub{}
	}
	if !slices.Contains(w.silent[fault], s) {
		w.silent[fault] = append(w.silent[fault], s)
	}
}

// Finish adds a warning for each reason why probes have no notes for DTrace.
func (w *Writer) Finish() {
	for _, fault := range slices.Sorted(maps.Keys(w.silent)) {
		stubs := w.silent[fault]
		probes := fmt.Sprintf("probe %s is", stubs[0].ID)
		if len(stubs) > 1 {
			probes = fmt.Sprintf("%d probes, one of them %s, are", len(stubs), stubs[0].ID)
		}
		w.warn(&elfreloc.Error{File: w.o.Name, Err: fmt.Errorf("%s hidden from DTrace: %s", probes, fault)})
	}
}
