// Package elfreloc reads ELF relocatable objects and rewrites them.
//
// It is a reader of its own because debug/elf drops symbol 0, resolves no
// extended section index, hides where a record lies in the file, and is not
// made for hostile input. Here every size is checked against the file before
// it is used, and nothing is read before it is asked for: the headers and
// names of an object without probes are all that is ever read of it.
//
// Files are read with ReadAt and never mapped: a file that another process
// shortens would kill this one with SIGBUS.
//
// Begin with Open. Object.Symbols and Object.EachRelocation read what it opens;
// Object.Edit collects changes, Edit.Output lays the new file out as an Output, and
// Output.Write writes that. The formats are those of the System V gABI, chapter 4.
//
// What is wrong with a file, or with reading it, is an *Error. Sections, symbols
// and entries of relocation sections are named by their indexes in the file; one
// that the object does not have is the caller's fault, and panics.
//
// An Object and its Edit serve one goroutine at a time, because they read tables
// when these are first asked for. Symbols and Outputs may be used by several.
package elfreloc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Section types that debug/elf has no name for.
const (
	shtCREL        elf.SectionType = 0x40000014 // LLVM's compact relocations
	shtAndroidREL  elf.SectionType = 0x60000001
	shtAndroidRELA elf.SectionType = 0x60000002
	shtAddrsig     elf.SectionType = 0x6fff4c03 // SHT_LLVM_ADDRSIG
	shtCallGraph   elf.SectionType = 0x6fff4c09 // SHT_LLVM_CALL_GRAPH_PROFILE
)

// Object is an open ELF file: its header and its section headers (gABI, "ELF Header"
// and "Sections"). The fields are not to be modified.
type Object struct {
	Name     string // of the file, for messages
	Encoding Encoding
	Type     elf.Type
	Machine  elf.Machine
	Flags    uint32    // e_flags: the processor's supplement defines them
	Sections []Section // by index, with section 0

	r        io.ReaderAt
	size     int64
	held     int64 // bytes; size without holes
	header   []byte
	tableOff uint64 // of the section header table
	phOff    uint64 // of the program header table

	phnum, phentsize int
	shstrndx         int
	symtab           int    // index of the SHT_SYMTAB section, 0 when there is none
	shndx            int    // index of its SHT_SYMTAB_SHNDX section, 0 when there is none
	names            string // the section name table

	symbols *Symbols       // once Symbols has read them
	rels    []RelocSection // once RelocSections has listed them
	order   []int          // once fileOrder has found it
}

// Section is a section header (gABI, "Section Header").
type Section struct {
	Name    string
	Type    elf.SectionType
	Flags   elf.SectionFlag
	Addr    uint64 // 0 in a relocatable object
	Offset  uint64 // in the file, bytes
	Size    uint64 // bytes; takes no room in the file for SHT_NOBITS
	Link    uint32 // sh_link: a section, whose part depends on Type
	Info    uint32 // sh_info: depends on Type
	Align   uint64 // 0 and 1 both mean none
	Entsize uint64 // bytes; 0 if the section is not a table

	nameOff uint32
}

// InFile reports whether the section takes room in the file.
func (s *Section) InFile() bool {
	return s.Type != elf.SHT_NULL && s.Type != elf.SHT_NOBITS && s.Size > 0
}

// Executable reports whether the section holds code.
func (s *Section) Executable() bool {
	return s.Flags&elf.SHF_EXECINSTR != 0 && s.Type != elf.SHT_NOBITS
}

// ErrNotELF is in the *Error that Open returns for a file without the ELF magic
// number.
var ErrNotELF = errors.New("not an ELF file")

// BoundedReader is a reader that knows what reading may take. An Object asks it before it reads much at once, so that a file
// with holes, which shows a size that it does not take on disk, costs no more than what it holds.
type BoundedReader interface {
	io.ReaderAt
	// Held returns how many bytes the file holds: its size without holes.
	Held() int64
	// CheckRead returns an error if n bytes at an offset are not to be read.
	CheckRead(off, n int64) error
}

// boundedRead is the length of the longest read that needs no CheckRead, in bytes.
const boundedRead = 1 << 20

// Open reads the headers and section names of an ELF file of any type. name is for
// messages. The object reads from r, of size bytes, for as long as it is used, and
// takes it that the bytes stay as they are; it never closes r. Headers that lead
// beyond the file's end, and a second symbol table, are errors; sections that
// overlap are one once something is read that they matter for (CheckOverlap). r may be
// a BoundedReader.
func Open(r io.ReaderAt, size int64, name string) (*Object, error) {
	o := &Object{Name: name, r: r, size: size, held: size}
	if b, ok := r.(BoundedReader); ok {
		o.held = min(size, b.Held())
	}
	if err := o.readIdent(); err != nil {
		return nil, err
	}
	var h header
	o.Encoding.header(o.header, &h, false)
	o.Type, o.Machine, o.Flags = h.Type, h.Machine, h.Flags
	o.phOff, o.phnum, o.phentsize = h.PhOff, int(h.PhNum), int(h.PhEnt)
	o.Encoding.swappedInfo = h.Machine == elf.EM_MIPS && o.Encoding.Class == elf.ELFCLASS64 &&
		o.Encoding.Order == binary.ByteOrder(binary.LittleEndian)
	if err := o.readSections(h); err != nil {
		return nil, err
	}
	if err := o.nameSections(); err != nil {
		return nil, err
	}
	return o, o.findTables()
}

