package lines

import (
	"cmp"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"slices"

	"sdtconvert/internal/debuginfo/cursor"
)

// unit is a compilation unit (section 3.1.1), as far as its header and first
// entry tell.
type unit struct {
	header
	entry    dwarf.Offset // of the first
	hasLines bool
	lines    uint64 // offset in .debug_line
	dir      string // DW_AT_comp_dir
	language int64  // DW_LANG_*
	cost     entryCost

	scopes  *scopes  // once they were asked for
	program *program // once it was asked for
}

var errNonsense = errors.New("makes no sense")

// mask cuts an address to a size in bytes.
func mask(address uint64, size uint8) uint64 {
	if size < 8 {
		return address & (1<<(8*size) - 1)
	}
	return address
}

func (t *Table) cursor(b []byte) cursor.Cursor {
	return cursor.Cursor{Data: b, Big: t.o.Encoding.Order == binary.ByteOrder(binary.BigEndian)}
}

// findUnits reads the header and the first entry of each unit. One that makes no
// sense does not keep it from the others, as long as its length does.
func (t *Table) findUnits() error {
	headers, err := t.prepare()
	if t.info == nil {
		return err
	}
	for _, h := range headers {
		if h.kind == utCompile || h.kind == utPartial || h.kind == utSkeleton {
			err = cmp.Or(err, t.readUnit(h))
		}
	}
	return err
}

// readUnit reads the first entry of a unit, and notes where its code is.
func (t *Table) readUnit(h header) error {
	u := unit{header: h, entry: dwarf.Offset(h.first)}
	if h.first == h.end {
		return nil
	}
	if err := t.seek(t.lookup, u.entry); err != nil {
		return err
	}
	e, err := t.next(t.lookup)
	if err != nil || e == nil {
		return err
	}
	const tagSkeletonUnit = 0x4a
	if e.Tag != dwarf.TagCompileUnit && e.Tag != dwarf.TagPartialUnit && e.Tag != tagSkeletonUnit {
		return nil // padding, or types
	}
	u.cost = costOf(e)
	lines, ok := e.Val(dwarf.AttrStmtList).(int64)
	u.lines, u.hasLines = uint64(lines), ok
	u.dir, _ = e.Val(dwarf.AttrCompDir).(string)
	u.language, _ = e.Val(dwarf.AttrLanguage).(int64)
	err = t.place(&u, e)
	t.units = append(t.units, u)
	return err
}

// place notes the addresses of the unit that comes next.
func (t *Table) place(u *unit, e *dwarf.Entry) error {
	index := int32(len(t.units))
	ranges, err := t.ranges(u, e)
	for _, r := range ranges {
		t.spans = append(t.spans, span{lo: r[0], hi: r[1], at: index})
	}
	if err != nil || e.AttrField(dwarf.AttrRanges) != nil || e.AttrField(dwarf.AttrHighpc) != nil {
		return err
	}
	// The unit does not say; what some assemblers make does not.
	for _, s := range t.program(u).seqs {
		t.spans = append(t.spans, span{lo: s.lo, hi: s.hi, at: index})
	}
	return nil
}

// errSkipChildren is what the function of entries returns if what is inside of an entry need
// not be read. It is read where the entry does not say where it ends.
var errSkipChildren = errors.New("skip the children")

// entries calls f with an entry of a unit and all that are inside of it, in their order, and
// how deep each lies; the first is at 0. It ends with the error of f, but for errSkipChildren.
func (t *Table) entries(u *unit, first dwarf.Offset, f func(e *dwarf.Entry, depth int) error) error {
	r := t.info.Reader()
	if err := t.seek(r, first); err != nil {
		return err
	}
	for depth := 0; ; {
		e, err := t.next(r)
		switch {
		case err != nil:
			return err
		case e == nil || uint64(e.Offset) >= u.end:
			return t.sections.fault(debugInfo, u.start, "the entries are cut off")
		case e.Offset == 0: // the end of children
			depth--
		default:
			err := f(e, depth)
			if next, ok := e.Val(dwarf.AttrSibling).(dwarf.Offset); err == errSkipChildren && ok && next > e.Offset && uint64(next) < u.end {
				if err := t.seek(r, next); err != nil {
					return err
				}
				continue
			}
			if err != nil && err != errSkipChildren {
				return err
			}
			if e.Children {
				depth++
			}
		}
		if depth <= 0 {
			return nil
		}
	}
}

// at returns the entry at an offset and its unit, nil where there is none.
func (t *Table) at(off dwarf.Offset) (*unit, *dwarf.Entry, error) {
	i, ok := slices.BinarySearchFunc(t.units, uint64(off), func(u unit, off uint64) int { return cmp.Compare(u.start, off) })
	if ok || i == 0 || uint64(off) < t.units[i-1].first || uint64(off) >= t.units[i-1].end {
		return nil, nil, nil
	}
	if err := t.seek(t.lookup, off); err != nil {
		return nil, nil, err
	}
	e, err := t.next(t.lookup)
	if err != nil || e == nil || e.Offset != off {
		return nil, nil, err
	}
	return &t.units[i-1], e, nil
}
