package patch

// Notes are what tracers of user space read about the sites of an object.

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

// noteWriter adds the notes of probe calls to an object.
type noteWriter struct {
	p        *Plan
	info     *probeInfo
	sections *sitenotes.Writer
	stapsdt  *stapsdt.Writer // nil when there are to be none for SystemTap's readers

	described map[describedCall]description
	warned    bool               // of what debug information says
	hidden    map[string][]*Stub // stubs whose probes have no notes for DTrace, by the reason
}

// newNoteWriter writes into an edit of the plan's object.
func newNoteWriter(p *Plan, e *elfreloc.Edit) (*noteWriter, error) {
	info, err := p.probeInfo()
	if err != nil {
		return nil, err
	}
	w := &noteWriter{p: p, info: info, described: map[describedCall]description{}, sections: sitenotes.NewWriter(e, p.Scan.Machine)}
	if p.Options.Stapsdt {
		w.stapsdt = stapsdt.NewWriter(w.sections)
	}
	return w, nil
}

// longestNames bounds a probe's provider and name together, in bytes. gdb, bpftrace,
// perf and bcc list names that are a little longer; much longer ones are untested.
const longestNames = 8192

// add writes the notes of probe calls in one text section, in each format that is wanted, and
// returns what the section has to keep alive: notes and semaphores.
func (w *noteWriter) add(sites []*Site, records []linkerset.Record) (keep []linkerset.SymbolRef, err error) {
	section, rela := sites[0].Relocs.Target, sites[0].Relocs.Rela
	if w.stapsdt != nil {
		keep, err = w.stapsdt.Add(section, rela, len(sites), func(i int) (stapsdt.Probe, error) {
			d, err := w.describe(sites[i])
			semaphore, _ := w.p.semaphores.symbol(sites[i].Stub.ID)
			return stapsdt.Probe{
				Provider: d.provider, Name: d.name, Args: d.operands, Site: records[i].Site, Semaphore: linkerset.SymbolRef{Sym: semaphore},
			}, err
		})
		if err != nil {
			return nil, err
		}
	}
	if w.p.Options.DTrace {
		notes, err := w.forDTrace(sites, records)
		if err != nil {
			return nil, err
		}
		more, err := usdt.Add(w.sections, section, rela, notes)
		if err != nil {
			return nil, err
		}
		keep = append(keep, more...)
	}
	for _, s := range sites {
		sym, _ := w.p.semaphores.symbol(s.Stub.ID)
		if ref := (linkerset.SymbolRef{Sym: sym}); sym != 0 && !slices.Contains(keep, ref) {
			keep = append(keep, ref)
		}
	}
	return keep, nil
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
		probe, err := w.info.probe(s.Stub.ID)
		if err != nil {
			return d, err
		}
		d = description{provider: linkerset.EncodeName(probe.Provider), name: linkerset.EncodeName(probe.Name)}
		if n := len(d.provider) + len(d.name); n > longestNames {
			return d, w.p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.Site.Offset, fmt.Errorf(
				"provider and name of the probe have %d bytes, and a note has at most %d; choose shorter ones", n, longestNames))
		}
		if key.form != arch.Nop {
			types, isComplete := w.types(s.Stub, probe)
			d.operands = stapsdt.Operands(w.p.Scan.Machine, key.form, w.p.Scan.Object.ABI().Data, types)
			if d.isComplete = isComplete || probe.FromStruct && len(probe.Args) == 0; isComplete {
				d.arguments, d.complete = len(types), d.operands
			}
		}
		w.described[key] = d
	}
	if key.form == arch.Nop {
		d.operands, d.isComplete, d.complete = s.Operands, true, s.Operands
		d.arguments, _ = usdt.Operands(s.Operands)
	}
	return d, nil
}

// types finds the types of a stub's arguments: what the program says of the probe,
// else the declaration of the stub as the compiler has seen it, else what the
// user says. Of the rest any register may hold one: then they are not complete.
func (w *noteWriter) types(s *Stub, probe linkerset.Probe) (types []stapsdt.Type, complete bool) {
	m := w.p.Scan.Machine
	if len(probe.Args) > 0 {
		for i, a := range probe.Args {
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
	if types, ok := w.p.Options.Prototypes.types(s, m); ok {
		return types, true
	}
	return stapsdt.Words(m), false
}

// declaration returns the parameters of a stub that debug information declares.
// Faults in it do not keep an object from being converted.
func (w *noteWriter) declaration(s *Stub) ([]lines.Parameter, bool) {
	declared, fault := w.info.prototypes()
	if fault != nil && !w.warned {
		w.p.Warnings = append(w.p.Warnings, fault)
		w.warned = true
	}
	params, ok := declared[s.Name]
	return params, ok
}
