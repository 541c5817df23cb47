package patch

import (
	"fmt"
	"maps"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/linkerset"
)

// forDTrace makes the notes for DTrace of sites of one section. DTrace refuses all of an
// image whose notes do not describe each argument, so a probe whose notes would not
// has none, and there is a warning.
func (w *noteWriter) forDTrace(sites []*Site, records []linkerset.Record) ([]usdt.Probe, error) {
	functions, err := w.p.Scan.Functions()
	if err != nil {
		return nil, err
	}
	var notes []usdt.Probe
	for i, s := range sites {
		d, err := w.describe(s)
		if err != nil {
			return nil, err
		}
		if fault := w.unreadable(&d); fault != "" {
			w.hide(s.Stub, fault)
			continue
		}
		// Code of assembly may be in no function. DTrace knows no probe without one.
		section := s.Relocs.Target
		name := w.p.Scan.Object.Sections[section].Name
		if f, ok := functions.Lookup(section, s.Change.Site.Offset); ok {
			name = f.Name
		}
		notes = append(notes, usdt.Probe{
			Provider: d.provider, Name: d.name, Function: name, Arguments: d.arguments, Operands: d.complete, Site: records[i].Site,
		})
	}
	return notes, nil
}

// unreadable says why DTrace would not read the arguments of a probe, or "".
func (w *noteWriter) unreadable(d *description) string {
	operands, bad := usdt.Operands(d.complete)
	switch {
	case !d.isComplete:
		return "nothing tells all arguments; compile with -g, or give --prototypes"
	case d.arguments > usdt.MaxArguments:
		return fmt.Sprintf("there are %d arguments, and there is room for %d", d.arguments, usdt.MaxArguments)
	case operands < d.arguments:
		return fmt.Sprintf("argument %d is nowhere that a note can tell", operands+1)
	case operands > 0 && w.p.Scan.Machine.Traits().Arguments.NumericRegisters:
		return "it takes registers that are called by numbers for constants"
	case bad != "":
		return fmt.Sprintf("it does not read %s", bad)
	}
	return ""
}

// hide takes down a probe that has no notes for DTrace, once.
func (w *noteWriter) hide(stub *Stub, fault string) {
	if w.hidden == nil {
		w.hidden = map[string][]*Stub{}
	}
	if !slices.ContainsFunc(w.hidden[fault], func(s *Stub) bool { return s.Name == stub.Name }) {
		w.hidden[fault] = append(w.hidden[fault], stub)
	}
}

// warnHidden adds a warning for each reason why probes have no notes for DTrace.
func (w *noteWriter) warnHidden() {
	for _, fault := range slices.Sorted(maps.Keys(w.hidden)) {
		stubs := w.hidden[fault]
		probes := fmt.Sprintf("probe %s is", stubs[0].ID)
		if len(stubs) > 1 {
			probes = fmt.Sprintf("%d probes, one of them %s, are", len(stubs), stubs[0].ID)
		}
		w.p.Warnings = append(w.p.Warnings, &elfreloc.Error{File: w.p.Scan.Object.Name, Err: fmt.Errorf("%s hidden from DTrace: %s", probes, fault)})
	}
}
