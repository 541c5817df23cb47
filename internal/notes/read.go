package notes

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
)

// Note is a note of .note.stapsdt that Read has found: one of SystemTap's sys/sdt.h, or one that a conversion has
// added. Notes are not loaded: a process has those of the files that it has mapped.
type Note struct {
	Provider, Name string // as written: with __ and not a dash
	Args           string // operands, separated by spaces
	Site           image.Ref
	// Semaphore is 16 bits, which tracers count up while they have the site armed. It
	// is Null of a probe without any. In an object it may be left to the linker.
	Semaphore image.Ref
	// Base is the address that .stapsdt.base was linked for, as a linked file's note has it; 0 if it has none.
	Base uint64
}

// ID returns the id of the note's probe: what a stub's name would have.
func (n *Note) ID() string { return n.Provider + "___" + n.Name }

// Names reports whether the note names a probe.
func (n *Note) Names(p *linkerset.Probe) bool {
	return p.Provider == linkerset.DisplayName(n.Provider) && p.Name == linkerset.DisplayName(n.Name)
}

// Read returns the notes of an object or a linked file, in their order. What cannot be
// read of them is in faults, each an *elfreloc.Error; err keeps a whole section from
// being read.
//
// Addresses in a linked file are those that it is linked for now: prelink moves a
// program and not its notes, but each has the address that the section .stapsdt.base
// was linked for.
func Read(o *elfreloc.Object, im image.Image) (notes []Note, faults []error, err error) {
	r := &noteReader{o: o, im: im}
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Name == BaseSection && o.Type != elf.ET_REL && r.base == nil {
			r.base = &s.Addr
		}
	}
	left := uint64(o.Size())
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Type != elf.SHT_NOTE || s.Name != StapsdtSection {
			continue
		}
		if s.Size > left {
			return nil, nil, o.SectionError(i, errors.New("overlaps other notes in the file"))
		}
		left -= s.Size
		if err := r.section(i); err != nil {
			return nil, nil, err
		}
	}
	return r.notes, r.faults, nil
}

type noteReader struct {
	o      *elfreloc.Object
	im     image.Image
	base   *uint64 // address of BaseSection; nil if the file has none
	notes  []Note
	faults []error
}

// section reads the notes of one section, up to one that is cut off.
func (r *noteReader) section(sec int) error {
	data, err := r.o.Data(sec)
	if err != nil {
		return err
	}
	for n, err := range r.o.Encoding.Notes(data, 4) {
		if err == nil && (n.Type != stapsdtType || string(n.Owner) != stapsdtOwner+"\x00") {
			continue
		}
		if err == nil {
			err = r.readNote(sec, n.Offset, n.Desc)
		}
		if err != nil {
			r.faults = append(r.faults, r.o.OffsetError(sec, n.Offset, err))
		}
	}
	return nil
}

// readNote reads the descriptor of a note, which is at an offset in its section: three
// addresses and three strings.
func (r *noteReader) readNote(sec int, at uint64, desc []byte) error {
	word := uint64(r.o.Encoding.Word())
	if uint64(len(desc)) < 3*word {
		return fmt.Errorf("a note of %d bytes, which has no room for three addresses", len(desc))
	}
	var n Note
	rest := desc[3*word:]
	for _, s := range []*string{&n.Provider, &n.Name, &n.Args} {
		text, after, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			return errors.New("a string of a note has no end")
		}
		*s, rest = string(text), after
	}
	if r.o.Type == elf.ET_REL {
		if err := r.relocated(&n, image.Addr{Section: sec, Offset: at}, word); err != nil {
			return err
		}
	} else {
		r.linked(&n, desc, word)
	}
	r.notes = append(r.notes, n)
	return nil
}

// relocated follows the addresses of an object's note.
func (r *noteReader) relocated(n *Note, at image.Addr, word uint64) (err error) {
	if n.Site, err = r.im.Word(at); err != nil {
		return reason(err)
	}
	n.Semaphore, err = r.im.Word(at.Add(2 * word))
	return reason(err)
}

// reason returns an error without its place, which a fault has anyhow.
func reason(err error) error {
	if at, ok := errors.AsType[*elfreloc.Error](err); ok {
		return at.Err
	}
	return err
}

// linked reads the addresses of a linked file's note.
func (r *noteReader) linked(n *Note, desc []byte, word uint64) {
	get := func(i uint64) uint64 { return r.o.Encoding.GetWord(desc[i*word:]) }
	n.Base = get(1)
	moved := uint64(0)
	if r.base != nil && n.Base != 0 {
		moved = *r.base - n.Base
	}
	n.Site.Offset = get(0) + moved
	if semaphore := get(2); semaphore != 0 {
		n.Semaphore.Offset = semaphore + moved
	}
	if word == 4 {
		n.Site.Offset, n.Semaphore.Offset = uint64(uint32(n.Site.Offset)), uint64(uint32(n.Semaphore.Offset))
	}
}

// SemaphoreNameAt returns the symbol that names a semaphore: the one that a relocation has,
// else of those at its place the one that ends as the names of semaphores do. It is ""
// where no symbol is left.
func SemaphoreNameAt(im image.Image, semaphore image.Ref) (string, error) {
	if semaphore.Symbol != "" {
		return semaphore.Symbol, nil
	}
	names, err := im.SymbolsAt(semaphore.Addr)
	if err != nil || len(names) == 0 {
		return "", err
	}
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, SemaphoreSuffix) })
	return names[max(i, 0)], nil
}
