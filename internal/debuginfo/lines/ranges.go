package lines

import (
	"fmt"

	"sdtconvert/internal/debuginfo/cursor"
)

// ranges calls f with the ranges of code that an entry covers, by its attributes
// DW_AT_low_pc, DW_AT_high_pc and DW_AT_ranges (section 2.17). Those of functions
// that the linker has dropped are left out.
func (t *Table) ranges(u *unit, low, high, ranges value, f func(lo, hi uint64)) error {
	code := func(lo, hi uint64) {
		if lo, hi = u.mask(lo), u.mask(hi); lo < hi && t.isCode(lo) {
			f(lo, hi)
		}
	}
	if ranges.form != 0 {
		return t.rangeList(u, ranges, code)
	}
	if low.form == 0 || high.form == 0 {
		return nil
	}
	lo, err := t.addressOf(u, low)
	if err != nil {
		return err
	}
	hi, err := t.addressOf(u, high)
	if err != nil {
		return err
	}
	switch high.form {
	case formAddr, formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
	default:
		hi += lo // section 2.17.2: a constant is the size
	}
	code(lo, hi)
	return nil
}

func (t *Table) rangeList(u *unit, v value, f func(lo, hi uint64)) error {
	k, off := debugRanges, v.u
	if u.version >= 5 {
		k = debugRnglists
		if v.form == formRnglistx {
			// Section 7.28: the offsets in the table are relative to it.
			rel, err := t.indexed(k, u.rnglistsBase, v.u, u.offsetSize())
			if err != nil {
				return err
			}
			off = u.rnglistsBase + rel
		}
	}
	data, err := t.sections.all(k)
	if err != nil {
		return err
	}
	if off >= uint64(len(data)) {
		return fmt.Errorf("%s+%#x: beyond the end at %#x", t.sections.name(k), off, len(data))
	}
	data = data[off:]
	c := t.cursor(data[:min(uint64(len(data)), t.rangeBudget)])
	if k == debugRanges {
		oldRanges(u, &c, f)
	} else {
		err = t.newRanges(u, &c, f)
	}
	t.rangeBudget -= uint64(c.At)
	if err == nil && c.Bad() {
		err = fmt.Errorf("%s+%#x: a list of ranges without an end, or many that overlap", t.sections.name(k), off)
	}
	return err
}

// oldRanges reads a list of .debug_ranges (DWARF 4, section 2.17.3).
func oldRanges(u *unit, c *cursor.Cursor, f func(lo, hi uint64)) {
	size, base := int(u.addrSize), u.low
	for {
		lo, hi := c.Uint(size), c.Uint(size)
		switch {
		case c.Bad() || lo == 0 && hi == 0:
			return
		case lo == u.mask(^uint64(0)):
			base = hi
		default:
			f(base+lo, base+hi)
		}
	}
}

// The kinds of entries of .debug_rnglists (section 7.25).
const (
	rleEndOfList    = 0
	rleBaseAddressx = 1
	rleStartxEndx   = 2
	rleStartxLength = 3
	rleOffsetPair   = 4
	rleBaseAddress  = 5
	rleStartEnd     = 6
	rleStartLength  = 7
)

// newRanges reads a list of .debug_rnglists (section 2.17.3).
func (t *Table) newRanges(u *unit, c *cursor.Cursor, f func(lo, hi uint64)) (err error) {
	size, base := int(u.addrSize), u.low
	index := func() (address uint64) {
		if i := c.Uleb(); err == nil && !c.Bad() {
			address, err = t.indexed(debugAddr, u.addrBase, i, size)
		}
		return address
	}
	for err == nil && !c.Bad() {
		switch kind := c.U8(); kind {
		case rleEndOfList:
			return nil
		case rleBaseAddressx:
			base = index()
		case rleBaseAddress:
			base = c.Uint(size)
		case rleStartxEndx:
			lo := index()
			f(lo, index())
		case rleStartxLength:
			lo := index()
			f(lo, lo+c.Uleb())
		case rleOffsetPair:
			lo := base + c.Uleb()
			f(lo, base+c.Uleb())
		case rleStartEnd:
			lo := c.Uint(size)
			f(lo, c.Uint(size))
		case rleStartLength:
			lo := c.Uint(size)
			f(lo, lo+c.Uleb())
		default:
			return fmt.Errorf("%s: a range of unknown kind %d", t.sections.name(debugRnglists), kind)
		}
	}
	return err
}
