package tracers

import (
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/emit/sitenotes"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/linkerset"
)

// Site is a probe call that gets notes.
type Site struct {
	Stub     Stub
	Recorded linkerset.Ref // the address that tracers arm
	// Semaphore is the symbol of the probe's semaphore, 0 for none.
	Semaphore uint32
	Section   int
	Offset    uint64 // of its first byte, in the section
	Form      arch.Form
	Operands  string // of a marked nop (arch.Nop)
}

// Writer adds the notes of probe calls to an object.
type Writer struct {
	stapsdt *stapsdt.Writer // nil when there are to be none for SystemTap's readers
	usdt    *usdt.Writer    // nil when there are to be none for DTrace
	o       *Object
	probes  *Probes
	warn    func(error)
	warned  bool              // of what debug information says
	silent  map[string][]Stub // whose probes have no notes for DTrace, by the reason
}

// NewWriter writes into an edit of the probes' object. Warnings go to warn.
func NewWriter(probes *Probes, e *elfreloc.Edit, warn func(error)) *Writer {
	w, sections := &Writer{o: probes.object, probes: probes, warn: warn}, sitenotes.NewWriter(e, probes.object.Machine)
	if probes.options.Stapsdt {
		w.stapsdt = stapsdt.NewWriter(e, sections)
	}
	if probes.options.DTrace {
		w.usdt = usdt.NewWriter(e, sections)
	}
	return w
}

// longestNames bounds a probe's provider and name together, in bytes. gdb, bpftrace,
// perf and bcc list names that are a little longer; much longer ones are untested.
const longestNames = 8192

// probe is what notes say about the probe of a site.
type probe struct {
	stapsdt.Probe
	operands  string // of all arguments, for DTrace
	arguments int    // how many there are
	known     bool   // whether something tells that
}

// probe describes the probe of a site: as a listing does, but for dashes.
func (w *Writer) probe(site *Site) (probe, error) {
	s := site.Stub
	known, err := w.probes.probe(s.ID)
	if err != nil {
		return probe{}, err
	}
	p := probe{Probe: stapsdt.Probe{Provider: linkerset.EncodeName(known.Provider), Name: linkerset.EncodeName(known.Name), Args: site.Operands, Site: site.Recorded}}
	p.Semaphore.Sym = site.Semaphore
	if n := len(p.Provider) + len(p.Name); n > longestNames {
		return probe{}, w.o.OffsetError(site.Section, site.Offset, fmt.Errorf(
			"provider and name of the probe have %d bytes, and a note has at most %d; choose shorter ones", n, longestNames))
	}
	if site.Form == arch.Nop {
		p.operands, p.known = p.Args, true
		p.arguments, _ = usdt.Operands(p.operands)
		return p, nil
	}
	types, told := w.types(s, known.Args)
	p.Args = stapsdt.Operands(w.o.Machine, site.Form, w.o.ABI().Data, types)
	if p.known = told || known.FromStruct && len(known.Args) == 0; told {
		p.operands, p.arguments = p.Args, len(types)
	}
	return p, nil
}

// types finds the types of a stub's arguments: what the program says of the probe,
// else the declaration of the stub as the compiler has seen it, else what the
// user says. Of the rest any register may hold one: then known is false.
func (w *Writer) types(s Stub, args []linkerset.Argument) (types []stapsdt.Type, known bool) {
	m := w.o.Machine
	if len(args) > 0 {
		for i, a := range args {
			if a.Index != i {
				return types, false // one is missing, or there twice
			}
			types = append(types, stapsdt.ArgumentType(a.Native, m))
		}
		return types, true
	}
	if params, ok := w.declaration(s); ok {
		for _, p := range params {
			types = append(types, stapsdt.Type{Size: p.Size, Signed: p.Signed})
		}
		return types, true
	}
	if types, ok := declared(w.probes.options.Prototypes, s, m); ok {
		return types, true
	}
	return stapsdt.Words(m), false
}

// declaration returns the parameters of a stub that debug information declares.
// Faults in it do not keep an object from being converted.
func (w *Writer) declaration(s Stub) ([]lines.Parameter, bool) {
	declared, fault := w.probes.prototypes()
	if fault != nil && !w.warned {
		w.warn(fault)
		w.warned = true
	}
	params, ok := declared[s.Name]
	return params, ok
}

// Add writes the notes of the sites of one text section, in each format that is wanted, and
// returns what the section has to keep alive: notes and semaphores. rela is the type of the
// section's relocations (elfreloc.RelocSection).
func (w *Writer) Add(section int, rela bool, sites []Site) (keep []linkerset.Ref, err error) {
	probes := make([]probe, len(sites))
	for i := range sites {
		if probes[i], err = w.probe(&sites[i]); err != nil {
			return nil, err
		}
	}
	if w.stapsdt != nil {
		notes := make([]stapsdt.Probe, len(probes))
		for i := range probes {
			notes[i] = probes[i].Probe
		}
		if keep, err = w.stapsdt.Add(section, rela, notes); err != nil {
			return nil, err
		}
	}
	if w.usdt != nil {
		notes, err := w.forDTrace(sites, probes)
		if err != nil {
			return nil, err
		}
		more, err := w.usdt.Add(section, rela, notes)
		if err != nil {
			return nil, err
		}
		keep = append(keep, more...)
	}
	for i := range probes {
		if s := probes[i].Semaphore; s.Sym != 0 && !slices.Contains(keep, s) {
			keep = append(keep, s)
		}
	}
	return keep, nil
}
