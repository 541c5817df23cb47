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
	const symtab, strtab, shstrtab = 1, 2, 3
	const names = "\x00.symtab\x00.strtab\x00.shstrtab\x00"
	l := o.Encoding
	start := uint64(l.headerSize())
	contents := append(make([]byte, l.SymbolSize()+1), names...) // of the three, in their order
	sections := []Section{
		symtab:   {nameOff: 1, Type: elf.SHT_SYMTAB, Link: strtab, Info: 1, Size: uint64(l.SymbolSize()), Align: uint64(l.Word()), Entsize: uint64(l.SymbolSize())},
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
