package check

import (
	"debug/elf"
	"fmt"
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

	overlap uint64 // bytes that pieces of sections share at least
}

// stubFunction is a function that is one stub, or thousands.
type stubFunction struct {
	names        []string // sorted
	called, used bool     // whether that was noted
}

// linkedStubs finds calls and addresses of stubs in an image. An image of converted objects has none. An
// unused definition of a stub is not a fault.
func (c *fileChecker) linkedStubs(mentioned bool) error {
	s := &linkedStubs{fileChecker: c, functions: map[uint64]*stubFunction{}, slots: map[uint64]string{}, undefined: map[string]bool{}, reported: map[image.Addr]bool{}, symbolSlots: map[uint64]bool{}}
	if name := s.Machine.Traits().Descriptors; name != "" {
		s.descriptors = s.sectionNamed(name)
	}
	dynamic, err := c.DynamicSymbols()
	if err != nil {
		return err
	}
	if mentioned {
		syms, err := c.Symbols()
		if err != nil {
			return err
		}
		s.collect(syms)
	}
	s.collect(dynamic)
	for _, f := range s.functions {
		slices.Sort(f.names)
		f.names = slices.Compact(f.names)
	}
	if len(s.functions)+len(s.undefined) == 0 {
		return nil
	}
	if err := s.relocations(dynamic); err != nil {
		return err
	}
	if len(s.slots) > 0 {
		if err := s.findTable(); err != nil {
			return err
		}
		if err := s.sections(s.throughSlots); err != nil {
			return err
		}
	}
	if len(s.functions) > 0 {
		if err := s.sections(s.bridges); err != nil {
			return err
		}
		if err := s.sections(s.direct); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.undefined)) {
		_, id, _ := s.set.opts.Names.Match(name)
		c.link.usedIDs[scopedID{c.index, id}] = true
		c.addWhole(LiveCall, id, "needs %s from outside, so a call of it is left; convert every object before it is linked", name)
	}
	return nil
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
			s.define(&sym)
		}
	}
}

