package patch

import (
	"debug/elf"
	"sort"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/itanium"
	"sdtconvert/resolve"
)

// ProbeObjects are the objects that stand for the probes of an object's stubs and guards: those of
// the whole program, and those that are local to a function or a file.
type ProbeObjects struct {
	prefix  string                   // of their names
	globals map[string]uint32        // the first global symbol of each name
	defined map[string]image.Ref     // those that the object defines for all of a program
	locals  map[string][]localObject // by the probe object's name, in the order of symbols
	// The STT_FILE symbols: each precedes the local symbols of its source file (gABI, "Symbol Table").
	files       []int
	firstGlobal int
}

type localObject struct {
	symbol   int
	function string // "" where the name does not tell
	file     int    // the STT_FILE symbol before it, 0 for none
	global   bool   // and so of no file: the linker chooses whose it is
}

// ProbeObjects finds the probe objects whose names are prefix and a probe's id.
func (s *Scan) ProbeObjects() (*ProbeObjects, error) {
	prefix := s.Settings.ProbePrefix
	p := &ProbeObjects{
		prefix: prefix, globals: map[string]uint32{}, defined: map[string]image.Ref{}, locals: map[string][]localObject{},
	}
	if found, err := s.Object.NamesContain([][]byte{[]byte(prefix)}); err != nil || !found {
		return p, err
	}
	wanted := map[string]bool{}
	for _, stub := range s.Stubs {
		wanted[prefix+stub.ID] = true
	}
	for _, g := range s.guards {
		wanted[prefix+g.ID] = true
	}
	syms := s.symbols()
	for i, s := range syms.WithPrefix(prefix) {
		if i < syms.FirstGlobal() || !wanted[s.Name] {
			continue
		}
		if p.globals[s.Name] == 0 {
			p.globals[s.Name] = uint32(i)
		}
		if s.Defined() {
			p.defined[s.Name] = image.Ref{Symbol: s.Name, Addr: image.Addr{Section: s.Section, Offset: s.Value}}
		}
	}
	p.findLocals(syms, wanted)
	return p, nil
}

// Name returns the name that the probe object of one of the scan's stubs has, wherever it
// is.
func (p *ProbeObjects) Name(s *Stub) string { return p.prefix + s.ID }

// Local reports whether records of a stub's sites name probe objects that are local
// symbols of the object itself, and none of that name elsewhere.
func (p *ProbeObjects) Local(s *Stub) bool { return len(p.locals[p.Name(s)]) > 0 }

// findLocals finds probe objects that are local to a function or a file: gcc
// names a static of a function <name>.<N>, clang <function>.<name>[.<N>], and C++
// mangles both.
func (p *ProbeObjects) findLocals(syms *elfreloc.Symbols, wanted map[string]bool) {
	file := 0
	p.firstGlobal = syms.FirstGlobal()
	for i := 1; i < p.firstGlobal; i++ {
		switch s := syms.At(i); {
		case s.Type == elf.STT_FILE:
			file = i
			p.files = append(p.files, i)
		case s.Type != elf.STT_SECTION && strings.Contains(s.Name, p.prefix):
			p.addLocal(localObject{symbol: i, file: file}, s, wanted)
		}
	}
	for i, s := range syms.WithPrefix(itanium.Prefix) {
		if i >= syms.FirstGlobal() && strings.Contains(s.Name, p.prefix) {
			p.addLocal(localObject{symbol: i, global: true}, s, wanted)
		}
	}
}

// addLocal adds a symbol if it has the name of a wanted probe object.
func (p *ProbeObjects) addLocal(l localObject, s elfreloc.Symbol, wanted map[string]bool) {
	if !s.Defined() || s.Type == elf.STT_FUNC {
		return
	}
	for at := range len(s.Name) {
		if !strings.HasPrefix(s.Name[at:], p.prefix) {
			continue
		}
		object, function, ok := wantedIdentifier(s.Name, at, wanted)
		if !ok && !l.global && (at == 0 || s.Name[at-1] == '.') {
			object = trimNumber(s.Name[at:], wanted)
			function, ok = s.Name[:max(0, at-1)], wanted[object]
		}
		if ok {
			l.function = function
			p.locals[object] = append(p.locals[object], l)
			return
		}
	}
}

// trimNumber removes the ".N" that a compiler has appended, if what is left is
// wanted.
func trimNumber(name string, wanted map[string]bool) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && !wanted[name] && strings.Trim(name[dot+1:], "0123456789") == "" {
		return name[:dot]
	}
	return name
}

// choose returns the candidate for a function, nil where several files have one and
// nothing tells which is its file.
func (p *ProbeObjects) choose(function resolve.Function, candidates []localObject) *localObject {
	file, hasFile := 0, function.Symbol > 0 && function.Symbol < p.firstGlobal
	if n := sort.SearchInts(p.files, function.Symbol+1); n > 0 {
		file = p.files[n-1]
	}
	var ofFunction, same *localObject
	files := make(map[int]bool)
	for i := range candidates {
		c := &candidates[i]
		if !c.global {
			files[c.file] = true
		}
		sameFile := !hasFile || c.global || c.file == file
		if ofFunction == nil && sameFile && c.isOf(function) {
			ofFunction = c
		}
		if same == nil && sameFile {
			same = c
		}
	}
	switch {
	case ofFunction != nil:
		return ofFunction
	case hasFile && same != nil:
		return same
	case len(files) <= 1:
		return &candidates[0]
	}
	return nil
}

// isOf reports whether the name of a probe object tells that it is local to a function. A
// clone or a part of a function uses the probe objects of its source.
func (l *localObject) isOf(function resolve.Function) bool {
	return l.function != "" && (itanium.IsSameFunction(l.function, function.Name) || itanium.IsSameFunction(l.function, function.Raw))
}

// wantedIdentifier finds a wanted name at an offset of a mangled one, and the symbol of the
// function that it is local to, "" for none.
func wantedIdentifier(symbol string, at int, wanted map[string]bool) (object, function string, ok bool) {
	for length, object := range itanium.Identifiers(symbol, at) {
		if wanted[object] {
			return object, itanium.FunctionOf(symbol, length), true
		}
	}
	return "", "", false
}
