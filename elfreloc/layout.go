package elfreloc

import (
	"debug/elf"
	"encoding/binary"
	"math/bits"
)

// Layout is the shape of an ELF file's records: its class and byte order,
// decided once when the file is opened. Sizes and fields are those of the
// gABI, chapter 4.
type Encoding struct {
	Class elf.Class
	Order binary.ByteOrder

	big bool // whether Order is binary.BigEndian

	// mips64el stores r_info as a little-endian symbol index followed by four
	// bytes of types, and not as one 64-bit word (MIPS64 ELF ABI, 2.9).
	swappedInfo bool
}

// Word is the size of an address in bytes.
func (l Encoding) Word() int { return l.pick(4, 8) }

func (l Encoding) headerSize() int        { return l.pick(52, 64) }
func (l Encoding) sectionHeaderSize() int { return l.pick(40, 64) }
func (l Encoding) symbolSize() int        { return l.pick(16, 24) }
func (l Encoding) segmentSize() int       { return l.pick(32, 56) }

func (l Encoding) relocSize(rela bool) int {
	if rela {
		return l.pick(12, 24)
	}
	return l.pick(8, 16)
}

func (l Encoding) pick(size32, size64 int) int {
	if l.Class == elf.ELFCLASS64 {
		return size64
	}
	return size32
}

// PutWord writes an address to the start of b, which has room for it.
func (l Encoding) PutWord(b []byte, v uint64) {
	if l.Class == elf.ELFCLASS64 {
		l.Order.PutUint64(b, v)
	} else {
		l.Order.PutUint32(b, uint32(v))
	}
}

