package patch

import (
	"debug/elf"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
	"sdtconvert/patch/internal/probeobjects"
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
	ProbeObjects
	p      *Plan
	e      *elfreloc.Edit
	free   map[string]uint32                // the first undefined stub of each probe object
	slots  map[string]uint32                // global probe objects that records use
	global map[*Stub]linkerset.SymbolRef    // the global probe objects of stubs
	locals map[localKey]linkerset.SymbolRef // and the local ones
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
	f := &probeFinder{
		ProbeObjects: objects, p: p, e: e, slots: map[string]uint32{},
		free: map[string]uint32{}, global: map[*Stub]linkerset.SymbolRef{}, locals: map[localKey]linkerset.SymbolRef{},
	}
	for _, s := range p.Scan.Stubs {
		if _, taken := f.free[f.Name(s)]; !taken && !s.Defined {
			f.free[f.Name(s)] = s.Symbol
		}
	}
	return f, nil
}

// probeObjects finds the probe objects of stubs and guards, once for a plan.
func (p *Plan) probeObjects() (ProbeObjects, error) {
	if p.objects == nil {
		objects, err := p.Scan.ProbeObjects(p.Options.ProbePrefix)
		if err != nil {
			return objects, err
		}
		p.objects = &objects
	}
	return *p.objects, nil
}

// ProbeObjects are the probe objects of an object's stubs and guards.
type ProbeObjects struct {
	prefix  string // of their names
	objects *probeobjects.Objects
}

// ProbeObjects finds the probe objects whose names are prefix and a probe's id.
func (s *Scan) ProbeObjects(prefix string) (ProbeObjects, error) {
	wanted := map[string]bool{}
	for _, stub := range s.Stubs {
		wanted[prefix+stub.ID] = true
	}
	for _, g := range s.Guards {
		wanted[prefix+g.ID] = true
	}
	objects, err := probeobjects.Find(s.Object, prefix, wanted)
	return ProbeObjects{prefix, objects}, err
}

// Name returns the name that the probe object of one of the scan's stubs has, wherever it
// is.
func (p ProbeObjects) Name(s *Stub) string { return p.prefix + s.ID }

// Local reports whether records of a stub's sites name probe objects that are local
// symbols of the object itself, and none of that name elsewhere.
func (p ProbeObjects) Local(s *Stub) bool { return p.objects.HasLocal(p.Name(s)) }

// probe returns what the record of a site names: the probe object.
func (f *probeFinder) probe(s *Site) (linkerset.SymbolRef, error) {
	if ref, ok := f.global[s.Stub]; ok {
		return ref, nil
	}
	name := f.Name(s.Stub)
	if f.Local(s.Stub) {
		return f.local(s, name)
	}
	sym, ok := f.slots[name]
	if !ok {
		if sym, ok = f.objects.Global(name); !ok {
			sym = f.takeSlot(name)
		}
		f.slots[name] = sym
		f.hide(sym)
	}
	ref := linkerset.SymbolRef{Sym: sym}
	f.global[s.Stub] = ref
	return ref, nil
}

// takeSlot makes the symbol of a probe object, in the slot of its first stub
// that has no other use.
func (f *probeFinder) takeSlot(name string) uint32 {
	symbol := elfreloc.Symbol{Name: name, Bind: elf.STB_GLOBAL}
	slot, ok := f.free[name]
	if !ok {
		return f.e.AddSymbol(symbol)
	}
	f.e.SetSymbol(slot, symbol)
	return slot
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
	if ref, ok := f.locals[key]; ok {
		return ref, nil
	}
	symbol, global, ok := f.objects.Local(name, function)
	if !ok {
		return linkerset.SymbolRef{}, f.p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.Site.Offset, fmt.Errorf(
			"several source files hold a local probe object %q, and the symbols do not tell which is meant; convert the objects before ld -r merges them", name))
	}
	syms, err := f.p.Scan.Object.Symbols()
	if err != nil {
		return linkerset.SymbolRef{}, err
	}
	object := syms.At(symbol)
	ref := linkerset.SymbolRef{Sym: uint32(symbol)}
	if global {
		f.hide(ref.Sym)
	} else {
		ref = linkerset.SymbolRef{Sym: f.e.SectionSymbol(object.Section), Addend: int64(object.Value)}
	}
	f.locals[key] = ref
	return ref, nil
}

// hide makes a probe object hidden where records hold distances, which cannot
// reach into another module.
func (f *probeFinder) hide(sym uint32) {
	if f.p.Options.Layout.Format != linkerset.Relative {
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
