package tracers

// A tracer raises the semaphore of a probe for as long as it traces it: that is what
// makes an is-enabled test true in user space (package stapsdt). Which probes of an
// object have one, and where it comes from, is planned here.

import (
	"debug/elf"
	"fmt"
	"iter"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/linkerset"
)

// semaphore is the semaphore of a probe, or of several of one name.
type semaphore struct {
	name    string
	symbol  uint32   // of the object, 0 for none; it has the name, or gets it
	same    []uint32 // other symbols of the object that symbol takes the place of
	defined bool     // by the object
	foreign bool     // the symbol has the name already, so there may be a definition of 2 bytes
	tested  bool     // by a call
	noted   bool     // by a call that gets a note
}

// Semaphores are those of an object.
type Semaphores struct {
	probes *Probes
	all    []*semaphore // in the order in which they are met
	byID   map[string]*semaphore
	byName map[string]*semaphore
}

// PlanSemaphores finds out which semaphores the probes of an object are to have. calls are
// the IDs and kinds of all its calls.
func PlanSemaphores(probes *Probes, calls iter.Seq2[string, arch.Kind]) (*Semaphores, error) {
	p := &Semaphores{probes: probes, byID: map[string]*semaphore{}, byName: map[string]*semaphore{}}
	for id, kind := range calls {
		s, err := p.lookup(id)
		if err != nil {
			return nil, err
		}
		s.tested = s.tested || kind == arch.Enabled
		s.noted = s.noted || kind == arch.Probe
	}
	for _, g := range probes.object.Guards {
		s, err := p.lookup(g.ID)
		if err == nil {
			err = p.useSymbol(s, g.Symbol, false)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, p.useNamed()
}

// lookup returns the semaphore of a probe.
func (p *Semaphores) lookup(id string) (*semaphore, error) {
	if s := p.byID[id]; s != nil {
		return s, nil
	}
	known, err := p.probes.probe(id)
	if err != nil {
		return nil, err
	}
	name := stapsdt.SemaphoreName(linkerset.EncodeName(known.Provider), linkerset.EncodeName(known.Name))
	s := p.byName[name]
	if s == nil {
		s = &semaphore{name: name}
		p.byName[name], p.all = s, append(p.all, s)
	}
	p.byID[id] = s
	return s, nil
}

// Len returns the number of semaphores that the object uses or gets.
func (p *Semaphores) Len() int {
	if p == nil {
		return 0
	}
	return len(p.all)
}

// useNamed makes the semaphores use the symbols that have their names.
func (p *Semaphores) useNamed() error {
	syms, err := p.probes.object.Symbols()
	if err != nil {
		return err
	}
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

// useSymbol makes a semaphore use a symbol of the object. Of several, which are those of
// guards before they are renamed and after it, as ld -r may bring them together, or
// references and a definition, it uses the definition that linkers keep.
func (p *Semaphores) useSymbol(s *semaphore, i uint32, named bool) error {
	syms, err := p.probes.object.Symbols()
	if err != nil {
		return err
	}
	sym := syms.At(int(i))
	if is := p.misuse(syms, s, i, &sym); is != "" {
		return &elfreloc.Error{File: p.probes.object.Name, Err: fmt.Errorf("symbol %q would be the semaphore of a probe, and is %s", sym.Name, is)}
	}
	s.foreign = s.foreign || named
	better, err := p.isBetter(syms, s, i)
	switch {
	case err != nil:
		return err
	case s.symbol == 0:
		s.symbol = i
	case better:
		s.same, s.symbol = append(s.same, s.symbol), i
	default:
		s.same = append(s.same, i)
	}
	s.defined = s.defined || sym.Section != 0
	return nil
}

// misuse says what keeps a symbol from being that of a semaphore, "" for nothing.
func (p *Semaphores) misuse(syms *elfreloc.Symbols, s *semaphore, i uint32, sym *elfreloc.Symbol) string {
	switch {
	case sym.Type == elf.STT_FUNC || sym.Type == elf.STT_GNU_IFUNC || sym.Defined() && p.probes.object.Sections[sym.Section].Executable():
		return "code"
	case sym.Type == elf.STT_TLS:
		return "local to threads"
	case sym.Type != elf.STT_OBJECT && sym.Type != elf.STT_NOTYPE && sym.Type != elf.STT_COMMON:
		return fmt.Sprintf("of type %v", sym.Type)
	case sym.Bind == elf.STB_LOCAL:
		return "local"
	case sym.Section == elfreloc.SectionAbs:
		return "absolute"
	case s.defined && sym.Section != 0 && !(p.isOurs(syms, s.symbol) && p.isOurs(syms, i)):
		return fmt.Sprintf("defined beside %q", syms.Name(int(s.symbol)))
	}
	return ""
}

// isBetter reports whether another symbol is to be that of a semaphore instead of the one
// it has. Of two definitions each is in a COMDAT group, which now get the same name: so
// linkers drop the second group, and what it defines.
func (p *Semaphores) isBetter(syms *elfreloc.Symbols, s *semaphore, i uint32) (bool, error) {
	section := syms.At(int(i)).Section
	if section == 0 || !s.defined {
		return section != 0, nil
	}
	groups, err := p.probes.object.Groups()
	return groups[section] < groups[syms.At(int(s.symbol)).Section], err
}

// isOurs reports whether a symbol is that of a semaphore as guards and conversions define
// it.
func (p *Semaphores) isOurs(syms *elfreloc.Symbols, i uint32) bool {
	sym := syms.At(int(i))
	return sym.Defined() && sym.Bind == elf.STB_WEAK && sym.Visibility() == elf.STV_HIDDEN && stapsdt.HoldsSemaphores(&p.probes.object.Sections[sym.Section])
}

// Room is arch.Env.Semaphore for calls of a kind of a probe. That two bytes of zero are
// behind a semaphore is known of those alone that this object makes, or a guard in it.
func (p *Semaphores) Room(id string, kind arch.Kind) int {
	if p == nil {
		return 0
	}
	s := p.byID[id]
	switch {
	case s == nil || kind != arch.Enabled:
		return 0
	case s.foreign:
		return stapsdt.SemaphoreSize
	}
	return stapsdt.SemaphoreRoom
}

// Symbols are the symbols of semaphores.
type Symbols struct {
	of     *Semaphores
	byName map[string]uint32 // 0 for none
}

// Add gives the semaphores their names, and adds those that the object lacks.
func (p *Semaphores) Add(e *elfreloc.Edit) (Symbols, error) {
	symbols := Symbols{p, map[string]uint32{}}
	if p == nil {
		return symbols, nil
	}
	w := stapsdt.NewSemaphores(e, p.probes.object.Machine)
	for _, s := range p.all {
		sym, err := s.symbol, error(nil)
		switch {
		case s.wanted(p.probes.options):
			sym, err = w.Define(sym, s.name)
		case sym != 0:
			use(e, s)
		case s.noted:
			sym = w.Refer(s.name)
		}
		if err != nil {
			return symbols, err
		}
		for _, other := range s.same {
			e.RemoveSymbol(other, sym)
		}
		symbols.byName[s.name] = sym
	}
	return symbols, nil
}

// wanted reports whether the object has to define a semaphore.
func (s *semaphore) wanted(o *Options) bool {
	return !s.defined && (s.tested || s.noted && o.AllSemaphores)
}

// use gives the symbol of a semaphore its name. Where it is loaded from, it has to be in
// the same image.
func use(e *elfreloc.Edit, s *semaphore) {
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

// Lookup returns the symbol of the semaphore of a probe, 0 for none, and what the semaphore is
// called without its suffix.
func (s Symbols) Lookup(id string) (sym uint32, name string) {
	if s.of == nil || s.of.byID[id] == nil {
		return 0, ""
	}
	name = s.of.byID[id].name
	return s.byName[name], strings.TrimSuffix(name, stapsdt.SemaphoreSuffix)
}
