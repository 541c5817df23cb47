package limits

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
)

// file is an ELF file for amd64 in the making.
type file struct {
	kind     elf.Type
	sections []section
	names    bytes.Buffer
	loads    []*section // those at addresses, once bytes has found them
	segments int        // program headers of all of the file, besides one for each section at an address
}

// section is one of a file. With at it shares the bytes of section number at.
type section struct {
	name       string
	kind       elf.SectionType
	flags      elf.SectionFlag
	addr       uint64
	data       []byte
	at         int
	link, info uint32
	entsize    uint64

	named         uint32
	offset, align uint64
}

// newFile begins a file: section 0, and 1 for the names of sections.
func newFile(kind elf.Type) *file {
	f := &file{kind: kind}
	f.names.WriteByte(0)
	f.add(section{})
	f.add(section{name: ".shstrtab", kind: elf.SHT_STRTAB})
	return f
}

// add appends a section and returns its index.
func (f *file) add(s section) int {
	if last := len(f.sections) - 1; last >= 0 && f.sections[last].name == s.name {
		s.named = f.sections[last].named
	} else if s.name != "" {
		s.named = uint32(f.names.Len())
		f.names.WriteString(s.name + "\x00")
	}
	if s.align = 1; s.kind != elf.SHT_PROGBITS && s.kind != elf.SHT_STRTAB {
		s.align = 8
	}
	f.sections = append(f.sections, s)
	return len(f.sections) - 1
}

const (
	headerSize  = 64
	sectionSize = 64
	segmentSize = 56
)

// bytes lays the file out.
func (f *file) bytes() []byte {
	f.sections[1].data = f.names.Bytes()
	f.loads = nil
	for i := range f.sections {
		if f.sections[i].addr != 0 && f.sections[i].at == 0 {
			f.loads = append(f.loads, &f.sections[i])
		}
	}
	b := make([]byte, headerSize, f.size())
	b = append(b, make([]byte, f.segmentCount()*segmentSize)...)
	for i := range f.sections {
		s := &f.sections[i]
		if s.at != 0 {
			s.offset, s.data = f.sections[s.at].offset, f.sections[s.at].data
			continue
		}
		b = append(b, make([]byte, -len(b)&7)...)
		s.offset = uint64(len(b))
		b = append(b, s.data...)
	}
	b = append(b, make([]byte, -len(b)&7)...)
	table := uint64(len(b))
	for i := range f.sections {
		b = f.sections[i].header(b)
	}
	f.header(b, table)
	for i := range f.segmentCount() {
		p := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Filesz: uint64(len(b)), Align: 1, Vaddr: 1 << 40}
		if i < len(f.loads) {
			s := f.loads[i]
			p.Off, p.Vaddr, p.Filesz = s.offset, s.addr, uint64(len(s.data))
		}
		p.Memsz = p.Filesz
		var w bytes.Buffer
		binary.Write(&w, binary.LittleEndian, p)
		copy(b[headerSize+i*segmentSize:], w.Bytes())
	}
	return b
}

func (f *file) segmentCount() int { return len(f.loads) + f.segments }

func (f *file) size() int {
	n := headerSize + len(f.sections)*(sectionSize+8) + f.segmentCount()*segmentSize
	for i := range f.sections {
		n += len(f.sections[i].data)
	}
	return n
}

func (s *section) header(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, s.named)
	b = le.AppendUint32(b, uint32(s.kind))
	b = le.AppendUint64(b, uint64(s.flags))
	b = le.AppendUint64(b, s.addr)
	b = le.AppendUint64(b, s.offset)
	b = le.AppendUint64(b, uint64(len(s.data)))
	b = le.AppendUint32(b, s.link)
	b = le.AppendUint32(b, s.info)
	b = le.AppendUint64(b, s.align)
	return le.AppendUint64(b, s.entsize)
}

// header fills the file's header in, and what section 0 says for it.
func (f *file) header(b []byte, table uint64) {
	h := elf.Header64{Type: uint16(f.kind), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: table,
		Ehsize: headerSize, Shentsize: sectionSize, Shnum: uint16(len(f.sections)), Shstrndx: 1}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	le := binary.LittleEndian
	if len(f.sections) >= int(elf.SHN_LORESERVE) {
		h.Shnum = 0
		le.PutUint64(b[table+32:], uint64(len(f.sections)))
	}
	if n := f.segmentCount(); n > 0 {
		h.Phoff, h.Phentsize, h.Phnum = headerSize, segmentSize, uint16(min(n, 0xffff))
		if n >= 0xffff {
			le.PutUint32(b[table+44:], uint32(n))
		}
	}
	var w bytes.Buffer
	binary.Write(&w, le, h)
	copy(b, w.Bytes())
}

