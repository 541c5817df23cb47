package patch

import (
	"debug/elf"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// probeFinder finds the probe object of each stub, and sees to it that no stub
// is left among the symbols.
//
// A probe object is a global symbol, defined somewhere in the link: then the
// stub's own slot in the symbol table becomes an undefined reference to it,
// unless the table has one already. Or it is local to a function, as FreeBSD's
// DTRACE_PROBEn makes it: then records go through the symbol of its section,
// because tools strip local symbols. In C++ that of an inline function is one for
// all objects, and the linker chooses whose: records go through its own symbol.
type probeFinder struct {
	*ProbeObjects
	p       *Plan
	e       *elfreloc.Edit
	free    map[string]uint32                // the first undefined stub of each probe object
	slots   map[string]uint32                // global probe objects that records use
	symbols map[*Stub]uint32                 // the same, by the stubs of sites
	chosen  map[localKey]linkerset.SymbolRef // local probe objects that records use
}

type localKey struct {
	name     string
	function int // symbol of the site's function, 0 for none
}

func newProbeFinder(p *Plan, e *elfreloc.Edit) (*probeFinder, error) {
	objects, err := p.probeObjects()
	if err != nil {
		return nil, err
	}
	stubs := len(p.Scan.Stubs)
	f := &probeFinder{
		ProbeObjects: objects, p: p, e: e, slots: make(map[string]uint32, stubs), symbols: make(map[*Stub]uint32, stubs),
		free: make(map[string]uint32, stubs), chosen: map[localKey]linkerset.SymbolRef{},
	}
	for _, s := range p.Scan.Stubs {
		if _, taken := f.free[f.Name(s)]; !taken && !s.Defined {
			f.free[f.Name(s)] = s.Symbol
		}
	}
	return f, nil
}

// probeObjects finds the probe objects of stubs and guards, once for a plan.
func (p *Plan) probeObjects() (*ProbeObjects, error) {
	if p.objects == nil {
		var err error
		if p.objects, err = p.Scan.ProbeObjects(); err != nil {
			return nil, err
		}
	}
	return p.objects, nil
}

// probe returns what the record of a site names: the probe object.
func (f *probeFinder) probe(s *Site) (linkerset.SymbolRef, error) {
	if sym, ok := f.symbols[s.Stub]; ok {
		return linkerset.SymbolRef{Sym: sym}, nil
	}
	name := f.Name(s.Stub)
	if f.Local(s.Stub) {
		return f.local(s, name)
	}
	sym, ok := f.slots[name]
	if !ok {
		if sym, ok = f.globals[name]; !ok {
			symbol := elfreloc.Symbol{Name: name, Bind: elf.STB_GLOBAL}
			if sym, ok = f.free[name]; ok {
				f.e.SetSymbol(sym, symbol)
			} else {
				sym = f.e.AddSymbol(symbol)
			}
		}
		f.slots[name] = sym
		f.hide(sym)
	}
	f.symbols[s.Stub] = sym
	return linkerset.SymbolRef{Sym: sym}, nil
}

// local chooses among the local probe objects of one name: that of the site's
// own function, else the first of the same source file.
func (f *probeFinder) local(s *Site, name string) (linkerset.SymbolRef, error) {
	functions, err := f.p.Scan.Functions()
	if err != nil {
		return linkerset.SymbolRef{}, err
	}
	function, _ := functions.Lookup(s.Relocs.Target, s.Change.Site.Offset)
	key := localKey{name, function.Symbol}
	if ref, ok := f.chosen[key]; ok {
		return ref, nil
	}
	object := f.choose(function, f.locals[name])
	if object == nil {
		return linkerset.SymbolRef{}, f.p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.Site.Offset, fmt.Errorf(
			"several source files hold a local probe object %q, and the symbols do not tell which is meant; convert the objects before ld -r merges them", name))
	}
	ref := linkerset.SymbolRef{Sym: uint32(object.symbol)}
	if object.global {
		f.hide(ref.Sym)
	} else {
		section, value := f.p.Scan.symbols().Place(object.symbol)
		ref = linkerset.SymbolRef{Sym: f.e.SectionSymbol(section), Addend: int64(value)}
	}
	f.chosen[key] = ref
	return ref, nil
}

// hide makes a probe object hidden where records hold distances, which cannot
// reach into another module.
func (f *probeFinder) hide(sym uint32) {
	if f.p.Scan.Settings.Layout.Format != linkerset.Relative {
		return
	}
	if s := f.e.Symbol(sym); s != s.Hidden() {
		f.e.SetSymbol(sym, s.Hidden())
	}
}

// removeStubs removes the stubs that are no longer called, so that no linker
// or loader looks for them. Debug information and call graphs stop naming them, or they would take the probe object for
// a function. If the machine is unknown, there are no calls, and no relocation that does nothing.
func (f *probeFinder) removeStubs() {
	if f.p.Scan.Machine == nil {
		return
	}
	for _, stub := range f.p.Scan.Stubs {
		if stub.Defined {
			continue
		}
		f.e.DropDebugRefs(stub.Symbol, f.p.Scan.Machine.Traits().None)
		sym := f.slots[f.Name(stub)]
		if sym != stub.Symbol {
			f.e.RemoveSymbol(stub.Symbol, sym)
		}
	}
}
