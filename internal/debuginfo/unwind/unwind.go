// Package unwind reads .eh_frame: where functions are, and where unwinders of objects find the frame
// of a function: the distance of its canonical frame address, the CFA, from a register, before
// each instruction.
//
// The format is that of the LSB, "Exception Frames" (Core, Generic, 10.6), which
// is DWARF's .debug_frame with pointers of several encodings; its instructions are
// those of DWARF 5, section 6.4.2. In objects addresses are in relocations, because nothing is linked yet.
package unwind

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/cursor"
)

// Bounds of what is kept of an object.
const (
	maxRows       = 1 << 20
	maxRemembered = 1 << 10 // states of one function
)

// Row is what holds from an offset in a section up to the next row.
type Row struct {
	At       uint64
	Function uint64 // where the function begins
	End      uint64 // and where it ends
	Register uint64 // by its number in DWARF
	Distance int64  // of the CFA from what the register holds, bytes
	Known    bool   // whether there is a frame, and no expression computes its CFA
}

// Rows returns the rows of the functions of an object by their section, sorted by At.
func Rows(o *elfreloc.Object) (map[int][]Row, error) {
	t := table{o: o, rows: map[int][]Row{}}
	for i := range o.Sections {
		sec := &o.Sections[i]
		if sec.Name != ".eh_frame" || !sec.InFile() {
			continue
		}
		var err error
		if t.data, err = o.Data(i); err != nil {
			return nil, err
		}
		t.starts = map[int]place{}
		if err := o.EachRelocationOf(func(s *elfreloc.Section) bool { return s == sec }, t.relocation); err != nil {
			return nil, err
		}
		if err := t.functions(); err != nil {
			return nil, o.SectionError(i, err)
		}
	}
	for _, rows := range t.rows {
		slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Function, b.Function)) })
	}
	return t.rows, nil
}

// table is a section .eh_frame of an object.
type table struct {
	o      *elfreloc.Object
	data   []byte
	starts map[int]place // of functions, by the place of their addresses in data
	rows   map[int][]Row
	count  int // of all rows
}

// place is one in a section.
type place struct {
	section int
	offset  uint64
}

// relocation finds the address of a function.
func (t *table) relocation(_ int, r elfreloc.Relocation) error {
	syms, err := t.o.Symbols()
	if err != nil {
		return err
	}
	if sym := syms.At(int(r.Sym)); sym.Defined() && r.Offset < uint64(len(t.data)) {
		if field := t.data[r.Offset:]; r.Implicit && len(field) >= 4 {
			r.Addend = int64(int32(t.o.Encoding.Order.Uint32(field)))
		}
		t.starts[int(r.Offset)] = place{sym.Section, sym.Value + uint64(r.Addend)}
	}
	return nil
}

// functions adds the rows of all functions.
func (t *table) functions() error {
	for f, err := range Functions(t.data, 0, t.o.Encoding, false) {
		if start, ok := t.starts[f.field]; ok && err == nil { // not of a function that a linker has dropped
			err = t.function(start, &f)
		}
		if err != nil {
			return fmt.Errorf("the entry at %#x: %w", f.Offset, err)
		}
	}
	return nil
}

func (t *table) function(start place, f *Function) error {
	end := start.offset + f.Size
	p := program{cie: f.common, row: Row{At: start.offset, Function: start.offset, End: end}}
	p.run(newReader(f.common.instructions, 0, t.o.Encoding))
	p.rows = nil
	p.row.At = start.offset
	err := p.run(newReader(f.instructions, 0, t.o.Encoding))
	if t.count += len(p.rows) + 2; t.count > maxRows {
		return errors.New("too many rows")
	}
	t.rows[start.section] = append(t.rows[start.section], append(p.rows, p.row, Row{At: end, Function: start.offset})...)
	return err
}

// program executes the instructions of a CIE or of an FDE.
type program struct {
	cie      *common
	row      Row
	rows     []Row
	remember []Row
}

func (p *program) run(r reader) error {
	for r.At < len(r.Data) && !r.Bad() {
		p.instruction(&r.Cursor)
	}
	return r.Err()
}

// advance ends a row.
func (p *program) advance(c *cursor.Cursor, units uint64) {
	if len(p.rows) == maxRows {
		c.Fail(errors.New("too many rows"))
		return
	}
	p.rows = append(p.rows, p.row)
	p.row.At += units * p.cie.code
}

