// Package notes writes and reads the notes by which tracers of user space know the sites
// of a file, and makes the semaphores that such notes name. A file for each format says what
// its notes hold:
//
//	stapsdt.go  .note.stapsdt, for gdb, perf, bpftrace, bcc and SystemTap
//	usdt.go     .note.usdt, for DTrace on Linux
//
// functions.go writes, and readfunctions.go reads, the tables that say which function each site is in.
//
// Notes are not loaded, so no linker's garbage collection follows what they refer
// to: left alone, the note of a function that is dropped says that there is a probe at
// 0, and a tracer that cannot arm it arms none of that name. gold does not even link
// it. Hence:
//
//   - Each text section has a note section of its own, in its section group
//     where there is one, and with SHF_LINK_ORDER: GNU ld and lld drop it
//     together with the text.
//   - GNU ld -r refuses to put such sections beside notes of compilers, which
//     have no SHF_LINK_ORDER. There, notes are in a group instead, with an empty
//     section that is loaded: GNU ld and lld collect such a group if nothing
//     refers to it. mold -r would forget the group.
//   - The text refers to its notes, by relocations that do nothing. `ld -r` of
//     GNU ld makes one section of all notes with SHF_LINK_ORDER, linked to the
//     first text section alone; gold and mold forget the link. What refers to a
//     note keeps it.
//   - The other linkers keep notes, so they have to keep the text: mold does, for
//     the records that refer to it. For gold there is keepSection.
//
// Loaded notes would be collected as text is. But then their addresses would be
// relocated by the loader, while tracers read the file.
package notes

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// keepSection is the name of a section that keeps text alive in gold, which
// refuses to link notes of what it has dropped. gold never drops a text section
// of such a name, which some compiler once gave to functions that only unwind
// tables refer to. The section holds a trap, because gold does not link one that
// is empty. The others drop it, or have a byte or a word more of code.
const keepSection = ".text.__sdt_personality"

// allocatedSection is the empty section beside notes in a group. It tells objects that linkers have merged, too.
const allocatedSection = ".rodata.sdt_notes"

// isOfWriter reports whether a section of the given name holds notes that a Writer has made:
// compilers link theirs to no other section, and give them no size of entries.
func isOfWriter(s *elfreloc.Section, name string) bool {
	return s.Type == elf.SHT_NOTE && s.Name == name && (s.Flags&elf.SHF_LINK_ORDER != 0 || s.Entsize == noteAlign)
}

// Writer adds sections of notes to an object.
type Writer struct {
	edit     *elfreloc.Edit
	m        arch.Machine
	grouped  bool   // notes have no SHF_LINK_ORDER
	keptText int    // the last text section that addKeepSection was called for
	base     uint32 // the symbol of BaseSection, once it is needed

	functionNote uint32 // the symbol of the note of functions, once it is needed
}

// NewWriter returns a Writer that adds sections to an edit. If isGrouped is set, or the object has notes of a compiler, it does without
// SHF_LINK_ORDER.
func NewWriter(e *elfreloc.Edit, m arch.Machine, isGrouped bool) *Writer {
	return &Writer{edit: e, m: m, grouped: isGrouped || HasUnlinked(e.Object())}
}

// HasUnlinked reports whether an object has notes without SHF_LINK_ORDER, as those of compilers.
func HasUnlinked(o *elfreloc.Object) bool {
	return slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool {
		return s.Type == elf.SHT_NOTE && s.Name == StapsdtSection && s.Flags&elf.SHF_LINK_ORDER == 0
	})
}

// newSection returns the contents of a section of about so many notes. rela tells that addends are to be in
// relocations, and not in the notes.
func (w *Writer) newSection(rela bool, count int) *sectionNotes {
	const usual, fields = 80, 3 // bytes and fields of a note
	return &sectionNotes{layout: w.edit.Object().Encoding, rela: rela, data: make([]byte, 0, usual*count), fields: make([]noteField, 0, fields*count)}
}

