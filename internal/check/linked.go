package check

import (
	"debug/elf"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// linkedStubs are the stubs that an image has, and what refers to them.
type linkedStubs struct {
	*fileChecker
	functions map[uint64]*stubFunction // where they are defined, or entered, and described
	slots     map[uint64]string        // of the global offset table, by address
	undefined map[string]bool          // those that are not defined
	reported  map[image.Addr]bool

	symbolSlots map[uint64]bool // the words that the loader puts the address of a symbol into
	slotBase    uint64          // where the global offset table is, for code that names slots from there

	descriptors *elfreloc.Section // of functions, nil for none
}

// stubFunction is a function that is one stub, or thousands.
type stubFunction struct {
	names        []string // sorted
	called, used bool     // whether that was noted
}

// linkedStubs finds calls and addresses of stubs in an image. An image of converted objects has none. An
// unused definition of a stub is not a fault.
func (c *fileChecker) linkedStubs() {
	if c.relocatable() {
		return
	}
	s := &linkedStubs{fileChecker: c, functions: map[uint64]*stubFunction{}, slots: map[uint64]string{}, undefined: map[string]bool{}, reported: map[image.Addr]bool{}, symbolSlots: map[uint64]bool{}}
	if name := s.Machine.Traits().Descriptors; name != "" {
		s.descriptors = s.sectionNamed(name)
	}
	dynamic := c.dynamicSymbols()
	if c.mentioned {
		s.collect(c.symbols())
	}
	s.collect(dynamic)
	for _, f := range s.functions {
		slices.Sort(f.names)
		f.names = slices.Compact(f.names)
	}
	if len(s.functions)+len(s.undefined) == 0 {
		return
	}
	s.relocations(dynamic)
	if len(s.slots) > 0 {
		s.findTable()
		s.throughSlots()
	}
	if len(s.functions) > 0 {
		s.bridges()
		s.direct()
	}
	if c.err != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.undefined)) {
		_, id, _ := s.set.opts.Names.Match(name)
		c.scope.usedIDs[id] = true
		c.addWhole(LiveCall, id, "needs %s from outside, so a call of it is left; convert every object before it is linked", name)
	}
}

func (s *linkedStubs) collect(syms *elfreloc.Symbols) {
	names := s.set.opts.Names
	for i := 1; i < syms.Len(); i++ {
		sym := syms.At(i)
		// mold names the entries of a function f in procedure linkage tables f$plt and f$thunk.
		sym.Name = strings.TrimSuffix(strings.TrimSuffix(sym.Name, "$plt"), "$thunk")
		sym.Value &^= s.Machine.Traits().Mode
		switch {
		case !names.IsStub(sym.Name):
		case sym.Section == 0 && (sym.Bind == elf.STB_LOCAL || sym.Visibility() == elf.STV_HIDDEN): // what dtrace -G has left
		case sym.Section == 0:
			s.undefined[sym.Name] = true
		case sym.Section > 0:
			s.addDefinition(&sym)
		}
	}
}

// addDefinition adds a stub at its code and, if it has one, at its descriptor.
func (s *linkedStubs) addDefinition(sym *elfreloc.Symbol) {
	code := image.Addr{Offset: sym.Value}
	if s.describes(sym.Value) {
		ref, err := s.code.Image.Word(code)
		if err != nil || ref.Undefined {
			return
		}
		code = ref.Addr
	}
	if !s.code.Image.Executable(code) {
		return
	}
	f := s.functions[code.Offset]
	if f == nil {
		f = &stubFunction{}
		s.functions[code.Offset] = f
	}
	f.names = append(f.names, sym.Name)
	s.functions[sym.Value] = f
}

// describes reports whether an address is in a function's descriptor.
func (s *linkedStubs) describes(addr uint64) bool {
	return s.descriptors != nil && addr-s.descriptors.Addr < s.descriptors.Size
}