// instruction executes one. An unknown one ends what is known of the function.
func (p *program) instruction(c *cursor.Cursor) {
	op := c.U8()
	switch op >> 6 {
	case 1: // DW_CFA_advance_loc
		p.advance(c, uint64(op&0x3f))
		return
	case 2: // DW_CFA_offset
		c.Uleb()
		return
	case 3: // DW_CFA_restore
		return
	}
	switch op {
	case 0x00, 0x2d: // DW_CFA_nop, DW_CFA_GNU_window_save
	case 0x02: // DW_CFA_advance_loc1
		p.advance(c, uint64(c.U8()))
	case 0x03: // DW_CFA_advance_loc2
		p.advance(c, uint64(c.U16()))
	case 0x04: // DW_CFA_advance_loc4
		p.advance(c, uint64(c.U32()))
	case 0x06, 0x07, 0x08, 0x2e: // DW_CFA_restore_extended, undefined, same_value, GNU_args_size
		c.Uleb()
	case 0x05, 0x09, 0x14, 0x2f: // DW_CFA_offset_extended, register, val_offset, GNU_negative_offset_extended
		c.Uleb()
		c.Uleb()
	case 0x11, 0x15: // DW_CFA_offset_extended_sf, val_offset_sf
		c.Uleb()
		c.Sleb()
	case 0x0a: // DW_CFA_remember_state
		p.remember = append(p.remember, p.row)
		if len(p.remember) > maxRemembered {
			c.Fail(errors.New("too many remembered states"))
		}
	case 0x0b: // DW_CFA_restore_state
		if n := len(p.remember); n > 0 {
			at := p.row.At
			p.row, p.remember = p.remember[n-1], p.remember[:n-1]
			p.row.At = at
		}
	case 0x0c: // DW_CFA_def_cfa
		p.row.Register, p.row.Distance, p.row.Known = c.Uleb(), int64(c.Uleb()), true
	case 0x0d: // DW_CFA_def_cfa_register
		p.row.Register = c.Uleb()
	case 0x0e: // DW_CFA_def_cfa_offset
		p.row.Distance = int64(c.Uleb())
	case 0x12: // DW_CFA_def_cfa_sf
		p.row.Register, p.row.Distance, p.row.Known = c.Uleb(), c.Sleb()*p.cie.data, true
	case 0x13: // DW_CFA_def_cfa_offset_sf
		p.row.Distance = c.Sleb() * p.cie.data
	case 0x0f: // DW_CFA_def_cfa_expression
		c.Skip(c.Uleb())
		p.row.Known = false
	case 0x10, 0x16: // DW_CFA_expression, val_expression
		c.Uleb()
		c.Skip(c.Uleb())
	default:
		p.row.Known = false
		c.At = len(c.Data)
	}
}

// Function is what an FDE, an entry of .eh_frame, says of a function.
type Function struct {
	Offset      int // of the entry in the section
	Start, Size uint64

	field        int // offset of Start's own bytes
	common       *common
	instructions []byte
}

// common is what a Common Information Entry says of the FDEs that refer to it.
type common struct {
	encoding     byte // of addresses
	sized        bool // whether augmentation data with its length follows
	code         uint64
	data         int64
	instructions []byte
}

// Functions reads .eh_frame, which is loaded at addr. A length of zero ends it
// for an unwinder, which stop asks for; a section may hold more behind it, if the file that ends the
// list was not linked last. An error ends it, and comes with the offset of its entry.
func Functions(data []byte, addr uint64, l elfreloc.Encoding, stop bool) iter.Seq2[Function, error] {
	return func(yield func(Function, error) bool) {
		cies := make(map[int]*common)
		r := newReader(data, addr, l)
		for r.At < len(data) {
			f := Function{Offset: r.At}
			body := r.entry()
			if !body.Bad() && body.At == len(body.Data) {
				if stop {
					return
				}
				continue
			}
			at, isFunction := body.At, false
			if id := int(body.U32()); id == 0 && !body.Bad() {
				cies[f.Offset] = body.cie()
			} else if f.common = cies[at-id]; f.common != nil { // the distance from the field itself
				body.fde(&f)
				isFunction = true
			} else {
				body.fail("no CIE %#x bytes before the pointer to it", id)
			}
			if err := body.Err(); err != nil {
				yield(f, err)
				return
			}
			if isFunction && !yield(f, nil) {
				return
			}
		}
	}
}

// Table returns the address of .eh_frame by the contents of .eh_frame_hdr, which is loaded at addr.
func Table(header []byte, addr uint64, l elfreloc.Encoding) (uint64, error) {
	r := newReader(header, addr, l)
	r.Skip(4) // the version and three encodings
	table := r.pointer(header[1])
	return table, r.Err()
}