func (o *Object) readIdent() error {
	const longest = 64 // the header of ELFCLASS64
	ident, err := o.read(0, min(longest, o.size))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(ident, []byte(elf.ELFMAG)) {
		return &Error{File: o.Name, Err: ErrNotELF}
	}
	if len(ident) < elf.EI_NIDENT {
		return o.errorf("ELF header is cut off after %d bytes", o.size)
	}
	o.Encoding.Class = elf.Class(ident[elf.EI_CLASS])
	if o.Encoding.Class != elf.ELFCLASS32 && o.Encoding.Class != elf.ELFCLASS64 {
		return o.errorf("unknown ELF class %d", ident[elf.EI_CLASS])
	}
	switch elf.Data(ident[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		o.Encoding.Order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		o.Encoding.Order = binary.BigEndian
	default:
		return o.errorf("unknown ELF byte order %d", ident[elf.EI_DATA])
	}
	if v := elf.Version(ident[elf.EI_VERSION]); v != elf.EV_CURRENT {
		return o.errorf("unknown ELF version %d", v)
	}
	n := int64(o.Encoding.headerSize())
	if o.size < n {
		return o.errorf("ELF header is cut off after %d of %d bytes", o.size, n)
	}
	o.header = ident[:n:n]
	return nil
}

func (o *Object) readSections(h header) error {
	if h.ShOff == 0 {
		if h.ShNum != 0 {
			return o.errorf("%d section headers at offset 0", h.ShNum)
		}
		return nil
	}
	ent := o.Encoding.sectionHeaderSize()
	if int(h.ShEnt) != ent {
		return o.errorf("section headers of %d bytes, want %d", h.ShEnt, ent)
	}
	num, strndx := uint64(h.ShNum), uint32(h.ShStrNdx)
	if num == 0 || strndx == uint32(elf.SHN_XINDEX) {
		first, err := o.checkedRead("section header 0", h.ShOff, uint64(ent))
		if err != nil {
			return err
		}
		var null Section
		o.Encoding.section(first, &null, false)
		if num == 0 {
			num = null.Size // gABI: the count is there when it does not fit e_shnum
		}
		if strndx == uint32(elf.SHN_XINDEX) {
			strndx = null.Link
		}
	}
	if num == 0 {
		return o.errorf("0 section headers in a file of %d bytes", o.size)
	}
	if num > uint64(o.size)/uint64(ent) || h.ShOff > uint64(o.size)-num*uint64(ent) {
		return o.errorf("is truncated: its %d section headers at offset %#x do not fit into %d bytes", num, h.ShOff, o.size)
	}
	if uint64(strndx) >= num {
		return o.errorf("section name table is section %d of %d", strndx, num)
	}
	table, err := o.checkedRead("section header table", h.ShOff, num*uint64(ent))
	if err != nil {
		return err
	}
	o.tableOff, o.shstrndx = h.ShOff, int(strndx)
	o.Sections = make([]Section, num)
	for i := range o.Sections {
		var s Section
		o.Encoding.section(table[i*ent:], &s, false)
		if i == 0 && s.Type != elf.SHT_NULL {
			return o.errorf("section 0 is of type %v, want %v", s.Type, elf.SHT_NULL)
		}
		if s.InFile() && (s.Offset > uint64(o.size) || s.Size > uint64(o.size)-s.Offset) {
			return o.errorf("section %d lies at offset %#x, %#x bytes, beyond the file's end at %#x", i, s.Offset, s.Size, o.size)
		}
		o.Sections[i] = s
	}
	return nil
}

func (o *Object) nameSections() error {
	if o.shstrndx == 0 {
		return nil
	}
	table, err := o.stringTable(o.shstrndx)
	if err != nil {
		return err
	}
	o.names = table
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Name, err = stringAt(table, s.nameOff); err != nil {
			return o.errorf("name of section %d: %w", i, err)
		}
	}
	return nil
}

// findTables finds the symbol table and its extension.
func (o *Object) findTables() error {
	for i := range o.Sections {
		if o.Sections[i].Type != elf.SHT_SYMTAB {
			continue
		}
		if o.symtab != 0 {
			return o.errorf("two symbol tables, sections %d and %d", o.symtab, i)
		}
		o.symtab = i
	}
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Type != elf.SHT_SYMTAB_SHNDX || o.symtab == 0 || int(s.Link) != o.symtab {
			continue
		}
		if o.shndx != 0 {
			return o.errorf("two extended section index tables, sections %d and %d", o.shndx, i)
		}
		o.shndx = i
	}
	return nil
}