// define adds a stub at its code and, if it has one, at its descriptor.
func (s *linkedStubs) define(sym *elfreloc.Symbol) {
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
func (s *linkedStubs) relocations(dynamic *elfreloc.Symbols) error {
	t := s.Machine.Traits()
	return s.EachDynamic(func(r elfreloc.Relocation) error {
		field := image.Addr{Offset: r.Offset}
		switch {
		case r.Type == t.LoadBase && s.describes(r.Offset):
			return nil
		case r.Type == t.LoadBase && !r.Implicit && s.functions[uint64(r.Addend)&^t.Mode] != nil:
			return s.address(field, s.functions[uint64(r.Addend)&^t.Mode])
		case r.Sym == 0 || int(r.Sym) >= dynamic.Len():
			return nil
		}
		if t.SlotsFromTable {
			s.symbolSlots[r.Offset] = true
		}
		name := dynamic.Name(int(r.Sym))
		switch {
		case !s.set.opts.Names.IsStub(name):
			return nil
		case r.Type == t.Word && !s.inGOT(r.Offset):
			delete(s.undefined, name)
			return s.address(field, &stubFunction{names: []string{name}})
		}
		s.undefined[name], s.slots[r.Offset] = true, name
		return nil
	})
}

// chunk is how much of a section is read at once. The next one begins with what may be
// the start of a branch that this one ends in.
const chunk = 64 << 10

// sections scans all that is loaded. In a hostile file many sections may have the
// same bytes.
func (s *linkedStubs) sections(scan sectionScan) error {
	left := uint64(s.Size())
	for i := range s.Sections {
		sec := &s.Sections[i]
		if sec.Flags&elf.SHF_ALLOC == 0 || !sec.InFile() || sec.Addr+sec.Size < sec.Addr {
			continue
		}
		if sec.Size > left {
			return s.SectionError(i, fmt.Errorf("overlaps other sections in the file"))
		}
		left -= sec.Size
		if err := s.section(sec, scan(sec)); err != nil {
			return err
		}
	}
	return nil
}

// sectionScan returns what reads the bytes of a section, piece by piece with their addresses; nil if nothing does.
type sectionScan func(sec *elfreloc.Section) func(data []byte, addr uint64) error

func (s *linkedStubs) section(sec *elfreloc.Section, scan func(data []byte, addr uint64) error) error {
	overlap := max(s.overlap, s.Machine.Traits().Branch, uint64(s.Object.Encoding.Word()))
	for off := uint64(0); off < sec.Size && scan != nil; off += chunk {
		data, err := s.code.Image.Bytes(image.Addr{Offset: sec.Addr + off}, min(chunk+overlap, sec.Size-off))
		if err == nil {
			err = scan(data, sec.Addr+off)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bridges finds code of linkers that jumps to a stub. A call of such code counts as a call of the
// stub; the jump itself is no finding.
func (s *linkedStubs) bridges(sec *elfreloc.Section) func([]byte, uint64) error {
	m, ok := s.Machine.(arch.Bridger)
	if !ok || sec.Flags&elf.SHF_EXECINSTR == 0 {
		return nil
	}
	return func(code []byte, pc uint64) error {
		m.Bridges(code, pc, func(at, size, to uint64) {
			f := s.functions[to]
			if f == nil || s.functions[at] != nil {
				return
			}
			s.functions[at] = f
			for inside := range size {
				s.reported[image.Addr{Offset: at + inside}] = true
			}
		})
		return nil
	}
}

// direct finds calls of stubs in code, and their addresses in data.
func (s *linkedStubs) direct(sec *elfreloc.Section) func([]byte, uint64) error {
	switch {
	case sec.Flags&elf.SHF_EXECINSTR != 0:
		return s.branches
	case isGOT(sec), s.describes(sec.Addr): // which only code may load from
		return nil
	}
	switch sec.Type {
	case elf.SHT_PROGBITS, elf.SHT_INIT_ARRAY, elf.SHT_FINI_ARRAY, elf.SHT_PREINIT_ARRAY:
		return s.words
	}
	return nil
}

func (s *linkedStubs) branches(code []byte, pc uint64) (err error) {
	s.Machine.Branches(code, pc, func(at, to uint64) {
		f, site := s.functions[to], image.Addr{Offset: at}
		if f == nil || s.liveSites[site] || s.reported[site] || err != nil {
			return
		}
		s.reported[site] = true
		err = s.call(site, f)
	})
	return err
}

// call reports a call of a stub.
func (s *linkedStubs) call(at image.Addr, f *stubFunction) error {
	id := s.use(f)
	if !f.called {
		f.called = true
		for _, name := range f.names {
			delete(s.undefined, name)
		}
	}
	if err := s.stubSite(id, at); err != nil {
		return err
	}
	s.liveSites[at] = true
	return s.add(LiveCall, at, id, "calls %s; convert every object before it is linked", f)
}

// use records that all probes of a function have a site. It returns the id of a single probe, and
// "" for several.
func (s *linkedStubs) use(f *stubFunction) string {
	if !f.used {
		f.used = true
		for _, name := range f.names {
			_, id, _ := s.set.opts.Names.Match(name)
			s.link.usedIDs[scopedID{s.index, id}] = true
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

func (s *linkedStubs) words(data []byte, addr uint64) error {
	word := uint64(s.Encoding.Word())
	for off := -addr % word; off+word <= uint64(len(data)); off += word {
		if f := s.functions[s.Encoding.GetWord(data[off:])&^s.Machine.Traits().Mode]; f != nil {
			if err := s.address(image.Addr{Offset: addr + off}, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// address reports a stub's address in data.
func (s *linkedStubs) address(at image.Addr, f *stubFunction) error {
	if s.reported[at] {
		return nil
	}
	s.reported[at] = true
	return s.add(StubAddress, at, s.use(f), "holds the address of %s; do not take the stub's address", f)
}
