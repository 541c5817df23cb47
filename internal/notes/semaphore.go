package notes

// Semaphores are counters of 16 bits that a tracer raises for as long as it traces a
// probe: notes tell it where they are. Those that are written here are as include/sdt.h
// makes them, so that one is left in an image of the two.

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// SemaphoreSection is the name of the sections of semaphores. bcc raises those of no
// other.
const SemaphoreSection = ".probes"

// SemaphoreSize is the size of a semaphore in bytes, and SemaphoreRoom what it has for
// itself, the rest zero: a load of as many bytes gives its value too.
const (
	SemaphoreSize = 2
	SemaphoreRoom = 4
)

// SemaphorePage is the alignment that keeps what else is in an image off the page of the
// semaphores.
const SemaphorePage = 4096

// semaphoreBase is the symbol of a section that gives all semaphores of an image a page of
// their own. lld and mold put them onto the page of the file where the data ends that is
// protected after relocation; so it is mapped twice, and Linux raises a semaphore in
// the first mapping, where the program does not look, if it is to do so before the
// program starts.
const semaphoreBase = "_.probes.base"

// SemaphoreSuffix is what the names of semaphores end with.
const SemaphoreSuffix = "_semaphore"

// SemaphoreName returns the symbol of a probe's semaphore, as SystemTap's macros call it.
func SemaphoreName(provider, name string) string { return provider + "_" + name + SemaphoreSuffix }

// Semaphores adds semaphores to an object.
type Semaphores struct {
	e    *elfreloc.Edit
	m    arch.Machine
	base uint32 // the symbol of the base, once it is needed
}

// NewSemaphores starts to add semaphores.
func NewSemaphores(e *elfreloc.Edit, m arch.Machine) *Semaphores { return &Semaphores{e: e, m: m} }

// Define adds a semaphore, of which a link keeps one of each name, and returns its symbol:
// sym, which is made one, or a new one where that is 0.
func (s *Semaphores) Define(sym uint32, name string) (uint32, error) {
	base, err := s.baseSymbol()
	if err != nil {
		return 0, err
	}
	sym = s.add(sym, name, elfreloc.NewSection{
		Name: SemaphoreSection, Align: SemaphoreRoom, Data: make([]byte, SemaphoreRoom), Relocs: true,
	}, SemaphoreSize)
	section := s.e.Symbol(sym).Section
	return sym, s.e.AddRelocation(section, elfreloc.Relocation{Type: s.m.Traits().None, Sym: base})
}

// baseSymbol finds or makes the base.
func (s *Semaphores) baseSymbol() (uint32, error) {
	if s.base != 0 {
		return s.base, nil
	}
	var err error
	if s.base, err = findGlobal(s.e, semaphoreBase); err == nil && s.base == 0 {
		s.base = s.add(0, semaphoreBase, elfreloc.NewSection{Name: SemaphoreSection, Align: SemaphorePage, Data: make([]byte, SemaphoreRoom)}, SemaphoreRoom)
	}
	return s.base, err
}

// add adds a section in a COMDAT group whose signature is its symbol.
func (s *Semaphores) add(sym uint32, name string, n elfreloc.NewSection, size uint64) uint32 {
	symbol := elfreloc.Symbol{Name: name, Bind: elf.STB_WEAK, Type: elf.STT_OBJECT, Other: byte(elf.STV_HIDDEN), Size: size}
	if sym == 0 {
		sym = s.e.AddSymbol(symbol)
	}
	n.GroupOf = s.e.AddGroup(sym)
	n.Type, n.Flags, n.Rela = elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_WRITE, s.m.Traits().Rela
	symbol.Section = s.e.AddSection(n)
	s.e.SetSymbol(sym, symbol)
	return sym
}

// Refer makes a symbol for a semaphore that another object may define. Where none does,
// its address is 0, which is none to tracers.
func (s *Semaphores) Refer(name string) uint32 {
	return s.e.AddSymbol(elfreloc.Symbol{Name: name, Bind: elf.STB_WEAK, Other: byte(elf.STV_HIDDEN)})
}

// HoldsSemaphores reports whether a section is one of semaphores.
func HoldsSemaphores(s *elfreloc.Section) bool { return s.Name == SemaphoreSection }

// findGlobal finds a symbol that is not local, 0 for none.
func findGlobal(e *elfreloc.Edit, name string) (uint32, error) {
	syms, err := e.Object().Symbols()
	if err != nil {
		return 0, err
	}
	for i := range syms.Named(name) {
		if i >= syms.FirstGlobal() {
			return uint32(i), nil
		}
	}
	return 0, nil
}
