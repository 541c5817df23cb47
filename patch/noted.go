package patch

import (
	"debug/elf"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
)

// Headers of others, and those of provider files, make notes of their sites themselves. There is nothing to
// convert; but the names of the functions that hold these sites can travel with the program as those of ours.

// HasNotedSites reports whether an object may have sites that only notes describe, whose functions are to be recorded.
func (s *Scan) HasNotedSites() bool {
	isForeign := func(sec elfreloc.Section) bool {
		return sec.Type == elf.SHT_NOTE && sec.Name == notes.StapsdtSection && !notes.WroteStapsdt(&sec)
	}
	return s.Machine != nil && s.Settings.Functions && slices.ContainsFunc(s.Object.Sections, isForeign)
}

// planNoted finds the sites that only notes describe, and that no table of functions has yet. What cannot be read of such
// notes is no fault of a conversion.
func (p *Plan) planNoted() error {
	if !p.Scan.HasNotedSites() {
		return nil
	}
	im, err := p.Scan.Image()
	if err != nil {
		return err
	}
	siteNotes, _, err := notes.Read(p.Scan.Object, im)
	if err != nil {
		return nil
	}
	rows, _, err := notes.ReadFunctions(p.Scan.Object, im)
	if err != nil {
		return err
	}
	known := make(map[image.Addr]bool, len(rows))
	for i := range rows {
		known[rows[i].Site] = true
	}
	for i := range siteNotes {
		n := &siteNotes[i]
		if site := n.Site.Addr; !n.Site.Undefined && site.Section > 0 && im.Executable(site) && !known[site] {
			known[site] = true
			p.noted = append(p.noted, n)
		}
	}
	slices.SortStableFunc(p.noted, func(a, b *notes.Note) int { return a.Site.Compare(b.Site.Addr) })
	return nil
}

// addNoted adds the tables of the sites that only notes describe.
func (a *applier) addNoted(e *elfreloc.Edit) error {
	noted := a.p.noted
	if len(noted) == 0 {
		return nil
	}
	relocs, err := a.o.RelocSections()
	if err != nil {
		return err
	}
	for len(noted) > 0 {
		section, n := noted[0].Site.Section, 1
		for n < len(noted) && noted[n].Site.Section == section {
			n++
		}
		rela := a.m.Traits().Rela
		if i := slices.IndexFunc(relocs, func(rs elfreloc.RelocSection) bool { return rs.Target == section }); i >= 0 {
			rela = relocs[i].Rela
		} else if !a.p.Scan.Settings.DropRelocations {
			e.AddRelocationSection(section, rela)
		}
		anchors, err := a.tables.addNoted(section, rela, noted[:n])
		if err != nil {
			return err
		}
		for _, anchor := range anchors {
			if a.p.Scan.Settings.DropRelocations {
				break // nothing keeps the table where a linker collects garbage
			}
			none := elfreloc.Relocation{Offset: noted[0].Site.Offset, Type: a.m.Traits().None, Sym: anchor.Sym, Addend: anchor.Addend}
			if err := e.AddRelocation(section, none); err != nil {
				return err
			}
		}
		noted = noted[n:]
	}
	return nil
}

// addNoted adds the table of sites of one section that only notes describe, and returns what the section has to keep alive.
func (w *functionWriter) addNoted(section int, rela bool, noted []*notes.Note) ([]linkerset.SymbolRef, error) {
	rows := make([]notes.SiteFunction, len(noted))
	for i, n := range noted {
		rows[i] = notes.SiteFunction{Site: w.a.codeRef(section, n.Site.Offset), IsNop: true, Operands: n.Args}
		w.setFunction(rows, i, section, n.Site.Offset)
		rows[i].Semaphore.Sym = w.notedSemaphore(n)
	}
	return w.tables.AddFunctions(section, rela, notes.FunctionTable{}, rows)
}

// notedSemaphore returns the symbol of the semaphore that a note names, 0 if it has none that the object defines. It is not named by its
// section, because linkers keep one of several groups with the same semaphore.
func (w *functionWriter) notedSemaphore(n *notes.Note) uint32 {
	if n.Semaphore.Undefined || n.Semaphore.Symbol == "" {
		return 0
	}
	syms := w.a.p.Scan.symbols()
	for i := range syms.Named(n.Semaphore.Symbol) {
		if section, _ := syms.Place(i); i >= syms.FirstGlobal() && section > 0 {
			return uint32(i)
		}
	}
	return 0
}
