package patch

import (
	"debug/elf"
	"fmt"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
	"sdtconvert/resolve"
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
	p       *Plan
	e       *elfreloc.Edit
	globals map[string]uint32           // probe objects, and the return thunk
	locals  map[string][]localProbe     // by the probe object's name, in the order of symbols
	free    map[string]uint32           // the first undefined stub of each probe object
	known   map[*Stub]uint32            // the global probe objects of stubs
	slots   map[string]uint32           // global probe objects that records use
	files   map[int]int                 // source file of each local function's symbol
	refs    map[localKey]*linkerset.Ref // answers for local probes
}

type localProbe struct {
	symbol   int
	function string // "" where the name does not tell
	file     int    // the STT_FILE symbol before it, 0 for none
	global   bool   // and so of no file
}

type localKey struct {
	name     string
	function int // symbol of the site's function, 0 for none
}

func newProbeFinder(p *Plan, e *elfreloc.Edit) (*probeFinder, error) {
	f := &probeFinder{
		p: p, e: e, globals: map[string]uint32{}, locals: map[string][]localProbe{}, slots: map[string]uint32{},
		free: map[string]uint32{}, known: map[*Stub]uint32{}, files: map[int]int{}, refs: map[localKey]*linkerset.Ref{},
	}
	syms, err := p.Scan.Object.Symbols()
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]bool)
	for _, s := range p.Scan.Stubs {
		name := f.name(s)
		wanted[name] = true
		if _, taken := f.free[name]; !taken && !s.Defined {
			f.free[name] = s.Symbol
		}
	}
	prefix := p.Options.ProbePrefix
	if syms.Mentions(prefix) {
		f.findGlobals(syms, prefix, wanted)
		f.findLocals(syms, prefix, wanted)
	}
	if p.Thunk != "" {
		f.findGlobals(syms, p.Thunk, map[string]bool{p.Thunk: true})
	}
	return f, nil
}

// findGlobals finds the first of each wanted symbol, all of which begin with
// prefix.
func (f *probeFinder) findGlobals(syms *elfreloc.Symbols, prefix string, wanted map[string]bool) {
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		if !strings.HasPrefix(syms.Tail(i), prefix) {
			continue
		}
		if name := syms.Name(i); wanted[name] && f.globals[name] == 0 {
			f.globals[name] = uint32(i)
		}
	}
}

// findLocals finds probe objects that are local to a function or a file: gcc
// names a static of a function <name>.<N>, clang <function>.<name>[.<N>], and C++
// mangles both.
func (f *probeFinder) findLocals(syms *elfreloc.Symbols, prefix string, wanted map[string]bool) {
	file := 0
	for i := 1; i < syms.FirstGlobal(); i++ {
		switch typ := elf.ST_TYPE(syms.Info(i)); {
		case typ == elf.STT_FILE:
			file = i
		case typ != elf.STT_SECTION && strings.Contains(syms.Name(i), prefix):
			f.addLocal(localProbe{symbol: i, file: file}, syms.At(i), prefix, wanted)
		}
	}
	for i := max(1, syms.FirstGlobal()); i < syms.Len(); i++ {
		if strings.HasPrefix(syms.Tail(i), mangledPrefix) && strings.Contains(syms.Name(i), prefix) {
			f.addLocal(localProbe{symbol: i, global: true}, syms.At(i), prefix, wanted)
		}
	}
	if len(f.locals) > 0 {
		f.readFiles(syms)
	}
}

// addLocal adds a symbol if its name is that of a wanted probe object.
func (f *probeFinder) addLocal(l localProbe, s elfreloc.Symbol, prefix string, wanted map[string]bool) {
	if !s.Defined() || s.Type == elf.STT_FUNC {
		return
	}
	for at := strings.Index(s.Name, prefix); at >= 0; at = nextIndex(s.Name, prefix, at) {
		object, function, ok := unmangle(s.Name, at, wanted)
		if !ok && !l.global && (at == 0 || s.Name[at-1] == '.') {
			object = trimNumber(s.Name[at:], wanted)
			function, ok = s.Name[:max(0, at-1)], wanted[object]
		}
		if ok {
			l.function = function
			f.locals[object] = append(f.locals[object], l)
			return
		}
	}
}

func nextIndex(s, sub string, at int) int {
	if i := strings.Index(s[at+1:], sub); i >= 0 {
		return at + 1 + i
	}
	return -1
}

// trimNumber removes the ".N" that a compiler has appended, if what is left is
// wanted.
func trimNumber(name string, wanted map[string]bool) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && !wanted[name] && strings.Trim(name[dot+1:], "0123456789") == "" {
		return name[:dot]
	}
	return name
}

// readFiles notes which source file each local symbol is of: its STT_FILE symbol precedes
// it (gABI, "Symbol Table").
func (f *probeFinder) readFiles(syms *elfreloc.Symbols) {
	file := 0
	for i := 1; i < syms.FirstGlobal(); i++ {
		if elf.ST_TYPE(syms.Info(i)) == elf.STT_FILE {
			file = i
		}
		f.files[i] = file
	}
}

