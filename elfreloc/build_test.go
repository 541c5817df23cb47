package elfreloc_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// image describes an object to make: .text, .rela.text, .rel.text or .crel.text, what extra
// says, .symtab, .strtab and .shstrtab, in this order.
type image struct {
	class  elf.Class
	order  binary.AppendByteOrder
	extra  []imageSection
	syms   []imageSymbol // without symbol 0, locals first
	relocs []uint32      // the symbols that relocations at 0, 8, 16... name
	rel    bool          // SHT_REL
	crel   []byte        // SHT_CREL of these bytes, relocs but for its length unused
	// strtab and shstrtab, when not "", are the string tables to use; names in
	// them are found wherever they occur. With one they are one table.
	strtab, shstrtab string
	one              bool
}

type imageSection struct {
	name       string
	typ        elf.SectionType
	data       []byte
	info       uint32
	usesSymtab bool
}

type imageSymbol struct {
	name    string
	bind    elf.SymBind
	section uint16
	value   uint64
}

// text is the index of .text in every image.
const imageText = 1

func (m *image) is64() bool { return m.class != elf.ELFCLASS32 }

// word appends an address.
func (m *image) word(b []byte, v uint64) []byte {
	if m.is64() {
		return m.order.AppendUint64(b, v)
	}
	return m.order.AppendUint32(b, uint32(v))
}

// offsetIn finds a name in a string table, which it grows.
func offsetIn(table *string, name string) uint32 {
	if *table == "" {
		*table = "\x00"
	}
	at := bytes.Index([]byte(*table), []byte(name+"\x00"))
	if at < 0 {
		at = len(*table)
		*table += name + "\x00"
	}
	return uint32(at)
}

func (m *image) symtab() []byte {
	table := make([]byte, map[bool]int{true: 24, false: 16}[m.is64()])
	for _, s := range m.syms {
		name, info := offsetIn(&m.strtab, s.name), elf.ST_INFO(s.bind, elf.STT_NOTYPE)
		table = m.order.AppendUint32(table, name)
		if m.is64() {
			table = append(table, info, 0)
			table = m.order.AppendUint16(table, s.section)
			table = m.order.AppendUint64(m.order.AppendUint64(table, s.value), 0)
		} else {
			table = m.order.AppendUint32(m.order.AppendUint32(table, uint32(s.value)), 0)
			table = append(table, info, 0)
			table = m.order.AppendUint16(table, s.section)
		}
	}
	return table
}

func (m *image) relocations() []byte {
	var b []byte
	if m.crel != nil {
		return m.crel
	}
	for i, sym := range m.relocs {
		b = m.word(b, uint64(8*i))
		if m.is64() {
			b = m.order.AppendUint64(b, uint64(sym)<<32|1)
		} else {
			b = m.order.AppendUint32(b, sym<<8|1)
		}
		if !m.rel {
			b = m.word(b, uint64(100+i))
		}
	}
	return b
}

func (m *image) firstGlobal() uint32 {
	n := uint32(1)
	for _, s := range m.syms {
		if s.bind == elf.STB_LOCAL {
			n++
		}
	}
	return n
}

// sections lists the section headers and contents, with links as in headers.
func (m *image) sections() (all []imageSection, link func(i int) uint32) {
	relName, relType := ".rela.text", elf.SHT_RELA
	if m.rel {
		relName, relType = ".rel.text", elf.SHT_REL
	}
	if m.crel != nil {
		relName, relType = ".crel.text", objects.CREL
	}
	symtab := uint32(3 + len(m.extra))
	all = append(all, imageSection{}, imageSection{name: ".text", typ: elf.SHT_PROGBITS, data: make([]byte, 8*len(m.relocs)+8)},
		imageSection{name: relName, typ: relType, data: m.relocations(), info: imageText, usesSymtab: true})
	all = append(all, m.extra...)
	all = append(all, imageSection{name: ".symtab", typ: elf.SHT_SYMTAB, data: m.symtab(), info: m.firstGlobal()})
	all = append(all, imageSection{name: ".strtab", typ: elf.SHT_STRTAB}, imageSection{name: ".shstrtab", typ: elf.SHT_STRTAB})
	return all, func(i int) uint32 {
		switch {
		case all[i].usesSymtab:
			return symtab
		case i == int(symtab) && m.one:
			return symtab + 2
		case i == int(symtab):
			return symtab + 1
		}
		return 0
	}
}

