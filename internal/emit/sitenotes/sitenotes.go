// Package sitenotes writes sections of notes about the sites of a text section, for
// tracers that read the file. What the notes say is their formats' business; what is
// here serves the linkers.
//
// Such notes are not loaded, so no linker's garbage collection follows what they refer
// to: left alone, the note of a function that is dropped says that there is a probe at
// 0, and a tracer that cannot arm it arms none of that name. gold does not even link
// it. Hence:
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
package sitenotes

import (
	"debug/elf"
	"encoding/binary"

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

// Is reports whether a section of the given name holds notes that a Writer has made:
// compilers link theirs to no other section.
func Is(s *elfreloc.Section, name string) bool {
	return s.Type == elf.SHT_NOTE && s.Name == name && s.Flags&elf.SHF_LINK_ORDER != 0
}

// Writer adds sections of notes to an object.
type Writer struct {
	Edit     *elfreloc.Edit
	m        arch.Machine
	keptText int // the last text section that addKeepSection was called for
}

// NewWriter starts to add sections.
func NewWriter(e *elfreloc.Edit, m arch.Machine) *Writer { return &Writer{Edit: e, m: m} }

// Notes starts a section of about so many notes. rela tells that addends are to be in
// relocations, and not in the notes.
func (w *Writer) Notes(rela bool, count int) *Notes {
	const usual, fields = 80, 3 // bytes and fields of a note
	return &Notes{layout: w.Edit.Object().Encoding, rela: rela, data: make([]byte, 0, usual*count), fields: make([]field, 0, fields*count)}
}

// Add writes notes of text section text, to a section of the given name. It returns
// what text has to refer to in order to keep them alive.
func (w *Writer) Add(name string, text int, n *Notes) (linkerset.SymbolRef, error) {
	sec := w.Edit.AddSection(elfreloc.NewSection{
		Name: name, Type: elf.SHT_NOTE, Flags: elf.SHF_LINK_ORDER, Align: align, Data: n.data,
		Relocs: true, Rela: n.rela, RelocCount: len(n.fields), GroupOf: text, Link: text,
	})
	for _, f := range n.fields {
		r := elfreloc.Relocation{Offset: f.offset, Type: w.m.Traits().Word, Sym: f.to.Sym, Addend: f.to.Addend}
		if err := w.Edit.AddRelocation(sec, r); err != nil {
			return linkerset.SymbolRef{}, err
		}
	}
	return linkerset.SymbolRef{Sym: linkerset.SectionMark(w.Edit, w.m, sec)}, w.addKeepSection(text, n.rela)
}

// addKeepSection adds the section that keeps text alive in gold, once.
func (w *Writer) addKeepSection(text int, rela bool) error {
	if !w.m.Traits().GoldSupported || w.keptText == text {
		return nil
	}
	w.keptText = text
	trap := w.m.Traits().Breakpoints[0]
	sec := w.Edit.AddSection(elfreloc.NewSection{
		Name: keepSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Align: uint64(len(trap)), Data: trap,
		Relocs: true, Rela: rela, GroupOf: text,
	})
	return w.Edit.AddRelocation(sec, elfreloc.Relocation{Type: w.m.Traits().None, Sym: linkerset.SectionMark(w.Edit, w.m, text)})
}

// align is what notes and their descriptions are aligned to, in bytes.
const align = 4

// Notes are the contents of a section of notes, and its fields that refer to
// something.
type Notes struct {
	layout elfreloc.Encoding
	rela   bool
	data   []byte
	fields []field
}

type field struct {
	offset uint64
	to     linkerset.SymbolRef
}

// Add appends a note (gABI, "Note Section"): its header, the owner with its NUL, and
// what describe appends.
func (n *Notes) Add(owner string, typ uint32, describe func(n *Notes)) {
	header := len(n.data)
	n.data = append(n.data, make([]byte, 12)...)
	n.String(owner)
	n.pad()
	start := len(n.data)
	describe(n)
	order := n.layout.Order
	order.PutUint32(n.data[header:], uint32(len(owner)+1))
	order.PutUint32(n.data[header+4:], uint32(len(n.data)-start))
	order.PutUint32(n.data[header+8:], typ)
	n.pad()
}

func (n *Notes) pad() {
	n.data = append(n.data, make([]byte, -len(n.data)&(align-1))...)
}

// Word appends an address, of the class's word size: 0 for the zero Ref.
func (n *Notes) Word(to linkerset.SymbolRef) {
	at := len(n.data)
	n.data = append(n.data, make([]byte, n.layout.Word())...)
	if to == (linkerset.SymbolRef{}) {
		return
	}
	n.fields = append(n.fields, field{uint64(at), to})
	if !n.rela {
		n.layout.PutWord(n.data[at:], uint64(to.Addend))
	}
}

// Word64 appends an address as 64 bits, whatever the class.
func (n *Notes) Word64(to linkerset.SymbolRef) {
	padding := make([]byte, 8-n.layout.Word())
	if n.layout.Order == binary.ByteOrder(binary.BigEndian) {
		n.data, padding = append(n.data, padding...), nil
	}
	n.Word(to)
	n.data = append(n.data, padding...)
}

// Byte appends one byte.
func (n *Notes) Byte(b byte) { n.data = append(n.data, b) }

// String appends a string and its NUL.
func (n *Notes) String(s string) { n.data = append(append(n.data, s...), 0) }
