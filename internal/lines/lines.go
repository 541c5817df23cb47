// Package lines reads the source lines of code from the DWARF of an object that
// is not linked yet.
//
// In such an object every section begins at address 0. To tell them apart,
// each code section is given a range of addresses of its own before the
// relocations of the debug sections are applied.
package lines

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Table answers which source line an offset of a section comes from.
type Table struct {
	base map[int]uint64 // the address given to each section
	rows []row          // sorted by address
}

type row struct {
	address uint64
	file    string
	line    int
	end     bool // the address behind a sequence
}

// maxDebug bounds the debug information that is read, since all of it has to be
// in memory at once.
const maxDebug = 1 << 30

// FromObject reads the line tables of an object. Without debug information the
// Table is empty; debug information that makes no sense is an error.
func FromObject(o *elfreloc.Object, m arch.Machine) (t *Table, err error) {
	defer func() {
		// debug/dwarf is not hardened against hostile input.
		if p := recover(); p != nil {
			t, err = &Table{}, fmt.Errorf("%s: debug information: %v", o.Name, p)
		}
	}()
	t = &Table{base: placeSections(o)}
	sections, err := loadDebug(o, m, t.base)
	if err != nil || sections[".debug_info"] == nil || sections[".debug_line"] == nil {
		return t, err
	}
	d, err := dwarf.New(sections[".debug_abbrev"], nil, nil, sections[".debug_info"], sections[".debug_line"],
		nil, sections[".debug_ranges"], sections[".debug_str"])
	if err != nil {
		return t, fmt.Errorf("%s: debug information: %w", o.Name, err)
	}
	for _, name := range []string{".debug_line_str", ".debug_addr", ".debug_str_offsets", ".debug_rnglists"} {
		if err := d.AddSection(name, sections[name]); err != nil {
			return t, fmt.Errorf("%s: debug information: %w", o.Name, err)
		}
	}
	if err := t.read(d, sections[".debug_info"], o.Layout.Order); err != nil {
		return t, fmt.Errorf("%s: debug information: %w", o.Name, err)
	}
	return t, nil
}

// placeSections gives each code section addresses that no other has.
func placeSections(o *elfreloc.Object) map[int]uint64 {
	const page = 1 << 12
	base, next := make(map[int]uint64), uint64(page)
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Executable() {
			base[i] = next
			next += (s.Size + 2*page - 1) &^ (page - 1)
		}
	}
	return base
}

func loadDebug(o *elfreloc.Object, m arch.Machine, base map[int]uint64) (map[string][]byte, error) {
	sections := make(map[string][]byte)
	index := make(map[int]string)
	total := uint64(0)
	for i := range o.Sections {
		switch s := &o.Sections[i]; s.Name {
		case ".debug_info", ".debug_line", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_addr",
			".debug_str_offsets", ".debug_ranges", ".debug_rnglists":
			if _, twice := sections[s.Name]; twice || s.Flags&shfCompressed != 0 {
				continue // type units in groups; and what would have to be unpacked
			}
			if total += s.Size; total > maxDebug {
				return nil, fmt.Errorf("%s: more than %d bytes of debug information", o.Name, maxDebug)
			}
			data, err := o.Data(i)
			if err != nil {
				return nil, err
			}
			sections[s.Name], index[i] = bytes.Clone(data), s.Name
		}
	}
	rels, err := o.RelocSections()
	if err != nil {
		return nil, err
	}
	for _, rs := range rels {
		if name, ok := index[rs.Target]; ok {
			if err := relocate(o, m, rs, sections[name], base); err != nil {
				return nil, err
			}
		}
	}
	return sections, nil
}

const shfCompressed = 0x800 // SHF_COMPRESSED