// addSection adds a section of the given name with the notes of text section text. It returns
// what text has to refer to in order to keep them alive.
func (w *Writer) addSection(name string, text int, n *sectionNotes) (linkerset.SymbolRef, error) {
	section := elfreloc.NewSection{
		Name: name, Type: elf.SHT_NOTE, Flags: elf.SHF_LINK_ORDER, Align: noteAlign, Data: n.data,
		Relocs: true, Rela: n.rela, RelocCount: len(n.fields), GroupOf: text, Link: text,
	}
	if w.grouped {
		section.Flags, section.Link, section.Entsize = 0, 0, noteAlign
		if !w.edit.IsGrouped(text) {
			section.GroupOf = w.edit.AddPlainGroup(w.edit.SectionSymbol(text))
		}
		w.edit.AddSection(elfreloc.NewSection{Name: allocatedSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Align: 1, GroupOf: section.GroupOf})
	}
	sec := w.edit.AddSection(section)
	for _, f := range n.fields {
		r := elfreloc.Relocation{Offset: f.offset, Type: w.m.Traits().Word, Sym: f.to.Sym, Addend: f.to.Addend}
		if err := w.edit.AddRelocation(sec, r); err != nil {
			return linkerset.SymbolRef{}, err
		}
	}
	return linkerset.SymbolRef{Sym: linkerset.SectionMark(w.edit, w.m, sec)}, w.addKeepSection(text, n.rela)
}

// addKeepSection adds the section that keeps text alive in gold, once.
func (w *Writer) addKeepSection(text int, rela bool) error {
	if !w.m.Traits().GoldSupported || w.keptText == text {
		return nil
	}
	w.keptText = text
	trap := w.m.Traits().Breakpoints[0]
	sec := w.edit.AddSection(elfreloc.NewSection{
		Name: keepSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Align: uint64(len(trap)), Data: trap,
		Relocs: true, Rela: rela, GroupOf: text,
	})
	return w.edit.AddRelocation(sec, elfreloc.Relocation{Type: w.m.Traits().None, Sym: linkerset.SectionMark(w.edit, w.m, text)})
}

// noteAlign is what notes and their descriptions are aligned to, in bytes.
const noteAlign = 4

// sectionNotes are the contents of a section of notes, and its fields that refer to
// something.
type sectionNotes struct {
	layout elfreloc.Encoding
	rela   bool
	data   []byte
	fields []noteField
}

type noteField struct {
	offset uint64
	to     linkerset.SymbolRef
}

// add appends a note (gABI, "Note Section"): its header, the owner with its NUL, and
// what describe appends.
func (n *sectionNotes) add(owner string, typ uint32, describe func(n *sectionNotes)) {
	header := len(n.data)
	n.data = append(n.data, make([]byte, 12)...)
	n.string(owner)
	n.pad()
	start := len(n.data)
	describe(n)
	order := n.layout.Order
	order.PutUint32(n.data[header:], uint32(len(owner)+1))
	order.PutUint32(n.data[header+4:], uint32(len(n.data)-start))
	order.PutUint32(n.data[header+8:], typ)
	n.pad()
}

func (n *sectionNotes) pad() {
	n.data = append(n.data, make([]byte, -len(n.data)&(noteAlign-1))...)
}

// word appends an address, of the class's word size: 0 for the zero SymbolRef.
func (n *sectionNotes) word(to linkerset.SymbolRef) {
	at := len(n.data)
	n.data = append(n.data, make([]byte, n.layout.Word())...)
	if to == (linkerset.SymbolRef{}) {
		return
	}
	n.fields = append(n.fields, noteField{uint64(at), to})
	if !n.rela {
		n.layout.PutWord(n.data[at:], uint64(to.Addend))
	}
}

// word64 appends an address as 64 bits, whatever the class.
func (n *sectionNotes) word64(to linkerset.SymbolRef) {
	padding := make([]byte, 8-n.layout.Word())
	if n.layout.Order == binary.ByteOrder(binary.BigEndian) {
		n.data, padding = append(n.data, padding...), nil
	}
	n.word(to)
	n.data = append(n.data, padding...)
}

// byte appends one byte.
func (n *sectionNotes) byte(b byte) { n.data = append(n.data, b) }

// string appends a string and its NUL.
func (n *sectionNotes) string(s string) { n.data = append(append(n.data, s...), 0) }
