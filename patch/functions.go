package patch

import (
	"sdtconvert/arch"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
	"sdtconvert/resolve"
)

// functionWriter adds the tables of functions to an object.
type functionWriter struct {
	a         *applier
	describer *probeDescriber
	functions *resolve.Table
	tables    *notes.Writer
	types     map[*Stub][]string // of the arguments of its probe
	last      resolve.Function   // of the row before; without a name if that has none
}

// newFunctionWriter reads the functions of the plan's object.
func newFunctionWriter(a *applier) (*functionWriter, error) {
	describer, err := a.p.probeDescriber()
	if err != nil {
		return nil, err
	}
	functions, err := a.p.Scan.Functions()
	return &functionWriter{a: a, describer: describer, functions: functions, tables: notes.NewWriter(a.e, a.m, false), types: map[*Stub][]string{}}, err
}

// add adds the table of the sites of one kind in a text section, and returns what the section has to keep alive.
func (w *functionWriter) add(kind arch.Kind, sites []*Site, records []linkerset.Record, anchors linkerset.RecordAnchors) ([]linkerset.SymbolRef, error) {
	section := sites[0].Relocs.Target
	rows := make([]notes.SiteFunction, len(sites))
	for i, s := range sites {
		row := &rows[i]
		row.Site = records[i].Site
		w.setFunction(rows, i, section, s.Change.RecordedOffset)
		row.Semaphore = w.semaphore(s)
		if s.Change.Site.Form == arch.Nop {
			row.IsNop, row.Operands = true, s.Operands
		}
		if kind == arch.Probe {
			var err error
			if row.Types, err = w.argumentTypes(s.Stub); err != nil {
				return nil, err
			}
		}
	}
	table := notes.FunctionTable{Kind: kind, Records: anchors.At(0), Format: w.a.p.Scan.Settings.Layout.Format}
	return w.tables.AddFunctions(section, sites[0].Relocs.Rela, table, rows)
}

// setFunction sets the function of row i, whose site is at an offset of a section. Neighbours in one function share its place.
func (w *functionWriter) setFunction(rows []notes.SiteFunction, i, section int, off uint64) {
	f, ok := w.functions.Lookup(section, off)
	if !ok || !f.From.IsSymbol() {
		w.last = resolve.Function{}
		return
	}
	if i > 0 && f == w.last {
		rows[i].Function, rows[i].Start = rows[i-1].Function, rows[i-1].Start
		return
	}
	w.last, rows[i].Function, rows[i].Start = f, f.Raw, w.a.codeRef(section, f.Start)
}

// semaphore returns the semaphore of a site if the object defines it: a distance to what nothing defines has no meaning
// that linkers agree on.
func (w *functionWriter) semaphore(s *Site) linkerset.SymbolRef {
	sym, _ := w.a.p.semaphores.symbol(s.Stub.ID)
	if sym == 0 || w.a.e.Symbol(sym).Section <= 0 {
		return linkerset.SymbolRef{}
	}
	return linkerset.SymbolRef{Sym: sym}
}

// argumentTypes returns the types of a probe's arguments, nil if nothing defines all of them.
func (w *functionWriter) argumentTypes(stub *Stub) ([]string, error) {
	types, ok := w.types[stub]
	if ok {
		return types, nil
	}
	probe, err := w.describer.probe(stub.ID)
	for i, a := range probe.Args {
		if a.Index != i || a.Native == "" {
			types = nil
			break
		}
		types = append(types, a.Native)
	}
	w.types[stub] = types
	return types, err
}
