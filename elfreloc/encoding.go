package elfreloc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/bits"
)

// Encoding is how an ELF file stores its tables and words: its class and its data
// encoding (gABI, "ELF Identification", EI_CLASS and EI_DATA), decided once when the
// file is opened. Encodings may be compared, and used from several goroutines.
type Encoding struct {
	Class elf.Class
	Order binary.ByteOrder // of EI_DATA

	// mips64el stores r_info as a little-endian symbol index followed by four
	// bytes of types, and not as one 64-bit word (MIPS64 ELF ABI, 2.9).
	swappedInfo bool
}

// Word returns the size of an address in bytes.
func (e Encoding) Word() int { return e.pick(4, 8) }

// SymbolSize returns the size of an entry of a symbol table in bytes.
func (e Encoding) SymbolSize() int { return e.pick(16, 24) }

func (e Encoding) headerSize() int        { return e.pick(52, 64) }
func (e Encoding) sectionHeaderSize() int { return e.pick(40, 64) }
func (e Encoding) segmentSize() int       { return e.pick(32, 56) }

func (e Encoding) relocSize(rela bool) int {
	if rela {
		return e.pick(12, 24)
	}
	return e.pick(8, 16)
}

func (e Encoding) pick(size32, size64 int) int {
	if e.Class == elf.ELFCLASS64 {
		return size64
	}
	return size32
}

// PutWord writes an address to the start of b, which has room for it.
func (e Encoding) PutWord(b []byte, v uint64) {
	if e.Class == elf.ELFCLASS64 {
		e.Order.PutUint64(b, v)
	} else {
		e.Order.PutUint32(b, uint32(v))
	}
}

// GetWord reads an address from the start of b, which holds one.
func (e Encoding) GetWord(b []byte) uint64 {
	if e.Class == elf.ELFCLASS64 {
		return e.Order.Uint64(b)
	}
	return uint64(e.Order.Uint32(b))
}

// fields walks through the fields of a record in a file, which it reads or, if writes is set, writes.
type fields struct {
	Encoding
	b      []byte // what is left of the record
	writes bool
}

// field reads or writes the next field, of so many bytes.
func field[T ~int | ~uint16 | ~uint32 | ~uint64](f *fields, size int, v *T) {
	b := f.b[:size]
	f.b = f.b[size:]
	switch {
	case size == 2 && f.writes:
		f.Order.PutUint16(b, uint16(*v))
	case size == 2:
		*v = T(f.Order.Uint16(b))
	case size == 4 && f.writes:
		f.Order.PutUint32(b, uint32(*v))
	case size == 4:
		*v = T(f.Order.Uint32(b))
	case f.writes:
		f.Order.PutUint64(b, uint64(*v))
	default:
		*v = T(f.Order.Uint64(b))
	}
}

// header holds the ELF header, but for the identification.
type header struct {
	Type     elf.Type
	Machine  elf.Machine
	Version  uint32
	Entry    uint64
	PhOff    uint64
	ShOff    uint64
	Flags    uint32
	EhSize   uint16
	PhEnt    uint16
	PhNum    uint16
	ShEnt    uint16
	ShNum    uint16
	ShStrNdx uint16
}

func (e Encoding) header(b []byte, h *header, writes bool) {
	f, word := &fields{e, b[elf.EI_NIDENT:], writes}, e.Word()
	field(f, 2, &h.Type)
	field(f, 2, &h.Machine)
	field(f, 4, &h.Version)
	field(f, word, &h.Entry)
	field(f, word, &h.PhOff)
	field(f, word, &h.ShOff)
	field(f, 4, &h.Flags)
	for _, v := range []*uint16{&h.EhSize, &h.PhEnt, &h.PhNum, &h.ShEnt, &h.ShNum, &h.ShStrNdx} {
		field(f, 2, v)
	}
}

func (e Encoding) section(b []byte, s *Section, writes bool) {
	f, word := &fields{e, b, writes}, e.Word()
	field(f, 4, &s.nameOff)
	field(f, 4, &s.Type)
	field(f, word, &s.Flags)
	field(f, word, &s.Addr)
	field(f, word, &s.Offset)
	field(f, word, &s.Size)
	field(f, 4, &s.Link)
	field(f, 4, &s.Info)
	field(f, word, &s.Align)
	field(f, word, &s.Entsize)
}

