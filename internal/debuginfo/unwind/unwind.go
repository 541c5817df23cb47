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
	"errors"
	"fmt"
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
	rels, err := o.RelocSections()
	if err != nil {
		return nil, err
	}
	t := table{o: o, rows: map[int][]Row{}}
	for i := range o.Sections {
		if sec := &o.Sections[i]; sec.Name != ".eh_frame" || !sec.InFile() {
			continue
		}
		if t.data, err = o.Data(i); err != nil {
			return nil, err
		}
		t.starts = map[int]place{}
		for _, rs := range rels {
			if rs.Target != i {
				continue
			}
			if err := t.relocations(rs); err != nil {
				return nil, err
			}
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

// relocations finds the addresses of functions.
func (t *table) relocations(rs elfreloc.RelocSection) error {
	syms, err := t.o.Symbols()
	if err != nil {
		return err
	}
	return t.o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
		if sym := syms.At(int(r.Sym)); sym.Defined() && r.Offset < uint64(len(t.data)) {
			if field := t.data[r.Offset:]; r.Implicit && len(field) >= 4 {
				r.Addend = int64(int32(t.o.Encoding.Order.Uint32(field)))
			}
			t.starts[int(r.Offset)] = place{sym.Section, sym.Value + uint64(r.Addend)}
		}
		return nil
	})
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
func (p *program) advance(c *cursor.Cursor, by uint64) {
	if len(p.rows) == maxRows {
		c.Fail(errors.New("too many rows"))
		return
	}
	p.rows = append(p.rows, p.row)
	p.row.At += by * p.cie.code
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
