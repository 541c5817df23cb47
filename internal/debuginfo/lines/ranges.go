package lines

import (
	"debug/dwarf"

	"sdtconvert/internal/debuginfo/cursor"
)

// ranges returns the ranges of code that an entry covers, by its attributes
// DW_AT_low_pc, DW_AT_high_pc and DW_AT_ranges (section 2.17). Those of functions
// that the linker has dropped are left out.
func (t *Table) ranges(u *unit, e *dwarf.Entry) ([][2]uint64, error) {
	if f := e.AttrField(dwarf.AttrRanges); f != nil {
		if err := t.checkRanges(u, f.Val); err != nil {
			return nil, err
		}
	}
	found, err := t.info.Ranges(e)
	if err != nil {
		return nil, t.infoError(err)
	}
	code := found[:0]
	for _, r := range found {
		if lo, hi := mask(r[0], u.addrSize), mask(r[1], u.addrSize); lo < hi && t.isCode(lo) {
			code = append(code, [2]uint64{lo, hi})
		}
	}
	return code, nil
}

// checkRanges makes sure that a list of ranges ends, and charges its length. debug/dwarf
// reads the first entry of the unit for each list.
func (t *Table) checkRanges(u *unit, offset any) error {
	var off uint64
	switch v := offset.(type) {
	case int64:
		off = uint64(v)
	case uint64:
		off = v
	default:
		return nil
	}
	if err := t.charge(u.cost); err != nil {
		return err
	}
	k := debugRanges
	if u.version >= 5 && t.sections.has(debugRnglists) {
		k = debugRnglists
	}
	data, err := t.sections.from(k, off)
	if err != nil {
		return err
	}
	c := t.cursor(data[:min(uint64(len(data)), t.sections.left(k, 4))])
	if k == debugRanges {
		skipOldRanges(u, &c)
	} else if kind := skipRanges(u, &c); kind >= uint8(len(rangeOperands)) {
		return t.sections.fault(k, off, "a range of unknown kind %d", kind)
	}
	t.sections.list[k].decoded += uint64(c.At)
	if c.Bad() {
		return t.sections.fault(k, off, "a list of ranges without an end, or many that overlap")
	}
	return nil
}

// skipOldRanges reads a list of .debug_ranges (DWARF 4, section 2.17.3).
func skipOldRanges(u *unit, c *cursor.Cursor) {
	for size := int(u.addrSize); !c.Bad(); {
		if lo, hi := c.Uint(size), c.Uint(size); lo == 0 && hi == 0 {
			return
		}
	}
}

// rangeOperands are the operands of each kind of entry of .debug_rnglists (section 7.25): u
// is an integer, a an address.
var rangeOperands = [...]string{"", "u", "uu", "uu", "uu", "a", "aa", "au"}

// skipRanges reads a list of .debug_rnglists (section 2.17.3), up to an entry of kind 0 or
// of one that is not known, and returns that kind.
func skipRanges(u *unit, c *cursor.Cursor) uint8 {
	for {
		kind := c.U8()
		if kind == 0 || kind >= uint8(len(rangeOperands)) {
			return kind
		}
		for _, operand := range rangeOperands[kind] {
			if operand == 'u' {
				c.SkipLEB()
			} else {
				c.Skip(uint64(u.addrSize))
			}
		}
	}
}