func (e Encoding) getSegment(b []byte) (s Segment) {
	f, word, physical := &fields{e, b, false}, e.Word(), uint64(0)
	field(f, 4, &s.Type)
	if e.Class == elf.ELFCLASS64 {
		field(f, 4, &s.Flags)
	}
	for _, v := range []*uint64{&s.Offset, &s.Vaddr, &physical, &s.Filesz, &s.Memsz} {
		field(f, word, v)
	}
	if e.Class == elf.ELFCLASS32 {
		field(f, 4, &s.Flags)
	}
	field(f, word, &s.Align)
	return s
}

// rawSymbol is an entry of a symbol table before its name and its section
// index are looked up.
type rawSymbol struct {
	name        uint32
	info, other byte
	shndx       uint16
	value, size uint64
}

func (e Encoding) getSymbol(b []byte) (s rawSymbol) {
	s.name = e.Order.Uint32(b)
	if e.Class == elf.ELFCLASS64 {
		s.info, s.other, s.shndx = b[4], b[5], e.Order.Uint16(b[6:])
		s.value, s.size = e.Order.Uint64(b[8:]), e.Order.Uint64(b[16:])
		return s
	}
	s.value, s.size = uint64(e.Order.Uint32(b[4:])), uint64(e.Order.Uint32(b[8:]))
	s.info, s.other, s.shndx = b[12], b[13], e.Order.Uint16(b[14:])
	return s
}

func (e Encoding) putSymbol(b []byte, s rawSymbol) {
	o := e.Order
	o.PutUint32(b, s.name)
	if e.Class == elf.ELFCLASS64 {
		b[4], b[5] = s.info, s.other
		o.PutUint16(b[6:], s.shndx)
		o.PutUint64(b[8:], s.value)
		o.PutUint64(b[16:], s.size)
		return
	}
	o.PutUint32(b[4:], uint32(s.value))
	o.PutUint32(b[8:], uint32(s.size))
	b[12], b[13] = s.info, s.other
	o.PutUint16(b[14:], s.shndx)
}

func (e Encoding) getReloc(b []byte, rela bool) (r Relocation) {
	if e.Class == elf.ELFCLASS64 {
		info := e.Order.Uint64(b[8:])
		if e.swappedInfo {
			info = info<<32 | uint64(bits.ReverseBytes32(uint32(info>>32)))
		}
		r.Offset, r.Sym, r.Type = e.Order.Uint64(b), uint32(info>>32), uint32(info)
		if rela {
			r.Addend = int64(e.Order.Uint64(b[16:]))
		}
	} else {
		info := e.Order.Uint32(b[4:])
		r.Offset, r.Sym, r.Type = uint64(e.Order.Uint32(b)), info>>8, info&0xff
		if rela {
			r.Addend = int64(int32(e.Order.Uint32(b[8:])))
		}
	}
	r.Implicit = !rela
	return r
}

func (e Encoding) putReloc(b []byte, r Relocation, rela bool) {
	if e.Class == elf.ELFCLASS64 {
		info := uint64(r.Sym)<<32 | uint64(r.Type)
		if e.swappedInfo {
			info = uint64(bits.ReverseBytes32(r.Type))<<32 | uint64(r.Sym)
		}
		e.Order.PutUint64(b, r.Offset)
		e.Order.PutUint64(b[8:], info)
		if rela {
			e.Order.PutUint64(b[16:], uint64(r.Addend))
		}
		return
	}
	e.Order.PutUint32(b, uint32(r.Offset))
	e.Order.PutUint32(b[4:], r.Sym<<8|r.Type&0xff)
	if rela {
		e.Order.PutUint32(b[8:], uint32(r.Addend))
	}
}

// appendReloc appends an entry of a relocation section.
func (e Encoding) appendReloc(b []byte, r Relocation, rela bool) []byte {
	at := len(b)
	b = append(b, make([]byte, e.relocSize(rela))...)
	e.putReloc(b[at:], r, rela)
	return b
}