// relocate applies the relocations of a debug section to its bytes.
func relocate(o *elfreloc.Object, m arch.Machine, rs elfreloc.RelocSection, data []byte, base map[int]uint64) error {
	syms, err := o.Symbols()
	if err != nil {
		return err
	}
	return o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
		rel := m.DataReloc(r.Type)
		if rel.Size == 0 || r.Offset > uint64(len(data)) || uint64(len(data))-r.Offset < uint64(rel.Size) {
			return nil
		}
		sym := syms.At(int(r.Sym))
		value := base[sym.Section] + sym.Value + uint64(r.Addend)
		field := data[r.Offset:][:rel.Size]
		old := get(o, field)
		switch {
		case rel.Op == arch.Add:
			value = old + value
		case rel.Op == arch.Sub:
			value = old - value
		case r.Implicit:
			value += old
		}
		put(o, field, value)
		return nil
	})
}

func get(o *elfreloc.Object, b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(o.Layout.Order.Uint16(b))
	case 4:
		return uint64(o.Layout.Order.Uint32(b))
	}
	return o.Layout.Order.Uint64(b)
}

func put(o *elfreloc.Object, b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		o.Layout.Order.PutUint16(b, uint16(v))
	case 4:
		o.Layout.Order.PutUint32(b, uint32(v))
	default:
		o.Layout.Order.PutUint64(b, v)
	}
}

// read collects the rows of all compilation units. It finds them by their
// headers alone: in hostile input the siblings that a dwarf.Reader would skip to
// may lead backwards, for ever.
func (t *Table) read(d *dwarf.Data, info []byte, order binary.ByteOrder) error {
	units := d.Reader()
	seen := make(map[int64]bool)
	for _, off := range unitOffsets(info, order) {
		units.Seek(off)
		unit, err := units.Next()
		if err != nil {
			return err
		}
		if unit == nil || unit.Tag != dwarf.TagCompileUnit {
			continue
		}
		// Each line table is read once, however many units name it.
		if table, ok := unit.Val(dwarf.AttrStmtList).(int64); ok && !seen[table] {
			seen[table] = true
			if err := t.readUnit(d, unit); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(t.rows, func(a, b row) int {
		switch {
		case a.address != b.address:
			if a.address < b.address {
				return -1
			}
			return 1
		case a.end != b.end: // the end of one function, then the start of the next
			if a.end {
				return -1
			}
			return 1
		}
		return 0
	})
	return nil
}

// unitOffsets returns where the first entry of each unit is: behind a header of
// length, version and, in an order that depends on the version, the type of the
// unit, the size of an address and the offset of the abbreviations (DWARF 5,
// section 7.5.1). dwarf.New has seen that the lengths are right.
func unitOffsets(info []byte, order binary.ByteOrder) []dwarf.Offset {
	const lengthOf64 = 0xffffffff // announces a length of 64 bits
	var offsets []dwarf.Offset
	for at := uint64(0); uint64(len(info))-at >= 16; {
		start, word := at+4, uint64(4)
		length := uint64(order.Uint32(info[at:]))
		if length == lengthOf64 {
			length, start, word = order.Uint64(info[at+4:]), at+12, 8
		}
		if length > uint64(len(info))-start || length < 4 {
			break
		}
		header := 2 + word + 1
		if order.Uint16(info[start:]) >= 5 {
			header++
		}
		offsets = append(offsets, dwarf.Offset(start+header))
		at = start + length
	}
	return offsets
}

func (t *Table) readUnit(d *dwarf.Data, unit *dwarf.Entry) error {
	lr, err := d.LineReader(unit)
	if err != nil || lr == nil {
		return err
	}
	var e dwarf.LineEntry
	for {
		if err := lr.Next(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r := row{address: e.Address, line: e.Line, end: e.EndSequence}
		if e.File != nil {
			r.file = e.File.Name
		}
		t.rows = append(t.rows, r)
	}
}

// Lookup returns the file and line of an offset of a section as "file:line", or
// "" when it is not known.
func (t *Table) Lookup(section int, off uint64) string {
	base, ok := t.base[section]
	if !ok {
		return ""
	}
	i, _ := slices.BinarySearchFunc(t.rows, base+off, func(r row, address uint64) int {
		if r.address <= address {
			return -1
		}
		return 1
	})
	if i == 0 || t.rows[i-1].end || t.rows[i-1].line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", t.rows[i-1].file, t.rows[i-1].line)
}
