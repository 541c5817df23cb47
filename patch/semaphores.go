package patch

// A tracer raises the semaphore of a probe for as long as it traces it: that is what
// makes an is-enabled test true in user space (package internal/notes). Which probes of an
// object have one, and where it comes from, is planned here.

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
)

// semaphore is the semaphore of a probe, or of several of one name.
type semaphore struct {
	name         string
	symbol       uint32   // of the object, 0 for none; it has the name, or gets it
	duplicates   []uint32 // other symbols of the object that symbol takes the place of
	defined      bool     // by the object
	alreadyNamed bool     // the symbol has the name already, so there may be a definition of 2 bytes
	tested       bool     // by a call
	hasNote      bool     // by a call that gets a note
	added        uint32   // its symbol in the edit, 0 for none
}

// objectSemaphores are the semaphores of an object.
type objectSemaphores struct {
	plan      *Plan
	describer *probeDescriber
	guards    map[string]string // by the id of a probe, the id of the guard that it shares
	list      []*semaphore      // in the order in which they are met
	byID      map[string]*semaphore
	byName    map[string]*semaphore
}

// planSemaphores plans the semaphores of the object, if there are to be any.
func (p *Plan) planSemaphores() error {
	scan := p.Scan
	if !p.Scan.Settings.Notes || scan.Machine == nil || len(scan.Calls)+len(scan.guards) == 0 {
		return nil
	}
	describer, err := p.probeDescriber()
	if err != nil {
		return err
	}
	guards, err := guardsOfProbes(scan.Object)
	if err != nil {
		return err
	}
	p.semaphores = &objectSemaphores{plan: p, describer: describer, guards: guards, byID: map[string]*semaphore{}, byName: map[string]*semaphore{}}
	return p.semaphores.find()
}

// find finds out which semaphores the object uses, and which it is to have.
func (p *objectSemaphores) find() error {
	for i := range p.plan.Scan.Calls {
		stub := p.plan.Scan.Calls[i].Stub
		s, err := p.lookup(stub.ID)
		if err != nil {
			return err
		}
		s.tested = s.tested || stub.Kind == arch.Enabled
		s.hasNote = s.hasNote || stub.Kind == arch.Probe
	}
	for _, g := range p.plan.Scan.guards {
		s, err := p.lookup(g.ID)
		if err == nil {
			err = p.useSymbol(s, g.Symbol, false)
		}
		if err != nil {
			return err
		}
	}
	return p.useNamed()
}

// lookup returns the semaphore of a probe: its own, or its shared guard's.
func (p *objectSemaphores) lookup(id string) (*semaphore, error) {
	if s := p.byID[id]; s != nil {
		return s, nil
	}
	semaphoreID := id
	if guard := p.guards[id]; guard != "" {
		semaphoreID = guard
	}
	probe, err := p.describer.probe(semaphoreID)
	if err != nil {
		return nil, err
	}
	name := notes.SemaphoreName(linkerset.EncodeName(probe.Provider), linkerset.EncodeName(probe.Name))
	s := p.byName[name]
	if s == nil {
		s = &semaphore{name: name}
		p.byName[name], p.list = s, append(p.list, s)
	}
	p.byID[id] = s
	return s, nil
}

// useNamed makes the semaphores use the symbols that have their names.
func (p *objectSemaphores) useNamed() error {
	syms := p.plan.Scan.symbols()
	for i := 1; i < syms.Len(); i++ {
		sym := syms.At(i)
		s := p.byName[sym.Name]
		if s == nil || sym.Type == elf.STT_FILE || sym.Type == elf.STT_SECTION {
			continue
		}
		if err := p.useSymbol(s, uint32(i), true); err != nil {
			return err
		}
	}
	return nil
}

// useSymbol makes a semaphore use a symbol of the object. ld -r can leave several: of guards that have been renamed beside
// others, or references beside a definition. The definition that linkers keep is used.
func (p *objectSemaphores) useSymbol(s *semaphore, i uint32, hasName bool) error {
	sym := p.plan.Scan.symbols().At(int(i))
	if fault := p.misuse(s, i, &sym); fault != "" {
		return &elfreloc.Error{File: p.plan.Scan.Object.Name, Err: fmt.Errorf("symbol %q would be the semaphore of a probe, and is %s", sym.Name, fault)}
	}
	s.alreadyNamed = s.alreadyNamed || hasName
	better, err := p.isBetter(s, sym.Section)
	switch {
	case err != nil:
		return err
	case s.symbol == 0:
		s.symbol = i
	case better:
		s.duplicates, s.symbol = append(s.duplicates, s.symbol), i
	default:
		s.duplicates = append(s.duplicates, i)
	}
	s.defined = s.defined || sym.Section != 0
	return nil
}