// relocSymbols reads only the symbol indexes of relocations, of which a file may have millions.
type relocSymbols struct {
	at     int  // offset of the 32 bits that hold the index, in an entry
	shift  uint // of the index in these
	little bool // little-endian
}

func (e Encoding) relocSymbols() relocSymbols {
	r := relocSymbols{at: 8, little: e.Order == binary.ByteOrder(binary.LittleEndian)}
	switch {
	case e.Class != elf.ELFCLASS64:
		r.at, r.shift = 4, 8
	case r.little && !e.swappedInfo:
		r.at = 12
	}
	return r
}

// of returns the symbol index of an entry.
func (r relocSymbols) of(entry []byte) uint32 {
	if r.little {
		return binary.LittleEndian.Uint32(entry[r.at:]) >> r.shift
	}
	return binary.BigEndian.Uint32(entry[r.at:]) >> r.shift
}

// ABI is what the header of an object says of the machine and its conventions.
type ABI struct {
	Machine elf.Machine // e_machine
	Class   elf.Class   // EI_CLASS
	Data    elf.Data    // EI_DATA
	Flags   uint32      // e_flags
}

// ABI returns the object's ABI.
func (o *Object) ABI() ABI {
	abi := ABI{Machine: o.Machine, Class: o.Encoding.Class, Data: elf.ELFDATA2LSB, Flags: o.Flags}
	if o.Encoding.Order == binary.ByteOrder(binary.BigEndian) {
		abi.Data = elf.ELFDATA2MSB
	}
	return abi
}

// OSABI returns the system that the object is for, EI_OSABI: often none, where it is one of
// System V.
func (o *Object) OSABI() elf.OSABI { return elf.OSABI(o.header[elf.EI_OSABI]) }

// Empty makes an object of the same machine and ABI as o that holds nothing but
// the tables that an Edit adds to: symbols, their names, and those of sections.
// It keeps no part of o, which may be closed.
//
// So an object that is made from nothing is the edit of an empty one, and there
// is one writer of ELF files. The ABI is the class, the byte order, the OS ABI
// and e_flags, which linkers compare: RISC-V's for one say which registers pass
// floating-point numbers.
func (o *Object) Empty(name string) (*Object, error) {
	const symtab, strtab, shstrtab = 1, 2, 3
	const names = "\x00.symtab\x00.strtab\x00.shstrtab\x00"
	l := o.Encoding
	start := uint64(l.headerSize())
	contents := append(make([]byte, l.SymbolSize()+1), names...) // of the three, in their order
	sections := []Section{
		symtab: {
			nameOff: 1, Type: elf.SHT_SYMTAB, Link: strtab, Info: 1,
			Size: uint64(l.SymbolSize()), Align: uint64(l.Word()), Entsize: uint64(l.SymbolSize()),
		},
		strtab:   {nameOff: 9, Type: elf.SHT_STRTAB, Size: 1, Align: 1},
		shstrtab: {nameOff: 17, Type: elf.SHT_STRTAB, Size: uint64(len(names)), Align: 1},
	}
	table := (start + uint64(len(contents)) + uint64(l.Word()) - 1) &^ uint64(l.Word()-1)
	file := make([]byte, table+uint64(len(sections)*l.sectionHeaderSize()))
	copy(file, o.header[:elf.EI_NIDENT])
	copy(file[start:], contents)
	l.header(file, &header{
		Type: elf.ET_REL, Machine: o.Machine, Version: uint32(elf.EV_CURRENT), Flags: o.Flags, EhSize: uint16(l.headerSize()),
		ShOff: table, ShEnt: uint16(l.sectionHeaderSize()), ShNum: uint16(len(sections)), ShStrNdx: shstrtab,
	}, true)
	for i := range sections {
		s := &sections[i]
		if i > 0 {
			s.Offset, start = start, start+s.Size
		}
		l.section(file[int(table)+i*l.sectionHeaderSize():], s, true)
	}
	return Open(bytes.NewReader(file), int64(len(file)), name)
}
