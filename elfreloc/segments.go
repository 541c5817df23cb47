package elfreloc

import (
	"debug/elf"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Segment is a program header (gABI, "Program Header"): what a loader maps.
type Segment struct {
	Type   elf.ProgType
	Flags  elf.ProgFlag
	Offset uint64 // in the file, bytes
	Vaddr  uint64 // the address that the image was linked for
	Filesz uint64 // bytes in the file; the rest of Memsz is zero
	Memsz  uint64 // bytes in memory
	Align  uint64 // bytes, as the file has it
}

// Segments reads the program headers. Relocatable objects have none.
//
// A segment that lies beyond the file's end is not an error, because the separate
// debug file of an image has the image's program headers and not its contents:
// the reader of a segment checks it (ReadFile).
func (o *Object) Segments() ([]Segment, error) {
	num, ent := uint64(o.phnum), o.Encoding.segmentSize()
	if num == pnXnum && len(o.Sections) > 0 {
		num = uint64(o.Sections[0].Info) // gABI: the count is there when it does not fit e_phnum
	}
	if num == 0 {
		return nil, nil
	}
	if o.phentsize != ent {
		return nil, o.errorf("program headers of %d bytes, want %d", o.phentsize, ent)
	}
	if num > uint64(o.size)/uint64(ent) {
		return nil, o.errorf("%d program headers in a file of %d bytes", num, o.size)
	}
	table, err := o.checkedRead("program header table", o.phOff, num*uint64(ent))
	if err != nil {
		return nil, err
	}
	segments := make([]Segment, num)
	for i := range segments {
		segments[i] = o.Encoding.getSegment(table[i*ent:])
		if s := &segments[i]; s.Type == elf.PT_LOAD && s.Filesz > s.Memsz {
			return nil, o.errorf("segment %d has %#x bytes in the file, %#x in memory", i, s.Filesz, s.Memsz)
		}
	}
	return segments, nil
}

// pnXnum is PN_XNUM: there are more program headers than e_phnum can count.
const pnXnum = 0xffff

// DynamicSymbols reads the symbol table of the dynamic linker, SHT_DYNSYM,
// each time it is called. Without one it is empty.
func (o *Object) DynamicSymbols() (*Symbols, error) {
	t := newSymbols(o)
	if i := o.dynamicSymtab(); i != 0 {
		return t, t.read(i, 0)
	}
	return t, nil
}

// dynamicSymtab returns the index of the first SHT_DYNSYM section, 0 if there is none.
func (o *Object) dynamicSymtab() int {
	return max(0, slices.IndexFunc(o.Sections, func(s Section) bool { return s.Type == elf.SHT_DYNSYM }))
}

// MakeSymbols makes a table of what a loader sees of dynamic symbols: their
// entries, which it keeps and which are not to be modified, and their strings.
func (o *Object) MakeSymbols(entries, strings []byte) (*Symbols, error) {
	if len(entries)%o.Encoding.SymbolSize() != 0 {
		return nil, o.errorf("%d bytes of dynamic symbols of %d bytes", len(entries), o.Encoding.SymbolSize())
	}
	t := newSymbols(o)
	t.setRaw(entries)
	t.strings = string(strings)
	for i := range t.Len() {
		if err := t.checkAt(i); err != nil {
			return nil, o.errorf("dynamic symbol %d: %w", i, err)
		}
	}
	return t, nil
}

// Join returns a table with the symbols of t, and behind them those of appended, but for its symbol 0. Both are
// of linked files of one encoding; no symbol of the table counts as local.
func (t *Symbols) Join(appended *Symbols) *Symbols {
	if t.len == 0 {
		return appended
	}
	joined := newSymbols(t.o)
	joined.strings = t.strings + "\x00" + appended.strings
	raw := slices.Clone(t.raw)
	if appended.len > 0 {
		raw = append(raw, appended.raw[appended.size:]...)
	}
	names := uint32(len(t.strings) + 1)
	for at := len(t.raw); at < len(raw); at += t.size {
		t.o.Encoding.Order.PutUint32(raw[at:], names+t.o.Encoding.Order.Uint32(raw[at:]))
	}
	joined.setRaw(raw)
	return joined
}

// ReadDynamic calls f with each entry of a relocation table that a loader
// applies: a part of memory, and no section that names a symbol table, so that Sym may
// be anything. It stops at the first error of f, which it returns with the file's name.
func (o *Object) ReadDynamic(table []byte, rela bool, f func(r Relocation) error) error {
	size := o.Encoding.relocSize(rela)
	if len(table)%size != 0 {
		return o.errorf("%d bytes of dynamic relocations of %d bytes", len(table), size)
	}
	for ; len(table) > 0; table = table[size:] {
		if err := f(o.Encoding.getReloc(table, rela)); err != nil {
			return &Error{File: o.Name, Err: err}
		}
	}
	return nil
}

// EachDynamic calls f with each relocation that a loader, or a static program itself, applies, as ReadDynamic
// does for a table. It reads the tables of section headers; an image without them has none. Tables that together are
// longer than the file are refused.
func (o *Object) EachDynamic(f func(r Relocation) error) error {
	left := uint64(o.size)
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if s.Size > left {
			return o.SectionError(i, errors.New("overlaps other relocations in the file"))
		}
		left -= s.Size
		data, err := o.Data(i)
		if err != nil {
			return err
		}
		if err := o.ReadDynamic(data, s.Type == elf.SHT_RELA, f); err != nil {
			return err
		}
	}
	return nil
}

// Note is an entry of a section or segment of notes (gABI, chapter 5, "Note Section").
type Note struct {
	Owner  []byte // as the file has it, mostly with a NUL
	Type   uint32 // the owner defines it
	Desc   []byte
	Offset uint64 // of Desc, from the start of the notes, bytes
}

// Notes returns the notes in data. align is that of the section or segment: parts of notes
// are padded to 8 bytes if it is 8, and else to 4. It ends with an error at a note that is cut
// off, whose start is the Offset then: where another would begin is not known.
func (e Encoding) Notes(data []byte, align uint64) iter.Seq2[Note, error] {
	const head = 12 // the sizes of the owner and of Desc, and the type
	if align != 8 {
		align = 4
	}
	pad := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	size := uint64(len(data))
	return func(yield func(Note, error) bool) {
		for at := uint64(0); at < size; {
			if size-at < head {
				yield(Note{Offset: at}, fmt.Errorf("%d bytes are too few for the header of a note", size-at))
				return
			}
			word := func(i uint64) uint32 { return e.Order.Uint32(data[at+4*i:]) }
			owner := at + head + uint64(word(0))
			start := at + pad(head+uint64(word(0)))
			end := start + uint64(word(1))
			if end > size {
				yield(Note{Offset: at}, fmt.Errorf("a note ends %d bytes behind its section", end-size))
				return
			}
			if !yield(Note{data[at+head : owner], word(2), data[start:end], start}, nil) {
				return
			}
			at = start + pad(end-start)
		}
	}
}
