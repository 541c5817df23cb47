package patch

// A tracer raises the semaphore of a probe for as long as it traces it: that is what
// makes an is-enabled test true in user space (package stapsdt). Which probes of an
// object have one, and where it comes from, is planned here.

import (
	"debug/elf"
	"fmt"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/linkerset"
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

// GuardPrefix is what the symbols of semaphores begin with that guards of include/sdt.h
// define and read, before the id of the probe. A preprocessor cannot make the name of
// one that tracers expect; so it is the conversion that gives them that
// (Names.Guards).
const GuardPrefix = "__dtrace_semaphore_"

// Guard is the symbol of a semaphore that guards read.
type Guard struct {
	Symbol uint32 // its index
	ID     string // of the probe
}

// findGuards finds the semaphores of guards.
func (s *Scan) findGuards(prefix string) error {
	syms, err := s.Object.Symbols()
	if err != nil || prefix == "" || !syms.Mentions(prefix) {
		return err
	}
	for i := 1; i < syms.Len(); i++ {
		if name := syms.Name(i); len(name) > len(prefix) && name[:len(prefix)] == prefix {
			if err := s.limits.stub(s.Object, name); err != nil {
				return err
			}
			s.Guards = append(s.Guards, Guard{uint32(i), name[len(prefix):]})
		}
	}
	return nil
}

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

// semaphores are those of an object.
type semaphores struct {
	all  []*semaphore // in the order in which they are met
	byID map[string]*semaphore
}

// planSemaphores finds out which semaphores there are to be.
func (p *Plan) planSemaphores() error {
	p.semaphores.byID = map[string]*semaphore{}
	if !p.Options.Stapsdt || p.Scan.Machine == nil || len(p.Scan.Calls)+len(p.Scan.Guards) == 0 {
		return nil
	}
	names, err := p.knowledge()
	if err != nil {
		return err
	}
	byName := map[string]*semaphore{}
	of := func(id string) (*semaphore, error) {
		if s := p.semaphores.byID[id]; s != nil {
			return s, nil
		}
		known, err := names.probe(id)
		if err != nil {
			return nil, err
		}
		name := stapsdt.SemaphoreName(linkerset.InSource(known.Provider), linkerset.InSource(known.Name))
		s := byName[name]
		if s == nil {
			s = &semaphore{name: name}
			byName[name], p.semaphores.all = s, append(p.semaphores.all, s)
		}
		p.semaphores.byID[id] = s
		return s, nil
	}
	for i := range p.Scan.Calls {
		stub := p.Scan.Calls[i].Stub
		s, err := of(stub.ID)
		if err != nil {
			return err
		}
		s.tested = s.tested || stub.Kind == arch.Enabled
		s.noted = s.noted || stub.Kind == arch.Probe
	}
	for _, g := range p.Scan.Guards {
		s, err := of(g.ID)
		if err == nil {
			err = p.useSymbol(s, g.Symbol, false)
		}
		if err != nil {
			return err
		}
	}
	return p.useNamed(byName)
}

// useNamed has the semaphores use the symbols that have their names.
func (p *Plan) useNamed(byName map[string]*semaphore) error {
	syms, err := p.Scan.Object.Symbols()
	if err != nil || !syms.Mentions(stapsdt.SemaphoreSuffix) {
		return err
	}
	for i := 1; i < syms.Len(); i++ {
		s := byName[syms.Name(i)]
		if typ := elf.ST_TYPE(syms.Info(i)); s == nil || typ == elf.STT_FILE || typ == elf.STT_SECTION {
			continue
		}
		if err := p.useSymbol(s, uint32(i), true); err != nil {
			return err
		}
	}
	return nil
}

// useSymbol has a semaphore use a symbol of the object. Of several, which are those of
// guards before they are renamed and after it, as ld -r may bring them together, or
// references and a definition, it uses the definition that linkers keep.
func (p *Plan) useSymbol(s *semaphore, i uint32, named bool) error {
	syms, err := p.Scan.Object.Symbols()
	if err != nil {
		return err
	}
	sym := syms.At(int(i))
	if is := p.misuse(syms, s, i, &sym); is != "" {
		return &elfreloc.Error{File: p.Scan.Object.Name, Err: fmt.Errorf("symbol %q would be the semaphore of a probe, and is %s", sym.Name, is)}
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
func (p *Plan) misuse(syms *elfreloc.Symbols, s *semaphore, i uint32, sym *elfreloc.Symbol) string {
	switch {
	case sym.Type == elf.STT_FUNC || sym.Type == elf.STT_GNU_IFUNC || sym.Defined() && p.Scan.Object.Sections[sym.Section].Executable():
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
func (p *Plan) isBetter(syms *elfreloc.Symbols, s *semaphore, i uint32) (bool, error) {
	section := syms.At(int(i)).Section
	if section == 0 || !s.defined {
		return section != 0, nil
	}
	groups, err := p.Scan.Object.Groups()
	return groups[section] < groups[syms.At(int(s.symbol)).Section], err
}

// isOurs reports whether a symbol is that of a semaphore as guards and conversions define
// it.
func (p *Plan) isOurs(syms *elfreloc.Symbols, i uint32) bool {
	sym := syms.At(int(i))
	return sym.Defined() && sym.Bind == elf.STB_WEAK && sym.Visibility() == elf.STV_HIDDEN && stapsdt.HoldsSemaphores(&p.Scan.Object.Sections[sym.Section])
}

// wanted reports whether the object has to define a semaphore.
func (s *semaphore) wanted(o *Options) bool {
	return !s.defined && (s.tested || s.noted && o.Semaphores == All)
}

// semaphoreSize is arch.Env.Semaphore for the calls of a stub. That two bytes of zero are
// behind a semaphore is known of those alone that this object makes, or a guard in it.
func (p *Plan) semaphoreSize(stub *Stub) int {
	s := p.semaphores.byID[stub.ID]
	switch {
	case s == nil || stub.Kind != arch.Enabled:
		return 0
	case s.foreign:
		return stapsdt.SemaphoreSize
	}
	return stapsdt.SemaphoreRoom
}

// addSemaphores gives the semaphores their names, and adds those that the object lacks.
func (a *applier) addSemaphores() error {
	w := stapsdt.NewSemaphores(a.e, a.m)
	for _, s := range a.p.semaphores.all {
		sym, err := s.symbol, error(nil)
		switch {
		case s.wanted(&a.p.Options):
			sym, err = w.Define(sym, s.name)
		case sym != 0:
			a.useSemaphore(s)
		case s.noted:
			sym = w.Refer(s.name)
		}
		if err != nil {
			return err
		}
		for _, other := range s.same {
			a.e.RemoveSymbol(other, sym)
		}
		a.semaphores[s] = sym
	}
	return nil
}

// useSemaphore gives the symbol of a semaphore its name. Where it is loaded from, it
// has to be in the same image.
func (a *applier) useSemaphore(s *semaphore) {
	old := a.e.Symbol(s.symbol)
	sym := old
	sym.Name = s.name
	if s.tested && isVisible(sym) {
		sym = hidden(sym)
	}
	if sym != old {
		a.e.SetSymbol(s.symbol, sym)
	}
}

// semaphore is the symbol of the semaphore of a stub's probe, 0 for none.
func (a *applier) semaphore(stub *Stub) uint32 { return a.semaphores[a.p.semaphores.byID[stub.ID]] }

// testPrefix is what the helpers are called that load semaphores, before the name of the
// probe.
const testPrefix = "__sdt_enabled_"

// test returns the symbol of the helper that loads the semaphore of a site's probe, which
// is added once for an object.
func (a *applier) test(s *Site) (uint32, error) {
	of := a.p.semaphores.byID[s.Stub.ID]
	if sym := a.tests[of]; sym != 0 {
		return sym, nil
	}
	t := a.m.Traits()
	name := testPrefix + strings.TrimSuffix(of.name, stapsdt.SemaphoreSuffix)
	sym := a.e.AddSymbol(elfreloc.Symbol{Name: name, Bind: elf.STB_LOCAL, Type: elf.STT_FUNC})
	sec, size, err := a.addHelper(".text."+name, s.Relocs.Rela, map[string]uint32{semaphoreSymbol: a.semaphores[of], selfSymbol: sym}, arch.Stub{
		Kind: arch.Enabled, LandingPad: (t.Veneers || a.p.indirect) && t.Features.LandingPad != 0, Thunk: a.p.Thunk, Semaphore: semaphoreSymbol, Self: selfSymbol,
	})
	function := a.e.Symbol(sym)
	function.Section, function.Size = sec, size
	a.e.SetSymbol(sym, function)
	a.tests[of] = sym
	return sym, err
}

// What a helper is told that symbols are called, which it names in relocations alone. No
// return thunk is called so.
const (
	semaphoreSymbol = "\x00semaphore"
	selfSymbol      = "\x00self"
)