// cie reads a CIE behind its ID.
func (r *reader) cie() *common {
	parsed := &common{}
	version := r.U8()
	if version != 1 && version != 3 {
		r.fail("CIE of version %d", version)
	}
	augmentation := string(r.Text())
	parsed.code, parsed.data = r.Uleb(), r.Sleb() // factors of alignment
	if version == 1 {
		r.U8()
	} else {
		r.SkipLEB() // the column of the return address
	}
	if augmentation == "" {
		parsed.instructions = r.Data[r.At:]
		return parsed
	}
	if augmentation[0] != 'z' {
		r.fail("CIE of augmentation %q", augmentation)
	}
	parsed.sized = true
	n := r.Uleb()
	data := r.Take(n)
	if r.Bad() {
		return parsed
	}
	parsed.instructions = r.Data[r.At:]
	r.Data, r.At = r.Data[:r.At], r.At-len(data)
	for _, letter := range augmentation[1:] {
		r.augmentation(letter, parsed)
	}
	return parsed
}

// augmentation reads what a letter of the augmentation stands for.
func (r *reader) augmentation(letter rune, parsed *common) {
	switch letter {
	case 'S', 'B', 'G': // a signal's frame; arm64's B key, and tagged frames
	case 'L': // the encoding of the address of a function's data
		r.U8()
	case 'R': // the encoding of addresses of code
		parsed.encoding = r.U8()
		r.formatOf(parsed.encoding)
	case 'P': // the personality routine
		r.skipPointer(r.U8())
	default:
		r.fail("CIE of augmentation %q", letter)
	}
}

// fde reads an FDE behind the pointer to its CIE.
func (r *reader) fde(f *Function) {
	f.field = r.At
	f.Start = r.pointer(f.common.encoding)
	f.Size = r.pointer(f.common.encoding & formatMask)
	if f.common.sized {
		r.Skip(r.Uleb())
	}
	f.instructions = r.Data[r.At:]
}

// Encodings of pointers, DW_EH_PE_* (LSB, 10.5.1): a format in the low bits, and
// what the value is added to.
const (
	formatMask = 0x0f
	relative   = 0x10 // DW_EH_PE_pcrel: to the field itself
	applied    = 0x70
	aligned    = 0x50 // DW_EH_PE_aligned: at a multiple of the word's size
	omitted    = 0xff
)

// reader reads what .eh_frame and .eh_frame_hdr are made of.
type reader struct {
	cursor.Cursor
	addr   uint64 // of Data[0] once it is loaded
	layout elfreloc.Encoding
}

func newReader(data []byte, addr uint64, l elfreloc.Encoding) reader {
	return reader{cursor.Cursor{Data: data, Big: l.Order == binary.ByteOrder(binary.BigEndian)}, addr, l}
}

func (r *reader) fail(format string, args ...any) { r.Fail(fmt.Errorf(format, args...)) }

// entry takes what the length of a CIE or FDE covers (LSB, 10.6.1).
func (r *reader) entry() reader {
	length, _ := r.Length()
	start := r.At
	r.Skip(length)
	body := *r // with the fault, if there was one
	body.Data, body.At = r.Data[:r.At], start
	return body
}

// format is how a pointer is stored.
type format struct {
	isSupported bool
	size        int // bytes, 0 for a word
	signed      bool
}

// formats are those of DW_EH_PE_absptr, udata2, udata4, udata8, signed and
// sdata2, sdata4, sdata8. No compiler uses LEB128 for addresses.
var formats = [formatMask + 1]format{
	0x0: {true, 0, false}, 0x2: {true, 2, false}, 0x3: {true, 4, false}, 0x4: {true, 8, false},
	0x8: {true, 0, true}, 0xa: {true, 2, true}, 0xb: {true, 4, true}, 0xc: {true, 8, true},
}

// formatOf returns the format of an encoding that an address of code may have.
func (r *reader) formatOf(encoding byte) format {
	f := formats[encoding&formatMask]
	if base := encoding &^ formatMask; !f.isSupported || base != 0 && base != relative {
		r.fail("pointer encoding %#x", encoding)
	}
	return f
}

// pointer reads an address.
func (r *reader) pointer(encoding byte) uint64 {
	f := r.formatOf(encoding)
	field := r.addr + uint64(r.At)
	v := r.Uint(r.width(f))
	if f.signed {
		shift := 64 - 8*r.width(f)
		v = uint64(int64(v<<shift) >> shift)
	}
	if encoding&relative != 0 {
		v += field
	}
	if r.layout.Class == elf.ELFCLASS32 {
		v = uint64(uint32(v))
	}
	return v
}

// width returns the size of a format in bytes.
func (r *reader) width(f format) int {
	if f.size == 0 {
		return r.layout.Word()
	}
	return f.size
}

// skipPointer passes over an address of any encoding.
func (r *reader) skipPointer(encoding byte) {
	if encoding == omitted {
		return
	}
	if encoding&applied == aligned {
		word := uint64(r.layout.Word())
		at := r.addr + uint64(r.At)
		r.Skip((at+word-1)&^(word-1) - at)
	}
	f := formats[encoding&formatMask]
	if !f.isSupported {
		r.fail("pointer encoding %#x", encoding)
	}
	r.Skip(uint64(r.width(f)))
}