func (f *probeFinder) name(s *Stub) string { return f.p.Options.ProbePrefix + s.ID }

// global returns the symbol of a global name that the finder has looked for, 0
// for none.
func (f *probeFinder) global(name string) uint32 { return f.globals[name] }

// probe returns what a site's record names.
func (f *probeFinder) probe(s *Site) (linkerset.Ref, error) {
	if sym, ok := f.known[s.Stub]; ok {
		return linkerset.Ref{Sym: sym}, nil
	}
	name := f.name(s.Stub)
	if candidates := f.locals[name]; len(candidates) > 0 {
		return f.local(s, name, candidates)
	}
	sym, ok := f.slots[name]
	if !ok {
		if sym, ok = f.globals[name]; !ok {
			sym = f.takeSlot(name)
		}
		f.slots[name] = sym
		f.hide(sym)
	}
	f.known[s.Stub] = sym
	return linkerset.Ref{Sym: sym}, nil
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

// local chooses among the local probe objects of one name: that of the site's
// own function, else the first of the same source file.
func (f *probeFinder) local(s *Site, name string, candidates []localProbe) (linkerset.Ref, error) {
	functions, err := f.p.Scan.Functions()
	if err != nil {
		return linkerset.Ref{}, err
	}
	function, _ := functions.Lookup(s.Relocs.Target, s.Change.Site.Offset)
	key := localKey{name, function.Symbol}
	if ref := f.refs[key]; ref != nil {
		return *ref, nil
	}
	chosen := f.choose(function, candidates)
	if chosen == nil {
		return linkerset.Ref{}, f.p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.Site.Offset, fmt.Errorf(
			"several source files hold a local probe object %q, and the symbols do not tell which is meant; convert the objects before ld -r merges them", name))
	}
	syms, err := f.p.Scan.Object.Symbols()
	if err != nil {
		return linkerset.Ref{}, err
	}
	object := syms.At(chosen.symbol)
	ref := linkerset.Ref{Sym: uint32(chosen.symbol)}
	if chosen.global {
		f.hide(ref.Sym)
	} else {
		ref = linkerset.Ref{Sym: f.e.SectionSymbol(object.Section), Addend: int64(object.Value)}
	}
	f.refs[key] = &ref
	return ref, nil
}

// isOf reports whether the name of a probe object tells that it is local to a function. A
// clone or a part of a function uses the probe objects of its source.
func (l *localProbe) isOf(function resolve.Function) bool {
	return l.function != "" && (sameFunction(l.function, function.Name) || sameFunction(l.function, function.Raw))
}

// choose returns the candidate for a function, nil where several files have one and
// nothing tells which is its file.
func (f *probeFinder) choose(function resolve.Function, candidates []localProbe) *localProbe {
	file, known := f.files[function.Symbol]
	var own, same *localProbe
	files := make(map[int]bool)
	for i := range candidates {
		c := &candidates[i]
		if !c.global {
			files[c.file] = true
		}
		sameFile := !known || c.global || c.file == file
		if own == nil && sameFile && c.isOf(function) {
			own = c
		}
		if same == nil && sameFile {
			same = c
		}
	}
	switch {
	case own != nil:
		return own
	case known && same != nil:
		return same
	case len(files) <= 1:
		return &candidates[0]
	}
	return nil
}

// retireStubs removes the stubs that nobody calls any more, so that no linker
// or loader looks for them. What is not loaded names them no more: debug information,
// or who calls whom. It must not take the probe object for a function. On a machine that
// is not known nothing is called, and nothing neutral is known either.
func (f *probeFinder) retireStubs() {
	if f.p.Scan.Machine == nil {
		return
	}
	for _, stub := range f.p.Scan.Stubs {
		if stub.Defined {
			continue
		}
		f.e.Forget(stub.Symbol, f.p.Scan.Machine.Traits().None)
		sym := f.slots[f.name(stub)]
		if sym != stub.Symbol {
			f.e.RemoveSymbol(stub.Symbol, sym)
		}
	}
}

// Where probe objects are is told to others too: records that stand in another object
// name them.

// ProbeObjects tells where the probe objects of an object's stubs are, for those
// who do not convert it.
type ProbeObjects struct{ f *probeFinder }

// ProbeObjects finds the probe objects whose names are prefix and a probe's id.
func (s *Scan) ProbeObjects(prefix string) (ProbeObjects, error) {
	f, err := newProbeFinder(&Plan{Scan: s, Options: Options{ProbePrefix: prefix}}, nil)
	return ProbeObjects{f}, err
}

// Name is the name that the probe object of one of the scan's stubs has, wherever it
// is.
func (p ProbeObjects) Name(s *Stub) string { return p.f.name(s) }

// Local reports whether records of a stub's sites name probe objects that are local
// symbols of the object itself, and none of that name elsewhere.
func (p ProbeObjects) Local(s *Stub) bool { return len(p.f.locals[p.f.name(s)]) > 0 }
