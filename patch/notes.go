package patch

// Notes are what tracers of user space read about the sites of an object.

import (
	"fmt"
	"maps"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
)

// noteWriter adds the notes of probe calls to an object.
type noteWriter struct {
	p         *Plan
	describer *probeDescriber
	sections  *notes.Writer

	described map[describedCall]description
	warned    bool               // of what debug information says
	hidden    map[string][]*Stub // stubs whose probes have no notes for DTrace, by the reason
}

// newNoteWriter writes into an edit of the plan's object.
func newNoteWriter(p *Plan, e *elfreloc.Edit) (*noteWriter, error) {
	describer, err := p.probeDescriber()
	if err != nil {
		return nil, err
	}
	return &noteWriter{
		p: p, describer: describer, described: map[describedCall]description{}, hidden: map[string][]*Stub{}, sections: notes.NewWriter(e, p.Scan.Machine, p.Scan.Settings.GroupedNotes),
	}, nil
}

// longestNames bounds a probe's provider and name together, in bytes. gdb, bpftrace,
// perf and bcc list names that are a little longer; much longer ones are untested.
const longestNames = 8192

// add writes the notes of probe calls in one text section, in each format that is wanted, and
// returns what the section has to keep alive: notes and semaphores.
func (w *noteWriter) add(sites []*Site, records []linkerset.Record) (anchors []linkerset.SymbolRef, err error) {
	section, rela := sites[0].Relocs.Target, sites[0].Relocs.Rela
	if w.p.Scan.Settings.Notes {
		anchors, err = w.sections.AddStapsdt(section, rela, len(sites), func(i int) (notes.StapsdtNote, error) {
			d, err := w.describe(sites[i])
			semaphore, _ := w.p.semaphores.symbol(sites[i].Stub.ID)
			return notes.StapsdtNote{
				Provider: d.provider, Name: d.name, Args: d.operands, Site: records[i].Site, Semaphore: linkerset.SymbolRef{Sym: semaphore},
			}, err
		})
		if err != nil {
			return nil, err
		}
	}
	if w.p.Scan.Settings.DTrace {
		siteNotes, err := w.forDTrace(sites, records)
		if err != nil {
			return nil, err
		}
		usdtAnchors, err := w.sections.AddUSDT(section, rela, siteNotes)
		if err != nil {
			return nil, err
		}
		anchors = append(anchors, usdtAnchors...)
	}
	for _, s := range sites {
		sym, _ := w.p.semaphores.symbol(s.Stub.ID)
		if ref := (linkerset.SymbolRef{Sym: sym}); sym != 0 && !slices.Contains(anchors, ref) {
			anchors = append(anchors, ref)
		}
	}
	return anchors, nil
}

// description is what the notes of a site say about its probe.
type description struct {
	provider, name string
	operands       string // of the arguments, or of registers that may hold some
	isComplete     bool   // something says what all arguments are
	arguments      int    // how many there are, if it does
	complete       string // operands of all arguments, if it does
}

// describedCall is what a description depends on, but for marked NOPs.
type describedCall struct {
	stub *Stub
	form arch.Form
}

// describe describes the probe of a site: as a listing does, but for dashes.
func (w *noteWriter) describe(s *Site) (description, error) {
	key := describedCall{s.Stub, s.Change.Site.Form}
	d, ok := w.described[key]
	if !ok {
		probe, err := w.describer.probe(s.Stub.ID)
		if err != nil {
			return d, err
		}
		w.warnUnknownName(s.Stub, probe)
		d = description{provider: linkerset.EncodeName(probe.Provider), name: linkerset.EncodeName(probe.Name)}
		if n := len(d.provider) + len(d.name); n > longestNames {
			return d, w.p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.Site.Offset, fmt.Errorf(
				"provider and name of the probe have %d bytes, and a note has at most %d; choose shorter ones", n, longestNames))
		}
		if key.form != arch.Nop {
			types, _, isComplete := w.describer.arguments(s.Stub, probe)
			if len(probe.Args) == 0 && w.describer.fault != nil && !w.warned {
				// Faults of debug information do not keep an object from being converted.
				w.p.Warnings, w.warned = append(w.p.Warnings, w.describer.fault), true
			}
			d.operands = notes.Operands(w.p.Scan.Machine, key.form, w.p.Scan.Object.ABI().Data, types)
			if d.isComplete = isComplete || probe.FromStruct && len(probe.Args) == 0; isComplete {
				d.arguments, d.complete = len(types), d.operands
			}
		}
		w.described[key] = d
	}
	if key.form == arch.Nop {
		d.operands, d.isComplete, d.complete = s.Operands, true, s.Operands
		d.arguments, _ = notes.CountOperands(s.Operands)
	}
	return d, nil
}

// warnUnknownName adds a warning if the id of a probe does not tell its name, as that of a probe with a module or a function, and nothing
// in the run defines the probe. A link gives the notes their names.
func (w *noteWriter) warnUnknownName(stub *Stub, probe linkerset.Probe) {
	if probe.FromStruct || w.p.Scan.Settings.LinkConverts || !mayHaveModule(stub.ID) || stub.Name == stub.ID {
		return
	}
	w.p.Warnings = append(w.p.Warnings, &elfreloc.Error{File: w.p.Scan.Object.Name, Err: fmt.Errorf(
		"another object defines the probe %s, so its notes name it %s:%s; link with -B, or convert it together with that object", stub.ID, probe.Provider, linkerset.EncodeName(probe.Name))})
}

// forDTrace makes the notes for DTrace of sites of one section. DTrace refuses all of an
// image whose notes do not describe each argument, so a probe whose notes would not
// has none, and there is a warning.
func (w *noteWriter) forDTrace(sites []*Site, records []linkerset.Record) ([]notes.USDTNote, error) {
	functions, err := w.p.Scan.Functions()
	if err != nil {
		return nil, err
	}
	var siteNotes []notes.USDTNote
	for i, s := range sites {
		d, err := w.describe(s)
		if err != nil {
			return nil, err
		}
		if fault := w.unreadable(&d); fault != "" {
			if !slices.ContainsFunc(w.hidden[fault], func(hidden *Stub) bool { return hidden.Name == s.Stub.Name }) {
				w.hidden[fault] = append(w.hidden[fault], s.Stub)
			}
			continue
		}
		// Code of assembly may be in no function. DTrace knows no probe without one.
		section := s.Relocs.Target
		name := w.p.Scan.Object.Sections[section].Name
		if f, ok := functions.Lookup(section, s.Change.Site.Offset); ok {
			name = f.Name
		}
		siteNotes = append(siteNotes, notes.USDTNote{
			Provider: d.provider, Name: d.name, Function: name, Arguments: d.arguments, Operands: d.complete, Site: records[i].Site,
		})
	}
	return siteNotes, nil
}

// unreadable says why DTrace would not read the arguments of a probe, or "".
func (w *noteWriter) unreadable(d *description) string {
	operands, bad := notes.CountOperands(d.complete)
	switch {
	case !d.isComplete:
		return "not all arguments are known; compile with -g"
	case d.arguments > notes.MaxUSDTArguments:
		return fmt.Sprintf("there are %d arguments, and there is room for %d", d.arguments, notes.MaxUSDTArguments)
	case operands < d.arguments:
		return fmt.Sprintf("argument %d is nowhere that a note can tell", operands+1)
	case operands > 0 && w.p.Scan.Machine.Traits().Arguments.NumericRegisters:
		return "it takes registers that are called by numbers for constants"
	case bad != "":
		return fmt.Sprintf("it does not read %s", bad)
	}
	return ""
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