// relocations finds the stubs whose addresses the loader stores: in slots, through which code calls
// them, or in data.
func (s *linkedStubs) relocations(dynamic *elfreloc.Symbols) {
	t := s.Machine.Traits()
	s.fail(s.EachDynamic(func(r elfreloc.Relocation) error {
		field := image.Addr{Offset: r.Offset}
		switch {
		case r.Type == t.LoadBase && s.describes(r.Offset):
			return nil
		case r.Type == t.LoadBase && !r.Implicit && s.functions[uint64(r.Addend)&^t.Mode] != nil:
			s.address(field, s.functions[uint64(r.Addend)&^t.Mode])
			return nil
		case r.Sym == 0 || int(r.Sym) >= dynamic.Len():
			return nil
		}
		if t.SlotsFromTable {
			s.symbolSlots[r.Offset] = true
		}
		name := dynamic.Name(int(r.Sym))
		switch {
		case !s.set.opts.Names.IsStub(name):
		case r.Type == t.Word && !s.inGOT(r.Offset):
			delete(s.undefined, name)
			s.address(field, &stubFunction{names: []string{name}})
		default:
			s.undefined[name], s.slots[r.Offset] = true, name
		}
		return nil
	}))
}

// piece is a part of a section of an image.
type piece struct {
	section *elfreloc.Section
	data    []byte
	addr    uint64 // of its first byte
}

// isCode reports whether the bytes of a section are instructions.
func isCode(sec *elfreloc.Section) bool { return sec.Flags&elf.SHF_EXECINSTR != 0 }

// pieces returns what is loaded of the wanted sections, piece by piece. Those of one section overlap: the
// next one begins with what may be the start of a branch that this one ends in. In a hostile file many
// sections may have the same bytes.
func (c *fileChecker) pieces(wanted func(*elfreloc.Section) bool) iter.Seq[piece] {
	const chunk = 64 << 10 // how much of a section is read at once
	overlap := max(c.Machine.Traits().Branch, uint64(c.Encoding.Word()))
	return func(yield func(piece) bool) {
		left := uint64(c.Size())
		for i := range c.Sections {
			sec := &c.Sections[i]
			if sec.Flags&elf.SHF_ALLOC == 0 || !sec.InFile() || sec.Addr+sec.Size < sec.Addr {
				continue
			}
			if sec.Size > left && c.fail(c.SectionError(i, errors.New("overlaps other sections in the file"))) {
				return
			}
			left -= sec.Size
			if c.fail(c.CheckRead(int64(sec.Offset), int64(sec.Size))) {
				return
			}
			for off := uint64(0); off < sec.Size && c.err == nil && wanted(sec); off += chunk {
				data, err := c.code.Image.Bytes(image.Addr{Offset: sec.Addr + off}, min(chunk+overlap, sec.Size-off))
				if c.fail(err) || !yield(piece{sec, data, sec.Addr + off}) {
					return
				}
			}
		}
	}
}

// bridges finds code of linkers that jumps to a stub. A call of such code counts as a call of the
// stub; the jump itself is no finding.
func (s *linkedStubs) bridges() {
	m, ok := s.Machine.(arch.Bridger)
	for p := range s.pieces(func(sec *elfreloc.Section) bool { return ok && isCode(sec) }) {
		m.Bridges(p.data, p.addr, func(at, size, to uint64) {
			f := s.functions[to]
			if f == nil || s.functions[at] != nil {
				return
			}
			s.functions[at] = f
			for inside := range size {
				s.reported[image.Addr{Offset: at + inside}] = true
			}
		})
	}
}

// direct finds calls of stubs in code, and their addresses in data.
func (s *linkedStubs) direct() {
	for p := range s.pieces(s.mayRefer) {
		if !isCode(p.section) {
			word := uint64(s.Encoding.Word())
			for off := -p.addr % word; off+word <= uint64(len(p.data)); off += word {
				if f := s.functions[s.Encoding.GetWord(p.data[off:])&^s.Machine.Traits().Mode]; f != nil {
					s.address(image.Addr{Offset: p.addr + off}, f)
				}
			}
			continue
		}
		s.Machine.Branches(p.data, p.addr, func(at, to uint64) {
			if f := s.functions[to]; f != nil {
				s.call(image.Addr{Offset: at}, f)
			}
		})
	}
}

