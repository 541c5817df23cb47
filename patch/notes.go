package patch

import (
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/linkerset"
)

// noteWriter adds the notes of probe calls to an object.
type noteWriter struct {
	*stapsdt.Writer
	p        *Plan
	objects  map[string]image.Ref         // probe objects that this object defines, by name
	probes   *linkerset.Probes            // what they say
	declared map[string][]lines.Parameter // of stubs, by debug information; nil until it is asked
}

func newNoteWriter(p *Plan, e *elfreloc.Edit) (*noteWriter, error) {
	w := &noteWriter{Writer: stapsdt.NewWriter(e, p.Scan.Machine), p: p}
	return w, w.findObjects()
}

// findObjects finds the probe objects of stubs, as far as this object defines
// them for all of a program.
func (w *noteWriter) findObjects() error {
	o, prefix := w.p.Scan.Object, w.p.Options.ProbePrefix
	im, err := w.p.Scan.Image()
	if err != nil {
		return err
	}
	w.objects, w.probes = map[string]image.Ref{}, linkerset.NewProbes(im, prefix)
	syms, err := o.Symbols()
	if err != nil || !syms.Mentions(prefix) {
		return err
	}
	wanted := map[string]bool{}
	for _, s := range w.p.Scan.Stubs {
		wanted[prefix+s.ID] = true
	}
	for _, g := range w.p.Scan.Guards {
		wanted[prefix+g.ID] = true
	}
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		name := syms.Name(i)
		if s := syms.Nameless(i); wanted[name] && s.Defined() {
			w.objects[name] = image.Ref{Symbol: name, Addr: image.Addr{Section: s.Section, Offset: s.Value}}
		}
	}
	return nil
}

// declaration returns the parameters of a stub that debug information declares.
// What is wrong with that is no reason not to convert an object.
func (w *noteWriter) declaration(s *Stub) ([]lines.Parameter, bool) {
	if w.declared == nil {
		names := map[string]bool{}
		for _, s := range w.p.Scan.Stubs {
			names[s.Name] = true
		}
		table, err := lines.New(w.p.Scan.Object, w.p.Scan.Machine)
		if err == nil {
			w.declared, err = table.Prototypes(func(name string) bool { return names[name] })
		}
		if err != nil {
			w.p.Warnings = append(w.p.Warnings, err)
		}
		if w.declared == nil {
			w.declared = map[string][]lines.Parameter{}
		}
	}
	params, ok := w.declared[s.Name]
	return params, ok
}

// probe describes the probe of a site: as a listing does, but for dashes.
func (w *noteWriter) probe(site *Site) (stapsdt.Probe, error) {
	s := site.Stub
	known, err := w.known(s.ID)
	if err != nil {
		return stapsdt.Probe{}, err
	}
	args := site.Operands
	if site.Change.Site.Form != arch.Nop {
		_, _, data, _ := w.p.Scan.Object.ABI()
		args = stapsdt.Operands(w.p.Scan.Machine, site.Change.Site.Form, data, w.types(s, known.Args))
	}
	return stapsdt.Probe{Provider: inSource(known.Provider), Name: inSource(known.Name), Args: args}, nil
}

// known is what is known of a probe: by this object, else by others, else by its ID.
func (w *noteWriter) known(id string) (linkerset.Probe, error) {
	if ref, ok := w.objects[w.p.Options.ProbePrefix+id]; ok {
		return w.probes.Of(ref)
	}
	return w.p.Options.elsewhere(w.p.Scan.Object, id)
}

// inSource writes a name with the __ that stands for a dash in sources. perf takes no
// dash in a note, and SystemTap, which replaces those that it is asked for, does not
// find one.
func inSource(name string) string { return strings.ReplaceAll(name, "-", "__") }

// types finds the types of a stub's arguments: what the program says of the probe,
// else the declaration of the stub as the compiler has seen it, else what the
// user says. Of the rest any register may hold one.
func (w *noteWriter) types(s *Stub, args []linkerset.Argument) []stapsdt.Type {
	m := w.p.Scan.Machine
	var types []stapsdt.Type
	if len(args) > 0 {
		for i, a := range args {
			if a.Index != i {
				break // one is missing, or there twice
			}
			types = append(types, stapsdt.Native(a.Native, m))
		}
		return types
	}
	if params, ok := w.declaration(s); ok {
		for _, p := range params {
			types = append(types, stapsdt.Type{Size: p.Size, Signed: p.Signed})
		}
		return types
	}
	if types, ok := w.p.Options.Prototypes.of(s, m); ok {
		return types
	}
	return stapsdt.Words(m)
}

// note writes the notes of the probe calls of one section, whose recorded
// addresses are at, and has the section keep them alive.
func (a *applier) note(sites []*Site, at []linkerset.Ref) error {
	rs := sites[0].Relocs
	probes := make([]stapsdt.Probe, len(sites))
	for i, s := range sites {
		var err error
		if probes[i], err = a.notes.probe(s); err != nil {
			return err
		}
		probes[i].Site, probes[i].Semaphore.Sym = at[i], a.semaphore(s.Stub)
	}
	keep, err := a.notes.Add(rs.Target, rs.Rela, probes)
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
