package patch

// Package tracers writes what tracers of user space read. This file has the options for it,
// and passes on what scans and plans know.

import (
	"fmt"
	"io"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
	"sdtconvert/patch/internal/tracers"
)

// Semaphores say which probes of an object get a semaphore, where there are notes.
type Semaphores uint8

const (
	Tested Semaphores = iota // those that the object tests
	All                      // and those that it has sites of
)

var semaphoreNames = [...]string{Tested: "tested", All: "all"}

func (s Semaphores) String() string { return semaphoreNames[s] }

// ParseSemaphores is the reverse of String.
func ParseSemaphores(name string) (Semaphores, error) {
	for s, known := range semaphoreNames {
		if name == known {
			return Semaphores(s), nil
		}
	}
	return 0, fmt.Errorf("semaphores are %s or %s, and not %q", Tested, All, name)
}

// ProbeSource says what other files of a link define: an object that uses a probe
// need not define it. Several goroutines ask at once.
type ProbeSource interface {
	// Probe is what the definition of a probe object says, by the probe's ID, and
	// whether there is one. An error says why it is not known which counts. The probe
	// is shared between all calls, and not to be modified.
	Probe(id string) (probe linkerset.Probe, ok bool, err error)
}

// Prototypes are the types of stubs' parameters, in their order and as C writes them,
// by the name of the stub or by the ID of its probe. Those under the stub's name are
// preferred. A type that is not known as an integer or a pointer is taken for a word.
type Prototypes map[string][]string

// ReadPrototypes reads declarations of stubs, or of IDs of probes, one a line:
//
//	void __dtrace_probe_tcp___send(struct tcpcb *, int, unsigned char);
//	tcp___drop(int reason)
//
// Lines that are empty, or begin with # or //, say nothing. Every type has to be
// known as an integer or a pointer; the name of a parameter stays behind it. file is the name of
// what is read, for errors, which begin with it and the number of the line.
func ReadPrototypes(r io.Reader, file string) (Prototypes, error) {
	return tracers.ReadPrototypes(r, file)
}

// planSemaphores plans the semaphores of the object, if there are to be any.
func (p *Plan) planSemaphores() error {
	if !p.Options.Stapsdt || p.Scan.Machine == nil || len(p.Scan.Calls)+len(p.Scan.Guards) == 0 {
		return nil
	}
	known, err := p.probes()
	if err != nil {
		return err
	}
	p.semaphores, err = tracers.PlanSemaphores(known, func(yield func(string, arch.Kind) bool) {
		for i := range p.Scan.Calls {
			if stub := p.Scan.Calls[i].Stub; !yield(stub.ID, stub.Kind) {
				return
			}
		}
	})
	return err
}

// probes returns what is known of the probes of the object. It is made once for a plan:
// semaphores, notes and OmittedArgs need it. The machine must not be nil.
func (p *Plan) probes() (*tracers.Probes, error) {
	if p.known != nil {
		return p.known, nil
	}
	im, err := p.Scan.Image()
	if err != nil {
		return nil, err
	}
	objects, err := p.probeObjects()
	if err != nil {
		return nil, err
	}
	o := &tracers.Object{ProbeObjects: objects, Object: p.Scan.Object, Machine: p.Scan.Machine, Image: im, Functions: p.Scan.Functions}
	for _, s := range p.Scan.Stubs {
		o.Stubs = append(o.Stubs, tracers.Stub{Name: s.Name, ID: s.ID})
	}
	for _, g := range p.Scan.Guards {
		o.Guards = append(o.Guards, tracers.Guard(g))
	}
	p.known = tracers.NewProbes(o, &tracers.Options{
		Stapsdt: p.Options.Stapsdt, DTrace: p.Options.DTrace, AllSemaphores: p.Options.Semaphores == All,
		ProbePrefix: p.Options.ProbePrefix, Prototypes: p.Options.Prototypes, ProbeSource: p.Options.ProbeSource,
	})
	return p.known, nil
}

// note writes the notes of the probe calls of one section, and has the section keep them
// alive.
func (a *applier) note(sites []*Site, records []linkerset.Record) error {
	first, rs := sites[0].Reference, sites[0].Relocs
	calls := make([]tracers.Site, len(sites))
	for i, s := range sites {
		sym, _ := a.semaphores.Lookup(s.Stub.ID)
		calls[i] = tracers.Site{
			Stub: tracers.Stub{Name: s.Stub.Name, ID: s.Stub.ID}, Recorded: records[i].Site, Semaphore: sym,
			Section: rs.Target, Offset: s.Change.Site.Offset, Form: s.Change.Site.Form, Operands: s.Operands,
		}
	}
	keep, err := a.notes.Add(rs.Target, rs.Rela, calls)
	if err != nil || a.p.Options.DropRelocations {
		return err
	}
	for _, ref := range keep {
		if err := a.e.AddRelocation(rs.Target, a.none(first, ref)); err != nil {
			return err
		}
	}
	return nil
}

// OperandsSection is ".sdt_operands", the name of the sections that say where the arguments
// of marked nops are (arch.Nop).
const OperandsSection = tracers.OperandsSection

// readOperands finds the operands of calls that are marks.
func (s *Scan) readOperands() (tracers.Operands, error) {
	if !s.hasMarks() {
		return nil, nil
	}
	none, found := s.Machine.Traits().None, tracers.Operands{}
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Reloc.Type == none {
			found[c.place()] = nil
		}
	}
	return found, found.Find(s.Object, s.Machine)
}

// UnconvertedSection is the name of the sections in which assembly that marks NOPs says of
// which probes: strings, each "_" and an id. Conversions empty them, so that linkers put those of
// other objects alone into an image.
const UnconvertedSection = ".sdt_unconverted"

// emptyUnconverted empties these sections.
func (p *Plan) emptyUnconverted(e *elfreloc.Edit) {
	if len(p.Sites) == 0 || !p.Scan.hasMarks() {
		return
	}
	for i := range p.Scan.Object.Sections {
		if p.Scan.Object.Sections[i].Name == UnconvertedSection {
			e.Empty(i)
		}
	}
}

// OperandsAt returns the operands of marked nops, of those of the given places that have an
// entry in OperandsSection. They stay there when an object is converted.
func (s *Scan) OperandsAt(at []image.Addr) (map[image.Addr]string, error) {
	found := tracers.Operands{}
	for _, a := range at {
		found[a] = nil
	}
	if err := found.Find(s.Object, s.Machine); err != nil {
		return nil, err
	}
	texts := map[image.Addr]string{}
	for _, a := range at {
		if text := found[a]; text != nil {
			texts[a] = *text
		}
	}
	return texts, nil
}

// OmittedArgs returns which arguments of each stub's probe its notes leave out, as a part
// of a sentence: "argument 2, a floating-point number, and those behind it". What notes
// tell in full is not there.
func (p *Plan) OmittedArgs() (map[*Stub]string, error) {
	out := map[*Stub]string{}
	if len(p.Sites) == 0 || p.Scan.Machine == nil {
		return out, nil
	}
	known, err := p.probes()
	if err != nil {
		return nil, err
	}
	for i := range p.Sites {
		s := p.Sites[i].Stub
		if _, done := out[s]; done || s.Kind != arch.Probe {
			continue
		}
		text, err := known.OmittedArgs(tracers.Stub{Name: s.Name, ID: s.ID})
		if err != nil {
			return nil, err
		}
		if text != "" {
			out[s] = text
		}
	}
	return out, nil
}
