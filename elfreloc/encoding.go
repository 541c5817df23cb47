package elfreloc

import (
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

// header holds the fields of the ELF header that matter here.
type header struct {
	Type     elf.Type
	Machine  elf.Machine
	Version  uint32
	Flags    uint32
	PhOff    uint64
	PhEnt    uint16
	PhNum    uint16
	ShOff    uint64
	ShEnt    uint16
	ShNum    uint16
	ShStrNdx uint16
}

func (e Encoding) getHeader(b []byte) header {
	h := header{Type: elf.Type(e.Order.Uint16(b[16:])), Machine: elf.Machine(e.Order.Uint16(b[18:])), Version: e.Order.Uint32(b[20:])}
	if e.Class == elf.ELFCLASS64 {
		h.PhOff, h.ShOff, b = e.Order.Uint64(b[32:]), e.Order.Uint64(b[40:]), b[48:]
	} else {
		h.PhOff, h.ShOff, b = uint64(e.Order.Uint32(b[28:])), uint64(e.Order.Uint32(b[32:])), b[36:]
	}
	h.Flags, h.PhEnt, h.PhNum, h.ShEnt = e.Order.Uint32(b), e.Order.Uint16(b[6:]), e.Order.Uint16(b[8:]), e.Order.Uint16(b[10:])
	h.ShNum, h.ShStrNdx = e.Order.Uint16(b[12:]), e.Order.Uint16(b[14:])
	return h
}

// putHeader writes the fields of a header that has no program headers, but for
// the identification and what putSectionTable writes.
func (e Encoding) putHeader(b []byte, h header) {
	o, size := e.Order, uint16(e.headerSize())
	o.PutUint16(b[16:], uint16(h.Type))
	o.PutUint16(b[18:], uint16(h.Machine))
	o.PutUint32(b[20:], h.Version)
	b = b[e.pick(36, 48):]
	o.PutUint32(b, h.Flags)
	o.PutUint16(b[4:], size)
	o.PutUint16(b[10:], h.ShEnt)
}

// putSectionTable updates the three fields that a grown section table changes.
func (e Encoding) putSectionTable(b []byte, off uint64, num, strndx uint16) {
	if e.Class == elf.ELFCLASS64 {
		e.Order.PutUint64(b[40:], off)
		b = b[60:]
	} else {
		e.Order.PutUint32(b[32:], uint32(off))
		b = b[48:]
	}
	e.Order.PutUint16(b, num)
	e.Order.PutUint16(b[2:], strndx)
}

func (e Encoding) getSection(b []byte) (s Section) {
	s.nameOff, s.Type = e.Order.Uint32(b), elf.SectionType(e.Order.Uint32(b[4:]))
	if e.Class == elf.ELFCLASS64 {
		s.Flags, s.Addr = elf.SectionFlag(e.Order.Uint64(b[8:])), e.Order.Uint64(b[16:])
		s.Offset, s.Size = e.Order.Uint64(b[24:]), e.Order.Uint64(b[32:])
		s.Link, s.Info = e.Order.Uint32(b[40:]), e.Order.Uint32(b[44:])
		s.Align, s.Entsize = e.Order.Uint64(b[48:]), e.Order.Uint64(b[56:])
		return s
	}
	s.Flags, s.Addr = elf.SectionFlag(e.Order.Uint32(b[8:])), uint64(e.Order.Uint32(b[12:]))
	s.Offset, s.Size = uint64(e.Order.Uint32(b[16:])), uint64(e.Order.Uint32(b[20:]))
	s.Link, s.Info = e.Order.Uint32(b[24:]), e.Order.Uint32(b[28:])
	s.Align, s.Entsize = uint64(e.Order.Uint32(b[32:])), uint64(e.Order.Uint32(b[36:]))
	return s
}

func (e Encoding) putSection(b []byte, s *Section) {
	o := e.Order
	o.PutUint32(b, s.nameOff)
	o.PutUint32(b[4:], uint32(s.Type))
	if e.Class == elf.ELFCLASS64 {
		for i, v := range []uint64{uint64(s.Flags), s.Addr, s.Offset, s.Size} {
			o.PutUint64(b[8+8*i:], v)
		}
		o.PutUint32(b[40:], s.Link)
		o.PutUint32(b[44:], s.Info)
		o.PutUint64(b[48:], s.Align)
		o.PutUint64(b[56:], s.Entsize)
		return
	}
	fields := []uint64{uint64(s.Flags), s.Addr, s.Offset, s.Size, uint64(s.Link), uint64(s.Info), s.Align, s.Entsize}
	for i, v := range fields {
		o.PutUint32(b[8+4*i:], uint32(v))
	}
}

func (e Encoding) getSegment(b []byte) (s Segment) {
	s.Type = elf.ProgType(e.Order.Uint32(b))
	if e.Class == elf.ELFCLASS64 {
		s.Flags, s.Offset, s.Vaddr = elf.ProgFlag(e.Order.Uint32(b[4:])), e.Order.Uint64(b[8:]), e.Order.Uint64(b[16:])
		s.Filesz, s.Memsz, s.Align = e.Order.Uint64(b[32:]), e.Order.Uint64(b[40:]), e.Order.Uint64(b[48:])
		return s
	}
	s.Offset, s.Vaddr = uint64(e.Order.Uint32(b[4:])), uint64(e.Order.Uint32(b[8:]))
	s.Filesz, s.Memsz = uint64(e.Order.Uint32(b[16:])), uint64(e.Order.Uint32(b[20:]))
	s.Flags, s.Align = elf.ProgFlag(e.Order.Uint32(b[24:])), uint64(e.Order.Uint32(b[28:]))
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

// relocSymbol reads only the symbol index of a relocation.
func (e Encoding) relocSymbol(b []byte) uint32 {
	if e.Class != elf.ELFCLASS64 {
		return e.Order.Uint32(b[4:]) >> 8
	}
	if e.swappedInfo {
		return e.Order.Uint32(b[8:])
	}
	return uint32(e.Order.Uint64(b[8:]) >> 32)
}