// bytes makes the file.
func (m *image) bytes() []byte {
	if m.order == nil {
		m.order = binary.LittleEndian
	}
	all, link := m.sections()
	if m.one {
		m.shstrtab = m.strtab
	}
	var names []uint32
	for _, s := range all {
		names = append(names, offsetIn(&m.shstrtab, s.name))
	}
	all[len(all)-2].data, all[len(all)-1].data = []byte(m.strtab), []byte(m.shstrtab)
	if m.one {
		all[len(all)-2].data = nil
	}
	head, data := map[bool]int{true: 64, false: 52}[m.is64()], map[bool]byte{true: 1, false: 2}[binary.ByteOrder(m.order.(binary.ByteOrder)) == binary.LittleEndian]
	file := make([]byte, head)
	var offsets []int
	for _, s := range all {
		for len(file)%8 != 0 {
			file = append(file, 0)
		}
		offsets = append(offsets, len(file))
		file = append(file, s.data...)
	}
	for len(file)%8 != 0 {
		file = append(file, 0)
	}
	copy(file, m.header(data, uint64(len(file)), len(all)))
	for i, s := range all {
		file = m.sectionHeader(file, s, names[i], offsets[i], link(i))
	}
	return file
}

func (m *image) header(data byte, shoff uint64, n int) []byte {
	class := byte(elf.ELFCLASS64)
	if !m.is64() {
		class = byte(elf.ELFCLASS32)
	}
	b := append([]byte("\x7fELF"), class, data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = m.order.AppendUint16(m.order.AppendUint16(b, uint16(elf.ET_REL)), uint16(elf.EM_X86_64))
	b = m.word(m.word(m.word(m.order.AppendUint32(b, 1), 0), 0), shoff)
	size, entry := map[bool]uint16{true: 64, false: 52}[m.is64()], map[bool]uint16{true: 64, false: 40}[m.is64()]
	b = m.order.AppendUint32(b, 0)
	for _, v := range []uint16{size, 0, 0, entry, uint16(n), uint16(n - 1)} {
		b = m.order.AppendUint16(b, v)
	}
	return b
}

func (m *image) sectionHeader(b []byte, s imageSection, name uint32, off int, link uint32) []byte {
	flags, entry := uint64(0), uint64(0)
	switch s.typ {
	case elf.SHT_NULL:
		off = 0
	case elf.SHT_SYMTAB:
		entry = map[bool]uint64{true: 24, false: 16}[m.is64()]
	case elf.SHT_RELA:
		entry = map[bool]uint64{true: 24, false: 12}[m.is64()]
	case elf.SHT_REL:
		entry = map[bool]uint64{true: 16, false: 8}[m.is64()]
	}
	if s.name == ".text" {
		flags = uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR)
	}
	b = m.order.AppendUint32(m.order.AppendUint32(b, name), uint32(s.typ))
	b = m.word(m.word(m.word(m.word(b, flags), 0), uint64(off)), uint64(len(s.data)))
	b = m.order.AppendUint32(m.order.AppendUint32(b, link), s.info)
	return m.word(m.word(b, 1), entry)
}

// edited makes changes to an image, and opens the result with debug/elf.
func edited(t testing.TB, data []byte, change func(e *elfreloc.Edit)) (*elf.File, []byte) {
	t.Helper()
	e := expect.Value(objects.Open(t, data).Edit())(t)
	change(e)
	return saved(t, e, data)
}

// saved returns an edited object, as debug/elf opens it too.
func saved(t testing.TB, e *elfreloc.Edit, in []byte) (*elf.File, []byte) {
	t.Helper()
	result := objects.Save(t, e, in)
	return disk.ELF(t, result), result
}

// everyImage is one object in each class, byte order and kind of relocations: type 1
// against symbols 1 and 2 at 0 and 8, and where they have addends, 100 and 101.
func everyImage() []*image {
	var all []*image
	for _, class := range []elf.Class{elf.ELFCLASS32, elf.ELFCLASS64} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for _, rel := range []bool{false, true} {
				crel := []byte{2<<3 | 4 | 3, 0b111, 1, 1, 0xe4, 0, 1<<3 | 0b101, 1, 1}
				if rel {
					crel = []byte{2<<3 | 3, 0b11, 1, 1, 1<<2 | 0b01, 1}
				}
				for _, crel := range [][]byte{nil, crel} {
					all = append(all, &image{
						class: class, order: order, rel: rel, crel: crel, relocs: []uint32{1, 2},
						syms: []imageSymbol{{name: "l1", bind: elf.STB_LOCAL}, {name: "g2", bind: elf.STB_GLOBAL}},
					})
				}
			}
		}
	}
	return all
}