// misuse says what keeps a symbol from being a semaphore, "" for nothing.
func (p *objectSemaphores) misuse(s *semaphore, i uint32, sym *elfreloc.Symbol) string {
	switch {
	case sym.Type == elf.STT_FUNC || sym.Type == elf.STT_GNU_IFUNC || sym.Defined() && p.plan.Scan.Object.Sections[sym.Section].Executable():
		return "code"
	case sym.Type == elf.STT_TLS:
		return "local to threads"
	case sym.Type != elf.STT_OBJECT && sym.Type != elf.STT_NOTYPE && sym.Type != elf.STT_COMMON:
		return fmt.Sprintf("of type %v", sym.Type)
	case sym.Bind == elf.STB_LOCAL:
		return "local; convert the objects before objcopy makes their symbols local, or link with -B in the ld -r before it"
	case sym.Section == elfreloc.SectionAbs:
		return "absolute"
	case s.defined && sym.Section != 0 && !(p.isOurs(s.symbol) && p.isOurs(i)):
		return fmt.Sprintf("defined beside %q", p.plan.Scan.symbols().Name(int(s.symbol)))
	}
	return ""
}

// isBetter reports whether another symbol, defined in a section, is to be that of a semaphore instead of the one
// it has. Of two definitions each is in a COMDAT group, which now get the same name: so
// linkers drop the second group, and what it defines.
func (p *objectSemaphores) isBetter(s *semaphore, section int) (bool, error) {
	if section == 0 || !s.defined {
		return section != 0, nil
	}
	groups, err := p.plan.Scan.Object.Groups()
	used, _ := p.plan.Scan.symbols().Place(int(s.symbol))
	return groups[section] < groups[used], err
}

// isOurs reports whether guards or conversions have defined a semaphore.
func (p *objectSemaphores) isOurs(i uint32) bool {
	sym := p.plan.Scan.symbols().At(int(i))
	return sym.Defined() && sym.Bind == elf.STB_WEAK && sym.Visibility() == elf.STV_HIDDEN && notes.HoldsSemaphores(&p.plan.Scan.Object.Sections[sym.Section])
}

// loadableBytes returns how many bytes of a semaphore a test may load (arch.Context.SemaphoreBytes): four if this object or a guard
// in it defines the semaphore, because two bytes of zero follow; two otherwise.
func (p *objectSemaphores) loadableBytes(id string, kind arch.Kind) int {
	if p == nil {
		return 0
	}
	s := p.byID[id]
	switch {
	case s == nil || kind != arch.Enabled:
		return 0
	case s.alreadyNamed:
		return notes.SemaphoreSize
	}
	return notes.SemaphoreRoom
}

// add gives the semaphores their names, and adds those that the object lacks.
func (p *objectSemaphores) add(e *elfreloc.Edit) error {
	if p == nil {
		return nil
	}
	w := notes.NewSemaphores(e, p.plan.Scan.Machine)
	for _, s := range p.list {
		var err error
		sym := s.symbol
		switch {
		case !s.defined && (s.tested || s.hasNote && p.plan.Scan.Settings.AllSemaphores): // the object has to define it
			sym, err = w.Define(sym, s.name)
		case sym != 0:
			nameSemaphore(e, s)
		case s.hasNote:
			sym = w.Refer(s.name)
		}
		if err != nil {
			return err
		}
		for _, duplicate := range s.duplicates {
			e.RemoveSymbol(duplicate, sym)
		}
		s.added = sym
	}
	return nil
}

// nameSemaphore gives the symbol of a semaphore its name. Where it is loaded from, it has to be in
// the same image.
func nameSemaphore(e *elfreloc.Edit, s *semaphore) {
	old := e.Symbol(s.symbol)
	sym := old
	sym.Name = s.name
	if s.tested {
		sym = sym.Hidden()
	}
	if sym != old {
		e.SetSymbol(s.symbol, sym)
	}
}

// symbol returns the symbol that the semaphore of a probe has in the edit, 0 for none, and the
// semaphore's name without its suffix.
func (p *objectSemaphores) symbol(id string) (sym uint32, name string) {
	if p == nil || p.byID[id] == nil {
		return 0, ""
	}
	s := p.byID[id]
	return s.added, strings.TrimSuffix(s.name, notes.SemaphoreSuffix)
}

// guardedSection is the name of the sections that tie probes to guards of other names: pairs of strings, each an id
// with "_" before it, of a probe and of its guard. docs/records.md is the contract with what writes it.
const guardedSection = ".sdt_guards"

// guardsOfProbes returns the id of the guard of each probe that is tied to one.
func guardsOfProbes(o *elfreloc.Object) (map[string]string, error) {
	guards := map[string]string{}
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Name != guardedSection || !s.InFile() {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		for at := 0; at < len(data); {
			probe, guard, size, err := guardedPair(data[at:])
			if err == nil && guards[probe] != "" && guards[probe] != guard {
				err = fmt.Errorf("the probe %s has the guards %s and %s, want one", probe, guards[probe], guard)
			}
			if err != nil {
				return nil, o.OffsetError(i, uint64(at), err)
			}
			guards[probe] = guard
			at += size
		}
	}
	return guards, nil
}

// guardedPair reads a pair, and returns its size in bytes.
func guardedPair(data []byte) (probe, guard string, size int, err error) {
	var ids [2]string
	for i := range ids {
		text, after, ended := bytes.Cut(data[size:], []byte{0})
		id, ok := bytes.CutPrefix(text, []byte("_"))
		if !ended || !ok || len(id) == 0 {
			return "", "", 0, errors.New(`want pairs of strings, each "_" and an id`)
		}
		ids[i], size = string(id), len(data)-len(after)
	}
	return ids[0], ids[1], size, nil
}
