package lines

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"sdtconvert/internal/debuginfo/cursor"
)

// unit is a compilation unit (section 3.1.1), as far as its header and first
// entry tell.
type unit struct {
	params
	off, size uint64 // in .debug_info, with the header
	first     uint64 // of its first entry, from off
	abbrevs   uint64 // in .debug_abbrev

	low      uint64 // what addresses of ranges are relative to
	lines    uint64 // in .debug_line
	hasLines bool
	dir      value  // DW_AT_comp_dir
	language uint64 // DW_LANG_*

	strBase, addrBase, rnglistsBase uint64

	body    []byte   // once it was read
	scopes  *scopes  // once they were asked for
	program *program // once it was asked for
}

func (u *unit) offsetSize() int {
	if u.wide {
		return 8
	}
	return 4
}

// mask cuts an address to the size that addresses have.
func (p params) mask(address uint64) uint64 {
	if p.addrSize < 8 {
		return address & (1<<(8*p.addrSize) - 1)
	}
	return address
}

func (t *Table) cursor(b []byte) cursor.Cursor {
	return cursor.Cursor{Data: b, Big: t.o.Encoding.Order == binary.ByteOrder(binary.BigEndian)}
}

// findUnits reads the header and the first entry of each unit. One that makes no
// sense does not keep it from the others, as long as its length does.
func (t *Table) findUnits() error {
	size, err := t.sections.size(debugInfo)
	if err != nil {
		return err
	}
	var first error
	for off := uint64(0); off < size; {
		next, err := t.findUnit(off, size)
		first = cmp.Or(first, err)
		if next == 0 {
			break
		}
		off = next
	}
	return first
}

// firstRead is how much of a unit is read at first: most first entries are
// shorter.
const firstRead = 512

// findUnit reads the unit at an offset and returns the offset of the next, 0 when
// that cannot be told.
func (t *Table) findUnit(off, end uint64) (uint64, error) {
	window, err := t.sections.rest(debugInfo, off, firstRead)
	if err != nil {
		return 0, err
	}
	u := unit{off: off}
	c := t.cursor(window)
	kind := u.readHeader(&c)
	if c.Bad() || u.size > end-off {
		return 0, t.unitError(&u, "a header that makes no sense")
	}
	if u.version < 2 || u.version > 5 || kind != tagCompileUnit {
		return off + u.size, nil // of types, or from another time
	}
	if u.addrSize != 4 && u.addrSize != 8 {
		return off + u.size, t.unitError(&u, fmt.Sprintf("addresses of %d bytes", u.addrSize))
	}
	c.Data = c.Data[:min(uint64(len(c.Data)), u.size)]
	err = t.readFirst(&u, c)
	if err == errShort && u.size > firstRead {
		if c.Data, err = t.sections.part(debugInfo, off, u.size); err != nil {
			return 0, err
		}
		err = t.readFirst(&u, c)
	}
	if err == errShort {
		err = t.unitError(&u, "the first entry is cut off, or of a form that is not known")
	}
	return off + u.size, err
}

func (t *Table) unitError(u *unit, what string) error {
	return fmt.Errorf("%s+%#x: %s", t.sections.name(debugInfo), u.off, what)
}

// The types of units (section 7.5.1).
const (
	utCompile  = 1
	utPartial  = 3
	utSkeleton = 4
)

// readHeader reads the header of a unit (section 7.5.1). It returns 0 for a
// unit that holds no code.
func (u *unit) readHeader(c *cursor.Cursor) (tag int) {
	length, wide := c.Length()
	u.wide = wide
	u.size = length + uint64(c.At)
	u.version = c.U16()
	if c.Bad() || u.size < length || length < 2 {
		c.Fail(errNonsense)
		return 0
	}
	if u.version < 5 {
		u.abbrevs = c.Word(wide)
		u.addrSize = c.U8()
	} else {
		kind := c.U8()
		u.addrSize = c.U8()
		u.abbrevs = c.Word(wide)
		switch kind {
		case utCompile, utPartial:
		case utSkeleton:
			c.Skip(8) // of the .dwo file
		default:
			return 0
		}
	}
	u.first = uint64(c.At)
	if u.first > u.size {
		c.Fail(errNonsense)
	}
	return tagCompileUnit
}

var errShort = errors.New("cut off")

// readFirst reads the first entry of a unit and notes the unit and where it is.
// It returns errShort when the entry goes on behind what c has.
func (t *Table) readFirst(u *unit, c cursor.Cursor) error {
	table, err := t.abbrevTable(u.abbrevs, u.params)
	if err != nil {
		return err
	}
	code := c.Uleb()
	if code == 0 {
		return nil // padding
	}
	if c.Bad() {
		return errShort
	}
	a := table.get(code)
	if a == nil {
		return t.unitError(u, fmt.Sprintf("no abbreviation %d", code))
	}
	if a.tag != tagCompileUnit && a.tag != tagPartialUnit && a.tag != tagSkeletonUnit {
		return nil
	}
	var low, high, ranges value
	for _, at := range a.attrs {
		v := u.value(&c, at)
		switch at.name {
		case atLowPC:
			low = v
		case atHighPC:
			high = v
		case atRanges:
			ranges = v
		case atStmtList:
			u.lines, u.hasLines = v.u, true
		case atCompDir:
			u.dir = v
		case atLanguage:
			u.language = v.u
		case atStrOffsetsBase:
			u.strBase = v.u
		case atAddrBase, atGNUAddrBase:
			u.addrBase = v.u
		case atRnglistsBase:
			u.rnglistsBase = v.u
		}
	}
	if c.Bad() {
		return errShort
	}
	if u.low, err = t.addressOf(u, low); err != nil {
		return err
	}
	err = t.place(u, low, high, ranges)
	t.units = append(t.units, *u)
	return err
}

// place notes the addresses of the unit that comes next.
func (t *Table) place(u *unit, low, high, ranges value) error {
	before, index := len(t.spans), int32(len(t.units))
	err := t.ranges(u, low, high, ranges, func(lo, hi uint64) {
		t.spans = append(t.spans, span{lo: lo, hi: hi, at: index})
	})
	if err != nil || len(t.spans) > before || ranges.form != 0 || high.form != 0 || !u.hasLines {
		return err
	}
	// The unit does not say; what some assemblers make does not.
	for _, s := range t.program(u).seqs {
		t.spans = append(t.spans, span{lo: s.lo, hi: s.hi, at: index})
	}
	return nil
}

// load reads all of a unit.
func (t *Table) load(u *unit) ([]byte, error) {
	if u.body == nil {
		if err := t.sections.hold(u.size); err != nil {
			return nil, err
		}
		body, err := t.sections.part(debugInfo, u.off, u.size)
		if err != nil {
			return nil, err
		}
		u.body = body
	}
	return u.body, nil
}