// GetWord reads an address from the start of b, which holds one.
func (l Encoding) GetWord(b []byte) uint64 {
	if l.Class == elf.ELFCLASS64 {
		return l.u64(b)
	}
	return uint64(l.u32(b))
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

func (l Encoding) getHeader(b []byte) header {
	h := header{Type: elf.Type(l.u16(b[16:])), Machine: elf.Machine(l.u16(b[18:])), Version: l.u32(b[20:])}
	if l.Class == elf.ELFCLASS64 {
		h.PhOff, h.ShOff, b = l.u64(b[32:]), l.u64(b[40:]), b[48:]
	} else {
		h.PhOff, h.ShOff, b = uint64(l.u32(b[28:])), uint64(l.u32(b[32:])), b[36:]
	}
	h.Flags, h.PhEnt, h.PhNum, h.ShEnt = l.u32(b), l.u16(b[6:]), l.u16(b[8:]), l.u16(b[10:])
	h.ShNum, h.ShStrNdx = l.u16(b[12:]), l.u16(b[14:])
	return h
}

// putHeader writes the fields of a header that has no program headers, but for
// the identification and what putSectionTable writes.
func (l Encoding) putHeader(b []byte, h header) {
	o, size := l.Order, uint16(l.headerSize())
	o.PutUint16(b[16:], uint16(h.Type))
	o.PutUint16(b[18:], uint16(h.Machine))
	o.PutUint32(b[20:], h.Version)
	b = b[l.pick(36, 48):]
	o.PutUint32(b, h.Flags)
	o.PutUint16(b[4:], size)
	o.PutUint16(b[10:], h.ShEnt)
}

// putSectionTable updates the three fields that a grown section table changes.
func (l Encoding) putSectionTable(b []byte, off uint64, num, strndx uint16) {
	if l.Class == elf.ELFCLASS64 {
		l.Order.PutUint64(b[40:], off)
		b = b[60:]
	} else {
		l.Order.PutUint32(b[32:], uint32(off))
		b = b[48:]
	}
	l.Order.PutUint16(b, num)
	l.Order.PutUint16(b[2:], strndx)
}

func (l Encoding) getSection(b []byte) (s Section) {
	s.nameOff, s.Type = l.u32(b), elf.SectionType(l.u32(b[4:]))
	if l.Class == elf.ELFCLASS64 {
		s.Flags, s.Addr = elf.SectionFlag(l.u64(b[8:])), l.u64(b[16:])
		s.Offset, s.Size = l.u64(b[24:]), l.u64(b[32:])
		s.Link, s.Info = l.u32(b[40:]), l.u32(b[44:])
		s.Align, s.Entsize = l.u64(b[48:]), l.u64(b[56:])
		return s
	}
	s.Flags, s.Addr = elf.SectionFlag(l.u32(b[8:])), uint64(l.u32(b[12:]))
	s.Offset, s.Size = uint64(l.u32(b[16:])), uint64(l.u32(b[20:]))
	s.Link, s.Info = l.u32(b[24:]), l.u32(b[28:])
	s.Align, s.Entsize = uint64(l.u32(b[32:])), uint64(l.u32(b[36:]))
	return s
}

func (l Encoding) putSection(b []byte, s *Section) {
	o := l.Order
	o.PutUint32(b, s.nameOff)
	o.PutUint32(b[4:], uint32(s.Type))
	if l.Class == elf.ELFCLASS64 {
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

func (l Encoding) getSegment(b []byte) (s Segment) {
	s.Type = elf.ProgType(l.u32(b))
	if l.Class == elf.ELFCLASS64 {
		s.Flags, s.Offset, s.Vaddr = elf.ProgFlag(l.u32(b[4:])), l.u64(b[8:]), l.u64(b[16:])
		s.Filesz, s.Memsz, s.Align = l.u64(b[32:]), l.u64(b[40:]), l.u64(b[48:])
		return s
	}
	s.Offset, s.Vaddr = uint64(l.u32(b[4:])), uint64(l.u32(b[8:]))
	s.Filesz, s.Memsz = uint64(l.u32(b[16:])), uint64(l.u32(b[20:]))
	s.Flags, s.Align = elf.ProgFlag(l.u32(b[24:])), uint64(l.u32(b[28:]))
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

func (l Encoding) getSymbol(b []byte) (s rawSymbol) {
	s.name = l.u32(b)
	if l.Class == elf.ELFCLASS64 {
		s.info, s.other, s.shndx = b[4], b[5], l.u16(b[6:])
		s.value, s.size = l.u64(b[8:]), l.u64(b[16:])
		return s
	}
	s.value, s.size = uint64(l.u32(b[4:])), uint64(l.u32(b[8:]))
	s.info, s.other, s.shndx = b[12], b[13], l.u16(b[14:])
	return s
}

// symbolPlace reads only st_info and st_shndx.
func (l Encoding) symbolPlace(b []byte) (info byte, shndx uint16) {
	if l.Class == elf.ELFCLASS64 {
		return b[4], l.u16(b[6:])
	}
	return b[12], l.u16(b[14:])
}

func (l Encoding) putSymbol(b []byte, s rawSymbol) {
	o := l.Order
	o.PutUint32(b, s.name)
	if l.Class == elf.ELFCLASS64 {
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

func (l Encoding) getReloc(b []byte, rela bool) (r Relocation) {
	if l.Class == elf.ELFCLASS64 {
		info := l.u64(b[8:])
		if l.swappedInfo {
			info = info<<32 | uint64(bits.ReverseBytes32(uint32(info>>32)))
		}
		r.Offset, r.Sym, r.Type = l.u64(b), uint32(info>>32), uint32(info)
		if rela {
			r.Addend = int64(l.u64(b[16:]))
		}
	} else {
		info := l.u32(b[4:])
		r.Offset, r.Sym, r.Type = uint64(l.u32(b)), info>>8, info&0xff
		if rela {
			r.Addend = int64(int32(l.u32(b[8:])))
		}
	}
	r.Implicit = !rela
	return r
}

func (l Encoding) putReloc(b []byte, r Relocation, rela bool) {
	o := l.Order
	if l.Class == elf.ELFCLASS64 {
		info := uint64(r.Sym)<<32 | uint64(r.Type)
		if l.swappedInfo {
			info = uint64(bits.ReverseBytes32(r.Type))<<32 | uint64(r.Sym)
		}
		o.PutUint64(b, r.Offset)
		o.PutUint64(b[8:], info)
		if rela {
			o.PutUint64(b[16:], uint64(r.Addend))
		}
		return
	}
	o.PutUint32(b, uint32(r.Offset))
	o.PutUint32(b[4:], r.Sym<<8|r.Type&0xff)
	if rela {
		o.PutUint32(b[8:], uint32(r.Addend))
	}
}

// relocSymbol reads only the symbol index of a relocation.
func (l Encoding) relocSymbol(b []byte) uint32 {
	if l.Class != elf.ELFCLASS64 {
		return l.u32(b[4:]) >> 8
	}
	if l.swappedInfo {
		return l.u32(b[8:])
	}
	return uint32(l.u64(b[8:]) >> 32)
}

// Reads go through these, and not through Order, because its methods are calls
// that cannot be inlined, and a large object has millions of fields.

func (l Encoding) u16(b []byte) uint16 {
	if l.big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (l Encoding) u32(b []byte) uint32 {
	if l.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (l Encoding) u64(b []byte) uint64 {
	if l.big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}
