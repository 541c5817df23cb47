package lines

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strings"

	"sdtconvert/elfreloc"
)

// The sections that are read.
const (
	debugInfo = iota
	debugAbbrev
	debugLine
	debugStr
	debugLineStr
	debugAddr
	debugStrOffsets
	debugRanges
	debugRnglists
	numSections
)

var sectionNames = [numSections]string{
	"info", "abbrev", "line", "str", "line_str", "addr", "str_offsets", "ranges", "rnglists",
}

// maxDebug bounds the debug information that is held in memory, in bytes. Of a small file
// that is less: unpackFactor times its size, and unpackBase. Compilers' debug information
// is packed to a fifth, and what is made to be expensive to a thousandth.
const maxDebug, unpackFactor, unpackBase = 1 << 30, 16, 16 << 20

// sections are the debug sections of a file. One that is relocated or
// decompressed is read as a whole when it is first asked for; of the others
// only the parts are that are asked for.
type sections struct {
	o     *elfreloc.Object
	list  [numSections]section
	held  uint64 // bytes in memory
	fixup func(index int, data []byte) error
}

type section struct {
	index  int // in the file, 0 when there is none
	packed bool
	data   []byte // once it was read as a whole
	whole  bool
	err    error
	texts  map[uint64]string // of a section of strings: those read, by offset
	budget uint64            // bytes of strings that may still be read
}

func (s *sections) find(o *elfreloc.Object) {
	s.o = o
	for i := range o.Sections {
		sec := &o.Sections[i]
		name, packed := strings.CutPrefix(sec.Name, ".zdebug_")
		if !packed {
			var ok bool
			if name, ok = strings.CutPrefix(sec.Name, ".debug_"); !ok {
				continue
			}
			packed = sec.Flags&elf.SHF_COMPRESSED != 0
		}
		// Sections in groups hold the types of a unit, never its code.
		if sec.Flags&elf.SHF_GROUP != 0 || !sec.InFile() {
			continue
		}
		for k, known := range sectionNames {
			if d := &s.list[k]; name == known && d.index == 0 {
				d.index, d.packed = i, packed
			}
		}
	}
}

func (s *sections) has(k int) bool { return s.list[k].index != 0 }

// budget returns how many bytes of a section may be decoded in all: sound tables do
// not overlap, and those of hostile input shall not be decoded for ever.
func (s *sections) budget(k int, times uint64) uint64 {
	const least = 1 << 16
	size, err := s.size(k)
	if err != nil {
		return least
	}
	return size*times + least
}

// name returns the name of a section, for messages.
func (s *sections) name(k int) string {
	if i := s.list[k].index; i != 0 {
		return s.o.Sections[i].Name
	}
	return ".debug_" + sectionNames[k]
}

// size returns the length of a section, 0 when there is none: section 0 may have one, which is
// the number of sections.
func (s *sections) size(k int) (uint64, error) {
	d := &s.list[k]
	switch {
	case d.index == 0:
		return 0, nil
	case d.packed:
		data, err := s.all(k)
		return uint64(len(data)), err
	}
	return s.o.Sections[d.index].Size, nil
}

// all returns a whole section; nil when there is none.
func (s *sections) all(k int) ([]byte, error) {
	d := &s.list[k]
	if d.index == 0 || d.whole {
		return d.data, d.err
	}
	d.whole = true
	d.data, d.err = s.load(d)
	return d.data, d.err
}

func (s *sections) load(d *section) ([]byte, error) {
	size := s.o.Sections[d.index].Size
	if err := s.hold(size); err != nil {
		return nil, err
	}
	data, err := s.o.Data(d.index)
	if err == nil && d.packed {
		data, err = s.unpack(d.index, data)
	} else if err == nil && s.fixup != nil {
		data = bytes.Clone(data)
	}
	if err == nil && s.fixup != nil {
		err = s.fixup(d.index, data)
	}
	if err != nil {
		return nil, bare(err)
	}
	return data, nil
}

// bare takes the name of the file from an error that will get it again.
func bare(err error) error {
	var e *elfreloc.Error
	if errors.As(err, &e) {
		if e.Section == "" {
			return e.Err
		}
		return &elfreloc.Error{File: e.Section, Offset: e.Offset, Err: e.Err}
	}
	return err
}

// hold accounts for memory that debug information is about to take.
func (s *sections) hold(n uint64) error {
	most := min(maxDebug, unpackBase+unpackFactor*uint64(s.o.Size()))
	if n > most || s.held+n > most {
		return fmt.Errorf("more than %d MiB of it would have to be held in memory", most>>20)
	}
	s.held += n
	return nil
}

// part reads n bytes at offset off. They are not to be modified.
func (s *sections) part(k int, off, n uint64) ([]byte, error) {
	size, err := s.size(k)
	if err != nil {
		return nil, err
	}
	if off > size || n > size-off {
		return nil, fmt.Errorf("%s+%#x: %d bytes wanted of a section of %#x bytes", s.name(k), off, n, size)
	}
	if d := &s.list[k]; s.fixup != nil || d.whole || d.packed {
		data, err := s.all(k)
		if err != nil {
			return nil, err
		}
		return data[off:][:n:n], nil
	}
	b, err := s.o.Bytes(s.list[k].index, off, n)
	if err != nil {
		return nil, bare(err)
	}
	return b, nil
}

// rest reads up to n bytes at offset off.
func (s *sections) rest(k int, off, n uint64) ([]byte, error) {
	size, err := s.size(k)
	if err != nil || off > size {
		return nil, err
	}
	return s.part(k, off, min(n, size-off))
}

// manyReads is after how many strings a section of them is read as a whole.
const manyReads = 256

// maxText bounds the length of a string.
const maxText = 1 << 16

// text reads the string at an offset of a section of strings, once.
func (s *sections) text(k int, off uint64) (string, error) {
	d := &s.list[k]
	if known, ok := d.texts[off]; ok {
		return known, nil
	}
	if d.texts == nil {
		d.texts, d.budget = make(map[uint64]string), s.budget(k, 4)
	}
	if len(d.texts) == manyReads {
		if _, err := s.all(k); err != nil {
			return "", err
		}
	}
	text, err := s.readText(k, off)
	if err == nil && uint64(len(text)) > d.budget {
		err = fmt.Errorf("%s+%#x: too many strings overlap", s.name(k), off)
	}
	if err != nil {
		return "", err
	}
	d.budget -= uint64(len(text))
	d.texts[off] = text
	return text, nil
}

func (s *sections) readText(k int, off uint64) (string, error) {
	for n := uint64(1 << 8); n <= maxText; n *= 16 {
		b, err := s.rest(k, off, n)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(b, 0); end >= 0 {
			return string(b[:end]), nil
		}
	}
	return "", fmt.Errorf("%s+%#x: a string has no end, or one of more than %d bytes", s.name(k), off, maxText)
}
