package notes

// gdb, perf, bpftrace, bcc and SystemTap read .note.stapsdt, as the macros of SystemTap's
// sys/sdt.h make it. The form of a note is described at
// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.

import (
	"debug/elf"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// StapsdtSection is the name of the sections of notes.
const StapsdtSection = ".note.stapsdt"

// stapsdtOwner and stapsdtType are what the notes of probes are among those of the section.
const (
	stapsdtOwner = "stapsdt"
	stapsdtType  = 3
)

// StapsdtNote is the note that AddStapsdt writes of one site.
type StapsdtNote struct {
	Provider string // with __ for dashes, as Name
	Name     string
	Args     string // operands, separated by spaces
	Site     linkerset.SymbolRef
	// Semaphore is what a tracer counts up, the zero SymbolRef for none.
	Semaphore linkerset.SymbolRef
}

// BaseSection is the section of one byte whose address each note holds beside that of
// its site, so that gdb sees how far prelink has moved a program. Without it gdb ignores
// the notes.
const BaseSection = ".stapsdt.base"

// BaseSymbol is the symbol of BaseSection.
const BaseSymbol = "_.stapsdt.base"

// WroteStapsdt reports whether a section holds notes that AddStapsdt has written.
func WroteStapsdt(s *elfreloc.Section) bool { return isOfWriter(s, StapsdtSection) }

// HasStapsdt reports whether an object has notes that AddStapsdt has written. A linker may have merged them with those of a compiler.
func HasStapsdt(o *elfreloc.Object) bool {
	return slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool { return WroteStapsdt(&s) || s.Name == allocatedSection })
}

// AddStapsdt adds the notes of the sites of text section text, of which note returns each. rela tells that
// addends are to be in relocations, and not in the notes. It returns what text has to refer to in order
// to keep them alive.
func (w *Writer) AddStapsdt(text int, rela bool, sites int, note func(i int) (StapsdtNote, error)) (anchors []linkerset.SymbolRef, err error) {
	base, err := w.baseSymbol()
	if err != nil {
		return nil, err
	}
	notes := w.newSection(rela, sites)
	for i := range sites {
		p, err := note(i)
		if err != nil {
			return nil, err
		}
		notes.add(stapsdtOwner, stapsdtType, func(n *sectionNotes) {
			n.word(p.Site)
			n.word(linkerset.SymbolRef{Sym: base})
			n.word(p.Semaphore)
			n.string(p.Provider)
			n.string(p.Name)
			n.string(p.Args)
		})
	}
	mark, err := w.addSection(StapsdtSection, text, notes)
	return []linkerset.SymbolRef{mark, {Sym: base}}, err
}

// baseSymbol finds the symbol of the base section, which objects have that use
// SystemTap's macros too, or makes both as those macros do.
func (w *Writer) baseSymbol() (uint32, error) {
	if w.base != 0 {
		return w.base, nil
	}
	var err error
	if w.base, err = findGlobal(w.edit, BaseSymbol); err != nil || w.base != 0 {
		return w.base, err
	}
	sec := w.edit.AddComdat(elfreloc.NewSection{
		Name: BaseSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 1, Data: make([]byte, 1),
	})
	w.base = w.edit.AddSymbol(elfreloc.Symbol{
		Name: BaseSymbol, Bind: elf.STB_WEAK, Other: byte(elf.STV_HIDDEN), Section: sec, Size: 1,
	})
	return w.base, nil
}
