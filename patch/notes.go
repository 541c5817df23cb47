package patch

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
	stapsdt *stapsdt.Writer // nil when there are to be none for SystemTap's readers
	usdt    *usdt.Writer    // nil when there are to be none for DTrace
	p       *Plan
	known   *knowledge
	warned  bool               // of what debug information says
	silent  map[string][]*Stub // whose probes have no notes for DTrace, by the reason
}

func newNoteWriter(p *Plan, e *elfreloc.Edit) (*noteWriter, error) {
	known, err := p.knowledge()
	if err != nil {
		return nil, err
	}
	w, sections := &noteWriter{p: p, known: known}, sitenotes.NewWriter(e, p.Scan.Machine)
	if p.Options.Stapsdt {
		w.stapsdt = stapsdt.NewWriter(e, sections)
	}
	if p.Options.DTrace {
		w.usdt = usdt.NewWriter(e, sections)
	}
	return w, nil
}

// declaration returns the parameters of a stub that debug information declares.
// What is wrong with that is no reason not to convert an object.
func (w *noteWriter) declaration(s *Stub) ([]lines.Parameter, bool) {
	declared, fault := w.known.prototypes()
	if fault != nil && !w.warned {
		w.p.Warnings = append(w.p.Warnings, fault)
		w.warned = true
	}
	params, ok := declared[s.Name]
	return params, ok
}

// longestNames bounds a probe's provider and name together, in bytes. gdb, bpftrace,
// perf and bcc list names that are a little longer; nobody has tried much longer ones.
const longestNames = 8192

// probe is what notes tell of the probe of a site.
type probe struct {
	stapsdt.Probe
	operands  string // of all arguments, for DTrace
	arguments int    // how many there are
	known     bool   // whether something tells that
}

// probe describes the probe of a site: as a listing does, but for dashes.
func (w *noteWriter) probe(site *Site) (probe, error) {
	s := site.Stub
	known, err := w.known.probe(s.ID)
	if err != nil {
		return probe{}, err
	}
	p := probe{Probe: stapsdt.Probe{Provider: linkerset.InSource(known.Provider), Name: linkerset.InSource(known.Name), Args: site.Operands}}
	if n := len(p.Provider) + len(p.Name); n > longestNames {
		return probe{}, w.p.Scan.Object.OffsetError(site.Relocs.Target, site.Change.Site.Offset, fmt.Errorf(
			"provider and name of the probe have %d bytes, and a note has at most %d; choose shorter ones", n, longestNames))
	}
	if site.Change.Site.Form == arch.Nop {
		p.operands, p.known = p.Args, true
		p.arguments, _ = usdt.Operands(p.operands)
		return p, nil
	}
	_, _, data, _ := w.p.Scan.Object.ABI()
	types, told := w.types(s, known.Args)
	p.Args = stapsdt.Operands(w.p.Scan.Machine, site.Change.Site.Form, data, types)
	if p.known = told || known.Told && len(known.Args) == 0; told {
		p.operands, p.arguments = p.Args, len(types)
	}
	return p, nil
}

// types finds the types of a stub's arguments: what the program says of the probe,
// else the declaration of the stub as the compiler has seen it, else what the
// user says. Of the rest any register may hold one: then known is false.
func (w *noteWriter) types(s *Stub, args []linkerset.Argument) (types []stapsdt.Type, known bool) {
	m := w.p.Scan.Machine
	if len(args) > 0 {
		for i, a := range args {
			if a.Index != i {
				return types, false // one is missing, or there twice
			}
			types = append(types, stapsdt.Native(a.Native, m))
		}
		return types, true
	}
	if params, ok := w.declaration(s); ok {
		for _, p := range params {
			types = append(types, stapsdt.Type{Size: p.Size, Signed: p.Signed})
		}
		return types, true
	}
	if types, ok := w.p.Options.Prototypes.of(s, m); ok {
		return types, true
	}
	return stapsdt.Words(m), false
}

// note writes the notes of the probe calls of one section, whose recorded
// addresses are at, and has the section keep them alive.
func (a *applier) note(sites []*Site, at []linkerset.Ref) error {
	rs := sites[0].Relocs
	probes := make([]probe, len(sites))
	for i, s := range sites {
		var err error
		if probes[i], err = a.notes.probe(s); err != nil {
			return err
		}
		probes[i].Site, probes[i].Semaphore.Sym = at[i], a.semaphore(s.Stub)
	}
	keep, err := a.notes.add(sites, probes)
	if err != nil || a.p.Options.DropRelocations {
		return err
	}
	for _, p := range probes {
		if p.Semaphore.Sym != 0 && !slices.Contains(keep, p.Semaphore) {
			keep = append(keep, p.Semaphore)
		}
	}
	for _, ref := range keep {
		r := elfreloc.Relocation{Offset: sites[0].Reloc.Offset, Type: a.m.Traits().None, Sym: ref.Sym, Addend: ref.Addend}
		if err := a.e.AddRelocation(rs.Target, r); err != nil {
			return err
		}
	}
	return nil
}

// add writes the notes of sites of one section, in each format that is wanted.
func (w *noteWriter) add(sites []*Site, probes []probe) (keep []linkerset.Ref, err error) {
	rs := sites[0].Relocs
	if w.stapsdt != nil {
		notes := make([]stapsdt.Probe, len(probes))
		for i := range probes {
			notes[i] = probes[i].Probe
		}
		if keep, err = w.stapsdt.Add(rs.Target, rs.Rela, notes); err != nil {
			return nil, err
		}
	}
	if w.usdt == nil {
		return keep, nil
	}
	notes, err := w.forDTrace(sites, probes)
	if err != nil {
		return nil, err
	}
	more, err := w.usdt.Add(rs.Target, rs.Rela, notes)
	return append(keep, more...), err
}