// Data reads a whole section, which is empty for SHT_NOBITS.
func (o *Object) Data(sec int) ([]byte, error) {
	return o.Bytes(sec, 0, o.Sections[sec].Size)
}

// Bytes reads n bytes at offset off of a section, none of them for SHT_NOBITS. A
// range beyond the section's end is an error.
func (o *Object) Bytes(sec int, off, n uint64) ([]byte, error) {
	s := &o.Sections[sec]
	if off > s.Size || n > s.Size-off {
		return nil, o.OffsetError(sec, off, fmt.Errorf("%d bytes wanted of a section of %#x bytes", n, s.Size))
	}
	if n == 0 || !s.InFile() {
		return nil, nil
	}
	b, err := o.read(int64(s.Offset+off), int64(n))
	if err != nil {
		return nil, o.OffsetError(sec, off, errors.Unwrap(err))
	}
	return b, nil
}

func (o *Object) checkedRead(what string, off, n uint64) ([]byte, error) {
	if off > uint64(o.size) || n > uint64(o.size)-off {
		return nil, o.errorf("%s lies at offset %#x, %#x bytes, beyond the file's end at %#x", what, off, n, o.size)
	}
	return o.read(int64(off), int64(n))
}

// read reads n bytes at offset off of the file, which the caller has checked
// to lie within it.
func (o *Object) read(off, n int64) ([]byte, error) {
	if err := o.CheckRead(off, n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	return b, o.readInto(b, off)
}

// checkRead asks a BoundedReader whether many bytes may be read.
func checkRead(r io.ReaderAt, off, n int64) error {
	if b, ok := r.(BoundedReader); ok && n > boundedRead {
		return b.CheckRead(off, n)
	}
	return nil
}

func (o *Object) readInto(b []byte, off int64) error {
	n, err := o.r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		err = fmt.Errorf("file ends at offset %#x: it was shortened while it was read", off+int64(n))
	}
	return &Error{File: o.Name, Err: err}
}

// End returns the offset behind the last byte that the ELF headers account for.
// What follows in the file is not ELF: a kernel module's signature, for one.
func (o *Object) End() int64 {
	end := uint64(o.Encoding.headerSize())
	if len(o.Sections) > 0 {
		end = max(end, o.tableOff+uint64(len(o.Sections)*o.Encoding.sectionHeaderSize()))
	}
	for i := 1; i < len(o.Sections); i++ {
		if s := &o.Sections[i]; s.InFile() {
			end = max(end, s.Offset+s.Size)
		}
	}
	return int64(end)
}

// Size returns the size of the file in bytes.
func (o *Object) Size() int64 { return o.size }

// Held returns how many bytes the file holds: its size without the holes that a BoundedReader knows. What may be kept or done for
// a file is bounded by that.
func (o *Object) Held() int64 { return o.held }

// CheckRead returns an error if the file's reader does not permit to read n bytes at an offset of the file, in whatever parts.
func (o *Object) CheckRead(off, n int64) error {
	if err := checkRead(o.r, off, n); err != nil {
		return &Error{File: o.Name, Err: err}
	}
	return nil
}

// ReadFile reads n bytes of the file itself at offset off: for what lies behind End,
// and for segments.
func (o *Object) ReadFile(off, n int64) ([]byte, error) {
	return o.checkedRead("data", uint64(off), uint64(n))
}

// What is wrong with a file is told with the place where it was met.

// Error is a fault of one file, at the place where it was met. It is shown as
// "file: section+0xoffset: fault".
type Error struct {
	File    string  // Object.Name
	Section string  // its name, or "section 7"; "" when the fault is not of one section
	Offset  *uint64 // from the start of Section, bytes; nil when it has no offset
	Err     error   // the fault; never nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Section != "" {
		b.WriteString(": " + e.Section)
		if e.Offset != nil {
			fmt.Fprintf(&b, "+%#x", *e.Offset)
		}
	}
	b.WriteString(": " + e.Err.Error())
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// errorf makes an Error of the whole file.
func (o *Object) errorf(format string, args ...any) error {
	return &Error{File: o.Name, Err: fmt.Errorf(format, args...)}
}

// SectionError makes an *Error of section sec, which the object need not have.
func (o *Object) SectionError(sec int, err error) error {
	return &Error{File: o.Name, Section: o.sectionLabel(sec), Err: err}
}

// OffsetError makes an *Error of offset off, in bytes, of section sec.
func (o *Object) OffsetError(sec int, off uint64, err error) error {
	return &Error{File: o.Name, Section: o.sectionLabel(sec), Offset: &off, Err: err}
}

func (o *Object) sectionLabel(sec int) string {
	if sec < len(o.Sections) && o.Sections[sec].Name != "" {
		return o.Sections[sec].Name
	}
	return fmt.Sprintf("section %d", sec)
}
