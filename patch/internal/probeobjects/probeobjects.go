// Package probeobjects finds the objects that stand for probes among the symbols of an
// object: those of the whole program, and those that are local to a function or a file.
package probeobjects

import (
	"debug/elf"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/resolve"
)

// Objects are the probe objects of an object.
type Objects struct {
	globals map[string]uint32    // the first global symbol of each name
	defined map[string]image.Ref // those that the object defines for all of a program
	locals  map[string][]local   // by the probe object's name, in the order of symbols
	files   map[int]int          // source file of each local function's symbol
}

type local struct {
	symbol   int
	function string // "" where the name does not tell
	file     int    // the STT_FILE symbol before it, 0 for none
	global   bool   // and so of no file
}

// Find finds the wanted probe objects, whose names all begin with prefix.
func Find(o *elfreloc.Object, prefix string, wanted map[string]bool) (*Objects, error) {
	p := &Objects{globals: map[string]uint32{}, defined: map[string]image.Ref{}, locals: map[string][]local{}, files: map[int]int{}}
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	if found, err := o.NamesContain([][]byte{[]byte(prefix)}); err != nil || !found {
		return p, err
	}
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
	p.findLocals(syms, prefix, wanted)
	return p, nil
}

// Global returns the global symbol of a probe object, defined or not.
func (p *Objects) Global(name string) (symbol uint32, ok bool) {
	symbol, ok = p.globals[name]
	return symbol, ok
}

// Definition returns where a probe object is that the object defines for all of a program.
func (p *Objects) Definition(name string) (image.Ref, bool) {
	ref, ok := p.defined[name]
	return ref, ok
}

// HasLocal reports whether probe objects of a name are local to functions or files.
func (p *Objects) HasLocal(name string) bool { return len(p.locals[name]) > 0 }

// Local returns the symbol of the local probe object of a name that a function uses: its
// own, else the first of its source file. global tells that the symbol is one, so that the
// linker chooses whose it is. There is none if several files have one and nothing tells
// which is the function's.
func (p *Objects) Local(name string, function resolve.Function) (symbol int, global, ok bool) {
	l := p.choose(function, p.locals[name])
	if l == nil {
		return 0, false, false
	}
	return l.symbol, l.global, true
}

// findLocals finds probe objects that are local to a function or a file: gcc
// names a static of a function <name>.<N>, clang <function>.<name>[.<N>], and C++
// mangles both.
func (p *Objects) findLocals(syms *elfreloc.Symbols, prefix string, wanted map[string]bool) {
	file := 0
	for i := 1; i < syms.FirstGlobal(); i++ {
		switch s := syms.At(i); {
		case s.Type == elf.STT_FILE:
			file = i
		case s.Type != elf.STT_SECTION && strings.Contains(s.Name, prefix):
			p.addLocal(local{symbol: i, file: file}, s, prefix, wanted)
		}
	}
	for i, s := range syms.WithPrefix(mangledPrefix) {
		if i >= syms.FirstGlobal() && strings.Contains(s.Name, prefix) {
			p.addLocal(local{symbol: i, global: true}, s, prefix, wanted)
		}
	}
	if len(p.locals) > 0 {
		p.readFiles(syms)
	}
}

// addLocal adds a symbol if its name is that of a wanted probe object.
func (p *Objects) addLocal(l local, s elfreloc.Symbol, prefix string, wanted map[string]bool) {
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
			p.locals[object] = append(p.locals[object], l)
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
func (p *Objects) readFiles(syms *elfreloc.Symbols) {
	file := 0
	for i := 1; i < syms.FirstGlobal(); i++ {
		if syms.At(i).Type == elf.STT_FILE {
			file = i
		}
		p.files[i] = file
	}
}

// choose returns the candidate for a function, nil where several files have one and
// nothing tells which is its file.
func (p *Objects) choose(function resolve.Function, candidates []local) *local {
	file, known := p.files[function.Symbol]
	var ofFunction, same *local
	files := make(map[int]bool)
	for i := range candidates {
		c := &candidates[i]
		if !c.global {
			files[c.file] = true
		}
		sameFile := !known || c.global || c.file == file
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
	case known && same != nil:
		return same
	case len(files) <= 1:
		return &candidates[0]
	}
	return nil
}

// isOf reports whether the name of a probe object tells that it is local to a function. A
// clone or a part of a function uses the probe objects of its source.
func (l *local) isOf(function resolve.Function) bool {
	return l.function != "" && (sameFunction(l.function, function.Name) || sameFunction(l.function, function.Raw))
}