// mayRefer reports whether a section may hold calls or addresses of stubs.
func (s *linkedStubs) mayRefer(sec *elfreloc.Section) bool {
	switch {
	case isCode(sec):
		return true
	case isGOT(sec), s.describes(sec.Addr): // which only code may load from
		return false
	}
	switch sec.Type {
	case elf.SHT_PROGBITS, elf.SHT_INIT_ARRAY, elf.SHT_FINI_ARRAY, elf.SHT_PREINIT_ARRAY:
		return true
	}
	return false
}

// call reports a call of a stub, once.
func (s *linkedStubs) call(at image.Addr, f *stubFunction) {
	if s.liveSites[at] || s.reported[at] || s.err != nil {
		return
	}
	s.reported[at] = true
	id := s.markUsed(f)
	if !f.called {
		f.called = true
		for _, name := range f.names {
			delete(s.undefined, name)
		}
	}
	s.stubSite(id, at)
	if kind, _, _ := s.set.opts.Names.Match(f.names[0]); kind == arch.Probe && len(f.names) == 1 {
		s.fileChecker.calls = append(s.fileChecker.calls, probeCall{id, at})
	}
	s.liveSites[at] = true
	s.add(LiveCall, at, id, "calls %s; convert every object before it is linked", f)
}

// markUsed records that all probes of a function have a site, and returns the id of a single probe, and
// "" for several.
func (s *linkedStubs) markUsed(f *stubFunction) string {
	if !f.used {
		f.used = true
		for _, name := range f.names {
			_, id, _ := s.set.opts.Names.Match(name)
			s.scope.usedIDs[id] = true
		}
	}
	if len(f.names) > 1 {
		return ""
	}
	_, id, _ := s.set.opts.Names.Match(f.names[0])
	return id
}

func (f *stubFunction) String() string {
	if len(f.names) == 1 {
		return f.names[0]
	}
	return fmt.Sprintf("a function that stands for %s and %d more", f.names[0], len(f.names)-1)
}

// address reports a stub's address in data, once.
func (s *linkedStubs) address(at image.Addr, f *stubFunction) {
	if !s.reported[at] && s.err == nil {
		s.reported[at] = true
		s.add(StubAddress, at, s.markUsed(f), "holds the address of %s; do not take the stub's address", f)
	}
}

// isGOT reports whether a section is a part of the global offset table.
func isGOT(sec *elfreloc.Section) bool { return strings.HasPrefix(sec.Name, ".got") }

func (s *linkedStubs) inGOT(addr uint64) bool {
	for i := range s.Sections {
		if sec := &s.Sections[i]; isGOT(sec) && addr-sec.Addr < sec.Size {
			return true
		}
	}
	return false
}

// findTable finds the address from which code counts the slots of the global offset table: the start of
// .got.plt, or the start of .got if there is no .got.plt or if mold has linked. It takes the
// start from which code reaches more slots that the loader fills.
func (s *linkedStubs) findTable() {
	if !s.Machine.Traits().SlotsFromTable {
		return
	}
	maxFilled := -1
	for _, name := range []string{".got.plt", ".got"} {
		table := s.sectionNamed(name)
		if table == nil {
			continue
		}
		filled := 0
		for p := range s.pieces(isCode) {
			s.Machine.Slots(p.data, p.addr, table.Addr, func(_, slot uint64) {
				if s.symbolSlots[slot] {
					filled++
				}
			})
		}
		if filled > maxFilled {
			maxFilled, s.slotBase = filled, table.Addr
		}
	}
}

// throughSlots looks for code that calls stubs through slots of the global offset
// table: calls themselves, and the entries of procedure linkage tables.
func (s *linkedStubs) throughSlots() {
	for p := range s.pieces(isCode) {
		isTable := strings.HasPrefix(p.section.Name, ".plt") || s.Machine.Traits().EntriesInText
		s.Machine.Slots(p.data, p.addr, s.slotBase, func(at, slot uint64) {
			switch name := s.slots[slot]; {
			case name == "":
			case isTable:
				s.entry(at, name)
			default:
				s.call(image.Addr{Offset: at}, &stubFunction{names: []string{name}})
			}
		})
	}
}

// entry notes an entry of a procedure linkage table, wherever it may begin.
func (s *linkedStubs) entry(at uint64, name string) {
	for _, before := range s.Machine.Traits().Entries {
		if s.functions[at-before] == nil {
			s.functions[at-before] = &stubFunction{names: []string{name}}
		}
	}
}
