// Package stapsdt writes the notes that tracers of user space know probes by:
// gdb, perf, bpftrace, bcc and SystemTap read .note.stapsdt, as the macros of
// SystemTap's sys/sdt.h make it.
//
// The form of a note is described at
// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation; what is
// around it here serves the linkers. Notes are not loaded, so no linker's
// garbage collection follows what they refer to: left alone, the note of a
// function that is dropped says that there is a probe at 0, and a tracer that
// cannot arm it arms none of that name. gold does not even link it. Hence:
//
//   - Each text section has a note section of its own, in its section group
//     where there is one, and with SHF_LINK_ORDER: GNU ld and lld drop it
//     together with the text.
//   - The text refers to its notes, by relocations that do nothing. `ld -r` of
//     GNU ld makes one section of all notes, linked to the first text section
//     alone; gold and mold forget the link. What refers to a note keeps it.
//   - The other linkers keep notes, so they have to keep the text: mold does, for
//     the records that refer to it. For gold there is keepSection.
//
// Loaded notes would be collected as text is. But then their addresses would be
// relocated by the loader, while tracers read the file.
package stapsdt

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// Section is the name of the sections of notes.
const Section = ".note.stapsdt"

const (
	owner    = "stapsdt\x00"
	noteType = 3
)

// Probe is one site as its note describes it.
type Probe struct {
	Provider string // with __ for dashes, as Name
	Name     string
	Args     string // operands, separated by spaces
	Site     linkerset.Ref
	// Semaphore is what a tracer counts up, the zero Ref for none.
	Semaphore linkerset.Ref
}

// The section of one byte whose address each note holds beside that of its site,
// so that gdb sees how far prelink has moved a program. Without it gdb ignores
// the notes.
const (
	baseSection = ".stapsdt.base"
	baseSymbol  = "_.stapsdt.base"
)

// keepSection is the name of a section that keeps text alive in gold, which
// refuses to link notes of what it has dropped. gold never drops a text section
// of such a name, which some compiler once gave to functions that only unwind
// tables refer to. The section holds a trap, because gold does not link one that
// is empty. The others drop it, or have a byte or a word more of code.
const keepSection = ".text.__sdt_personality"

// Ours reports whether a section holds notes that a Writer has made: SystemTap's
// macros link theirs to no other section.
func Ours(s *elfreloc.Section) bool {
	return s.Type == elf.SHT_NOTE && s.Name == Section && s.Flags&elf.SHF_LINK_ORDER != 0
}

// Writer adds notes to an object.
type Writer struct {
	e    *elfreloc.Edit
	m    arch.Machine
	base uint32 // the symbol of baseSection, once it is needed
}

// NewWriter starts to add notes.
func NewWriter(e *elfreloc.Edit, m arch.Machine) *Writer { return &Writer{e: e, m: m} }

// Add writes the notes of text section text. It returns what text has to refer
// to in order to keep them alive.
func (w *Writer) Add(text int, rela bool, probes []Probe) (keep []linkerset.Ref, err error) {
	base, err := w.baseSymbol()
	if err != nil {
		return nil, err
	}
	n := notes{layout: w.e.Object().Encoding}
	for _, p := range probes {
		n.add(p, linkerset.Ref{Sym: base}, rela)
	}
	sec := w.e.AddSection(elfreloc.NewSection{
		Name: Section, Type: elf.SHT_NOTE, Flags: elf.SHF_LINK_ORDER, Align: 4, Data: n.data,
		Relocs: true, Expect: len(n.fields), Rela: rela, Like: text, Link: text,
	})
	for _, f := range n.fields {
		r := elfreloc.Relocation{Offset: f.offset, Type: w.m.Traits().Word, Sym: f.to.Sym, Addend: f.to.Addend}
		if err := w.e.AddRelocation(sec, r); err != nil {
			return nil, err
		}
	}
	return []linkerset.Ref{{Sym: w.e.SectionSymbol(sec)}, {Sym: base}}, w.keep(text, rela)
}

// keep adds the section that keeps text alive in gold.
func (w *Writer) keep(text int, rela bool) error {
	if !w.m.Traits().Gold {
		return nil
	}
	trap := w.m.Traits().Breakpoints[0]
	sec := w.e.AddSection(elfreloc.NewSection{
		Name: keepSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Align: uint64(len(trap)), Data: trap,
		Relocs: true, Expect: 1, Rela: rela, Like: text,
	})
	return w.e.AddRelocation(sec, elfreloc.Relocation{Type: w.m.Traits().None, Sym: w.e.SectionSymbol(text)})
}

// baseSymbol finds the symbol of the base section, which objects have that use
// SystemTap's macros too, or makes both as those macros do.
func (w *Writer) baseSymbol() (uint32, error) {
	if w.base != 0 {
		return w.base, nil
	}
	var err error
	if w.base, err = findGlobal(w.e, baseSymbol); err != nil || w.base != 0 {
		return w.base, err
	}
	sec := w.e.AddComdat(elfreloc.NewSection{
		Name: baseSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 1, Data: make([]byte, 1),
	})
	w.base = w.e.AddSymbol(elfreloc.Symbol{
		Name: baseSymbol, Bind: elf.STB_WEAK, Other: byte(elf.STV_HIDDEN), Section: sec, Size: 1,
	})
	return w.base, nil
}
