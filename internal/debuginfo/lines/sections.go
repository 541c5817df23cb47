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

// sections are the debug sections of a file. Each is read as a whole when it is first
// asked for, decompressed and relocated.
type sections struct {
	o        *elfreloc.Object
	list     [numSections]section
	held     uint64                             // bytes in memory
	relocate func(index int, data []byte) error // nil unless the file is relocatable
}

type section struct {
	index  int // in the file, 0 when there is none
	packed bool
	read   bool
	data   []byte
	err    error

	decoded uint64 // bytes, some of them several times
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

// name returns the name of a section, for messages.
func (s *sections) name(k int) string {
	if i := s.list[k].index; i != 0 {
		return s.o.Sections[i].Name
	}
	return ".debug_" + sectionNames[k]
}

// fault makes an error that names a section and an offset in it.
func (s *sections) fault(k int, off uint64, format string, args ...any) error {
	return fmt.Errorf("%s+%#x: %s", s.name(k), off, fmt.Sprintf(format, args...))
}

// data returns a section, which is not to be modified; nil when there is none.
func (s *sections) data(k int) ([]byte, error) {
	d := &s.list[k]
	if d.index != 0 && !d.read {
		d.read = true
		d.data, d.err = s.load(d)
	}
	return d.data, d.err
}

// from returns what follows an offset of a section.
func (s *sections) from(k int, off uint64) ([]byte, error) {
	data, err := s.data(k)
	if err == nil && off >= uint64(len(data)) {
		err = s.fault(k, off, "beyond the end at %#x", len(data))
	}
	if err != nil {
		return nil, err
	}
	return data[off:], nil
}

// left returns how many bytes of a section that was read may still be decoded, where all of
// it may be so some times: sound tables do not overlap, and those of hostile input shall not
// be decoded for ever.
func (s *sections) left(k int, times uint64) uint64 {
	const least = 1 << 16
	d := &s.list[k]
	return times*uint64(len(d.data)) + least - d.decoded
}

func (s *sections) load(d *section) ([]byte, error) {
	if err := s.hold(s.o.Sections[d.index].Size); err != nil {
		return nil, err
	}
	data, err := s.o.Data(d.index)
	if err == nil && d.packed {
		data, err = s.unpack(d.index, data)
	}
	if err == nil && s.relocate != nil {
		err = s.relocate(d.index, data)
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

// maxText bounds the length of a string.
const maxText = 1 << 16

// text returns the string at an offset of a section of strings.
func (s *sections) text(k int, off uint64) (string, error) {
	data, err := s.from(k, off)
	if err != nil {
		return "", err
	}
	end := bytes.IndexByte(data[:min(len(data), maxText)], 0)
	if end < 0 {
		return "", s.fault(k, off, "a string has no end, or one of more than %d bytes", maxText)
	}
	return string(data[:end]), nil
}