// symbols is a table of symbols, with its names.
type symbols struct {
	table, names []byte
	locals       int
}

func newSymbols() *symbols {
	return &symbols{table: make([]byte, elf.Sym64Size), names: []byte{0}, locals: 1}
}

// add appends a symbol with a name of its own.
func (s *symbols) add(name string, info byte, section int, value, size uint64) {
	at := len(s.names)
	s.names = append(append(s.names, name...), 0)
	s.named(at, info, section, value, size)
}

// named appends a symbol whose name begins at an offset of the names.
func (s *symbols) named(name int, info byte, section int, value, size uint64) {
	le := binary.LittleEndian
	s.table = le.AppendUint32(s.table, uint32(name))
	s.table = append(s.table, info, 0)
	s.table = le.AppendUint16(s.table, uint16(section))
	s.table = le.AppendUint64(s.table, value)
	s.table = le.AppendUint64(s.table, size)
}

const (
	local    = byte(elf.STB_LOCAL) << 4
	global   = byte(elf.STB_GLOBAL) << 4
	function = byte(elf.STT_FUNC)
)

// addTo appends the sections of symbols, and returns the index of their table.
func (s *symbols) addTo(f *file) int {
	names := f.add(section{name: ".strtab", kind: elf.SHT_STRTAB, data: s.names})
	return f.add(section{name: ".symtab", kind: elf.SHT_SYMTAB, data: s.table, link: uint32(names), info: uint32(s.locals), entsize: elf.Sym64Size})
}

// relocation appends an entry of SHT_RELA.
func relocation(b []byte, off uint64, symbol int, kind elf.R_X86_64, addend int64) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, off)
	b = le.AppendUint64(b, uint64(symbol)<<32|uint64(kind))
	return le.AppendUint64(b, uint64(addend))
}

// calls returns the code of so many calls.
func calls(n int) []byte { return bytes.Repeat([]byte{0xe8, 0, 0, 0, 0}, n) }

// callsOf are relocations of n calls, of symbols from first on, one each or all of first.
func callsOf(n, first int, each bool) []byte {
	b := make([]byte, 0, 24*n)
	for i := range n {
		symbol := first
		if each {
			symbol += i
		}
		b = relocation(b, uint64(5*i+1), symbol, elf.R_X86_64_PLT32, -4)
	}
	return b
}

// object returns a relocatable object of code, its relocations and symbols, and more. Its
// code is section 2.
func object(code, relocs []byte, s *symbols, more ...section) *file {
	f := newFile(elf.ET_REL)
	f.add(section{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, data: code})
	table := s.addTo(f)
	f.add(section{name: ".rela.text", kind: elf.SHT_RELA, flags: elf.SHF_INFO_LINK, data: relocs, link: uint32(table), info: 2, entsize: 24})
	for _, x := range more {
		f.add(x)
	}
	return f
}

// one returns a table of one function, main, and one stub, which is symbol 2.
func one(codeSize int, stub string) *symbols {
	s := newSymbols()
	s.add("main", global|function, 2, 0, uint64(codeSize))
	s.add(stub, global, 0, 0, 0)
	return s
}

const stub = "__dtrace_probe_shop___placed"

// note returns a note of SystemTap of a probe.
func note(pc uint64, provider, name, args string) []byte {
	le := binary.LittleEndian
	desc := le.AppendUint64(nil, pc)
	desc = le.AppendUint64(desc, 0)
	desc = le.AppendUint64(desc, 0)
	desc = append(desc, provider+"\x00"+name+"\x00"+args+"\x00"...)
	b := le.AppendUint32(nil, 8)
	b = le.AppendUint32(b, uint32(len(desc)))
	b = le.AppendUint32(b, 3)
	b = append(b, "stapsdt\x00"...)
	b = append(b, desc...)
	return append(b, strings.Repeat("\x00", -len(desc)&3)...)
}
