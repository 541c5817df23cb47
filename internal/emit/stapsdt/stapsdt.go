// Package stapsdt writes the notes that tracers of user space know probes by:
// gdb, perf, bpftrace, bcc and SystemTap read .note.stapsdt, as the macros of
// SystemTap's sys/sdt.h make it.
//
// The form of a note is described at
// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.
package stapsdt

import (
	"debug/elf"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/sitenotes"
	"sdtconvert/linkerset"
)

// Section is the name of the sections of notes.
const Section = ".note.stapsdt"

// Owner and NoteType are what the notes of probes are among those of the section.
const (
	Owner    = "stapsdt"
	NoteType = 3
)

// Probe is one site as its note describes it.
type Probe struct {
	Provider string // with __ for dashes, as Name
	Name     string
	Args     string // operands, separated by spaces
	Site     linkerset.SymbolRef
	// Semaphore is what a tracer counts up, the zero Ref for none.
	Semaphore linkerset.SymbolRef
}

// BaseSection is the section of one byte whose address each note holds beside that of
// its site, so that gdb sees how far prelink has moved a program. Without it gdb ignores
// the notes.
const BaseSection = ".stapsdt.base"

// BaseSymbol is the symbol of BaseSection.
const BaseSymbol = "_.stapsdt.base"

// IsNoteSection reports whether a section holds notes that a Writer has made.
func IsNoteSection(s *elfreloc.Section) bool { return sitenotes.Is(s, Section) }

// Writer adds notes to an object.
type Writer struct {
	w    *sitenotes.Writer
	base uint32 // the symbol of BaseSection, once it is needed
}

// NewWriter starts to add notes by w.
func NewWriter(w *sitenotes.Writer) *Writer { return &Writer{w: w} }

// Add adds the notes of the sites of text section text, of which probe returns each. rela tells that
// addends are to be in relocations, and not in the notes. It returns what text has to refer to in order
// to keep them alive.
func (w *Writer) Add(text int, rela bool, sites int, probe func(i int) (Probe, error)) (anchors []linkerset.SymbolRef, err error) {
	base, err := w.BaseSymbol()
	if err != nil {
		return nil, err
	}
	notes := w.w.Notes(rela, sites)
	for i := range sites {
		p, err := probe(i)
		if err != nil {
			return nil, err
		}
		notes.Add(Owner, NoteType, func(n *sitenotes.Notes) {
			n.Word(p.Site)
			n.Word(linkerset.SymbolRef{Sym: base})
			n.Word(p.Semaphore)
			n.String(p.Provider)
			n.String(p.Name)
			n.String(p.Args)
		})
	}
	mark, err := w.w.Add(Section, text, notes)
	return []linkerset.SymbolRef{mark, {Sym: base}}, err
}

// BaseSymbol finds the symbol of the base section, which objects have that use
// SystemTap's macros too, or makes both as those macros do.
func (w *Writer) BaseSymbol() (uint32, error) {
	if w.base != 0 {
		return w.base, nil
	}
	var err error
	if w.base, err = findGlobal(w.w.Edit, BaseSymbol); err != nil || w.base != 0 {
		return w.base, err
	}
	sec := w.w.Edit.AddComdat(elfreloc.NewSection{
		Name: BaseSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 1, Data: make([]byte, 1),
	})
	w.base = w.w.Edit.AddSymbol(elfreloc.Symbol{
		Name: BaseSymbol, Bind: elf.STB_WEAK, Other: byte(elf.STV_HIDDEN), Section: sec, Size: 1,
	})
	return w.base, nil
}
