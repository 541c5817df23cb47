package elfreloc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

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
	l := o.Encoding
	const symtab, strtab, shstrtab = 1, 2, 3
	names, offsets := []byte{0}, [shstrtab + 1]uint32{}
	for i, s := range []string{symtab: ".symtab", strtab: ".strtab", shstrtab: ".shstrtab"} {
		if s != "" {
			offsets[i] = uint32(len(names))
			names = append(append(names, s...), 0)
		}
	}
	file := make([]byte, l.headerSize())
	add := func(data []byte) (off, size uint64) {
		off = uint64(len(file))
		file = append(file, data...)
		return off, uint64(len(data))
	}
	sections := make([]Section, shstrtab+1)
	sections[symtab] = Section{Type: elf.SHT_SYMTAB, Link: strtab, Info: 1, Align: uint64(l.Word()), Entsize: uint64(l.SymbolSize())}
	sections[strtab] = Section{Type: elf.SHT_STRTAB, Align: 1}
	sections[shstrtab] = Section{Type: elf.SHT_STRTAB, Align: 1}
	sections[symtab].Offset, sections[symtab].Size = add(make([]byte, l.SymbolSize()))
	sections[strtab].Offset, sections[strtab].Size = add([]byte{0})
	sections[shstrtab].Offset, sections[shstrtab].Size = add(names)
	add(make([]byte, -len(file)&(l.Word()-1)))
	table := uint64(len(file))
	for i := range sections {
		sections[i].nameOff = offsets[i]
		b := make([]byte, l.sectionHeaderSize())
		l.putSection(b, &sections[i])
		add(b)
	}
	copy(file, o.header[:elf.EI_NIDENT])
	l.putHeader(file, header{Type: elf.ET_REL, Machine: o.Machine, Version: uint32(elf.EV_CURRENT), Flags: o.Flags, ShEnt: uint16(l.sectionHeaderSize())})
	l.putSectionTable(file, table, uint16(len(sections)), shstrtab)
	return Open(bytes.NewReader(file), int64(len(file)), name)
}
