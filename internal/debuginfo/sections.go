package debuginfo

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/unpack"
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

	bytesRead uint64 // bytes, some of them several times
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
		for k, sectionName := range sectionNames {
			if d := &s.list[k]; name == sectionName && d.index == 0 {
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
	return times*uint64(len(d.data)) + least - d.bytesRead
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
	limit := min(maxDebug, unpackBase+unpackFactor*uint64(s.o.Held()))
	if n > limit || s.held+n > limit {
		return fmt.Errorf("more than %d MiB of it would have to be held in memory", limit>>20)
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

// The most bytes that one can become: deflate repeats 258 bytes by two codes of
// one bit (RFC 1951, 3.2.5), zstd a block of 128 KiB by four bytes (RFC 8878,
// 3.1.1.2).
var maxGrowth = map[elf.CompressionType]uint64{
	elf.COMPRESS_ZLIB: 1032,
	elf.COMPRESS_ZSTD: 1 << 17 / 4,
}

// unpack decompresses a section: one with the header of the gABI, chapter 4,
// "Section Compression", or one called .zdebug_* that starts with "ZLIB" and its
// size, as older tools had it.
func (s *sections) unpack(index int, data []byte) ([]byte, error) {
	kind, size, packed := s.compressed(index, data)
	name := s.o.Sections[index].Name
	growth, ok := maxGrowth[kind]
	switch {
	case packed == nil:
		return nil, fmt.Errorf("%s: %d bytes, and no header of a compressed section", name, len(data))
	case !ok:
		return nil, fmt.Errorf("%s: compressed as %v, which is not known", name, kind)
	case size > growth*uint64(len(packed)):
		return nil, fmt.Errorf("%s: says that %d bytes decompress to %d", name, len(packed), size)
	}
	if err := s.hold(size); err != nil {
		return nil, err
	}
	r, err := decompressor(kind, size, packed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := make([]byte, size)
	if n, err := io.ReadFull(r, out); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("ends after %d of %d bytes", n, size)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// compressed splits a section into its header and what is compressed, which is
// nil when there is no header.
func (s *sections) compressed(index int, data []byte) (elf.CompressionType, uint64, []byte) {
	l := s.o.Encoding
	if s.o.Sections[index].Flags&elf.SHF_COMPRESSED == 0 {
		if !bytes.HasPrefix(data, []byte("ZLIB")) || len(data) < 12 {
			return 0, 0, nil
		}
		return elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(data[4:]), data[12:]
	}
	// Elf32_Chdr is three words of 4 bytes; Elf64_Chdr three of 8, the first of
	// them half unused.
	if len(data) < 3*l.Word() {
		return 0, 0, nil
	}
	return elf.CompressionType(l.Order.Uint32(data)), l.GetWord(data[l.Word():]), data[3*l.Word():]
}

func decompressor(kind elf.CompressionType, size uint64, packed []byte) (io.Reader, error) {
	if kind == elf.COMPRESS_ZLIB {
		return zlib.NewReader(bytes.NewReader(packed))
	}
	return unpack.ZstdReader(size, packed)
}

// placeSections gives each section of code addresses that no other has, since in
// an object every section begins at 0. It returns the first of each, and all of
// them.
//
// Other than Object.Code it takes sections without contents for code: this may be
// the debug file of an object, where all are of SHT_NOBITS.
func placeSections(o *elfreloc.Object) (base map[int]uint64, code elfreloc.Code) {
	const page = 1 << 12
	base = make(map[int]uint64)
	next := uint64(page)
	for i := range o.Sections {
		// What is larger than all addresses is in no file that can be linked.
		if s := &o.Sections[i]; s.Flags&elf.SHF_EXECINSTR != 0 && s.Size < 1<<47 && next < 1<<48 {
			base[i] = next
			if s.Size > 0 {
				code = append(code, elfreloc.CodeRange{Start: next, End: next + s.Size})
			}
			next += (s.Size + 2*page - 1) &^ (page - 1)
		}
	}
	return base, code
}

// relocator returns a function that applies the relocations of a debug section to its bytes.
func relocator(o *elfreloc.Object, m arch.Machine, base map[int]uint64) func(index int, data []byte) error {
	return func(index int, data []byte) error {
		isOwn := func(sec *elfreloc.Section) bool { return sec == &o.Sections[index] }
		return o.EachRelocationOf(isOwn, func(_ int, r elfreloc.Relocation) error {
			syms, err := o.Symbols()
			rel := m.Traits().DataReloc(r.Type)
			if err != nil || rel.Size == 0 || r.Offset > uint64(len(data)) {
				return err
			}
			field := begin(data[r.Offset:], rel.Size)
			if field == nil {
				return nil
			}
			sym := syms.At(int(r.Sym))
			value := base[sym.Section] + sym.Value + uint64(r.Addend)
			old := get(o, rel.Size, field)
			switch {
			case rel.Op == arch.Add:
				value = old + value
			case rel.Op == arch.Sub:
				value = old - value
			case r.Implicit:
				value += old
			}
			put(o, rel.Size, field, value)
			return nil
		})
	}
}

// begin returns the field of a size that data begins with, nil where data ends before it
// does.
func begin(data []byte, size int) []byte {
	if size == arch.ULEB128 {
		size = 1 + slices.IndexFunc(data[:min(len(data), binary.MaxVarintLen64)], func(b byte) bool { return b < 0x80 })
	}
	if size == 0 || size > len(data) {
		return nil
	}
	return data[:size]
}

func get(o *elfreloc.Object, size int, b []byte) uint64 {
	if size == arch.ULEB128 {
		value, _ := binary.Uvarint(b)
		return value
	}
	c := cursor{data: b, big: o.Encoding.Order == binary.ByteOrder(binary.BigEndian)}
	return c.uint(size)
}

func put(o *elfreloc.Object, size int, b []byte, v uint64) {
	switch size {
	case arch.ULEB128: // whose length stays, whatever the value takes
		for i := range b {
			b[i] = b[i]&0x80 | byte(v>>(7*i))&0x7f
		}
	case 1:
		b[0] = byte(v)
	case 2:
		o.Encoding.Order.PutUint16(b, uint16(v))
	case 4:
		o.Encoding.Order.PutUint32(b, uint32(v))
	default:
		o.Encoding.Order.PutUint64(b, v)
	}
}
