// Package debuginfo reads what compilers write about code for debuggers: which source line an
// address comes from and which inlined functions it lies in (Lines, from DWARF), where functions
// are (UnwindFunctions, from .eh_frame), and what is kept apart from a stripped image
// (OpenDebugFile, MiniDebugInfo). It takes objects that are not linked yet, linked
// images, and their debug files. It also reads the parameters of functions that are called and
// defined elsewhere.
//
// Entries of DWARF are read by debug/dwarf, of sections that are relocated already: in an object
// debug/elf would relocate all of them from 0. Headers, abbreviations and lists of ranges are
// looked through before, and entries are counted, so that hostile files take no more than
// their size allows. Line tables are read here. The entries inside of a unit, and its line
// table, are decoded when an address falls into it.
//
// The formats are those of DWARF 2 to 5; sections are cited from DWARF 5.
package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Lines answers which source line a place in code comes from. It reads the
// object for as long as it is used, and is not safe for concurrent use.
type Lines struct {
	o        *elfreloc.Object
	sections sections
	base     map[int]uint64 // of objects: the address given to each section
	code     elfreloc.Code
	units    []unit                  // in the order of the file
	spans    []span                  // which unit is where, sorted by lo
	info     *dwarf.Data             // nil without units
	lookup   *dwarf.Reader           // of single entries
	programs map[uint64]*program     // by offset in .debug_line
	names    map[dwarf.Offset]string // of functions, by their entries
	err      error
	budget   entryCost // of entries that may still be decoded
}

// span is a range of addresses, and what is there: n things of a list from index
// at on, or one.
type span struct {
	lo, hi uint64
	top    uint64 // the highest hi of this span and all before it
	at, n  int32
}

// Frame is a function at an address, or one that was inlined there.
type Frame struct {
	Function string // the linkage name, else the name, "" when not known
	File     string // "" when not known
	Line     int    // 0 when not known
}

// NewLines finds the units of an object or image. Without debug information the
// Lines are empty. A fault of the debug information is an error; the Lines then
// still answer for what was read before it. Relocatable objects need their
// machine; without one nothing is known of them.
func NewLines(o *elfreloc.Object, m arch.Machine) (*Lines, error) {
	t := &Lines{
		o: o, programs: make(map[uint64]*program), names: make(map[dwarf.Offset]string),
	}
	relocatable := o.Type == elf.ET_REL
	if relocatable && m == nil {
		return t, nil
	}
	t.sections.find(o)
	if relocatable {
		t.base, t.code = placeSections(o)
		t.sections.relocate = relocator(o, m, t.base)
	}
	if !t.sections.has(debugInfo) || !t.sections.has(debugLine) || !t.sections.has(debugAbbrev) {
		return t, nil
	}
	if !relocatable {
		var err error
		if t.code, err = o.Code(); err != nil {
			return t, t.wrap(bare(err))
		}
	}
	err := t.findUnits()
	// Of several units that claim one place, for functions that the linker has kept once, the first shall answer:
	// spansContaining starts from the end.
	slices.Reverse(t.spans)
	order(t.spans)
	return t, t.wrap(err)
}

// order sorts spans, and enters top.
func order(spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	top := uint64(0)
	for i := range spans {
		top = max(top, spans[i].hi)
		spans[i].top = top
	}
}

// maxTries bounds how many spans that start before an address are looked at: in
// hostile input there may be many, none of which holds it.
const maxTries = 64

// spansContaining calls f with the spans that contain an address, the one that starts last
// first, until f returns true.
func spansContaining(spans []span, address uint64, f func(s *span) bool) bool {
	behind := sort.Search(len(spans), func(i int) bool { return spans[i].lo > address })
	for i := behind - 1; i >= max(0, behind-maxTries) && spans[i].top > address; i-- {
		if spans[i].hi > address && f(&spans[i]) {
			return true
		}
	}
	return false
}

// isCode reports whether code is at an address. The line tables and ranges of
// functions that a linker has dropped lie elsewhere: at 0, at 1, or at the highest
// addresses.
func (t *Lines) isCode(address uint64) bool {
	return t.code.Find(0, address) >= 0
}

// address returns the address that was given to a place, and whether there is one.
func (t *Lines) address(section int, off uint64) (uint64, bool) {
	if t.base == nil {
		return off, t.o.Type != elf.ET_REL
	}
	base, ok := t.base[section]
	return base + off, ok && off < t.o.Sections[section].Size
}

// find returns the unit and the row of a place. Without a row there may still
// be a unit.
func (t *Lines) find(section int, off uint64) (u *unit, p *program, r row, address uint64) {
	address, ok := t.address(section, off)
	if !ok {
		return nil, nil, row{}, 0
	}
	spansContaining(t.spans, address, func(s *span) bool {
		candidate := &t.units[s.at]
		lines := t.program(candidate)
		found, ok := lines.lookup(address)
		if u == nil || ok {
			u, p, r = candidate, lines, found
		}
		return ok
	})
	return u, p, r, address
}

// Source returns the file and line of a place: a section of an object and an
// offset in it; in linked images the section is not looked at and the offset is
// the address. What is not known is "" and 0. The path is as the compiler has it,
// joined with the directory that it ran in.
func (t *Lines) Source(section int, off uint64) (file string, line int) {
	_, p, r, _ := t.find(section, off)
	if r.line == 0 {
		return "", 0
	}
	return t.fileName(p, uint64(r.file)), int(r.line)
}

// Lookup is Source as "file:line", or "" when it is not known.
func (t *Lines) Lookup(section int, off uint64) string {
	file, line := t.Source(section, off)
	if line == 0 {
		return ""
	}
	return file + ":" + strconv.Itoa(line)
}

// Err returns the first fault that look-ups met, with the file's name and the debug
// section. What it concerns is not known: a look-up that meets one says less, never
// anything else.
func (t *Lines) Err() error { return t.err }

// fail keeps the first fault of a look-up.
func (t *Lines) fail(err error) {
	if t.err == nil {
		t.err = t.wrap(err)
	}
}

func (t *Lines) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: debug information: %w", t.o.Name, err)
}

// unit is a compilation unit (section 3.1.1), as far as its header and first
// entry tell.
type unit struct {
	header
	entry    dwarf.Offset // of the first
	hasLines bool
	lines    uint64 // offset in .debug_line
	dir      string // DW_AT_comp_dir
	language int64  // DW_LANG_*
	gnu      bool   // of GCC
	cost     entryCost

	scopes *scopes // once they were asked for
}

var errNonsense = errors.New("makes no sense")

// mask cuts an address to a size in bytes.
func mask(address uint64, size uint8) uint64 {
	if size < 8 {
		return address & (1<<(8*size) - 1)
	}
	return address
}

func (t *Lines) cursor(b []byte) cursor {
	return cursor{data: b, big: t.o.Encoding.Order == binary.ByteOrder(binary.BigEndian)}
}

// findUnits reads the header and the first entry of each unit. One that makes no
// sense does not keep it from the others, as long as its length does.
func (t *Lines) findUnits() error {
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
func (t *Lines) readUnit(h header) error {
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
	producer, _ := e.Val(dwarf.AttrProducer).(string)
	u.gnu = strings.HasPrefix(producer, "GNU ")
	err = t.place(&u, e)
	t.units = append(t.units, u)
	return err
}

// place notes the addresses of the unit that comes next.
func (t *Lines) place(u *unit, e *dwarf.Entry) error {
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
func (t *Lines) entries(u *unit, first dwarf.Offset, f func(e *dwarf.Entry, depth int) error) error {
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
func (t *Lines) at(off dwarf.Offset) (*unit, *dwarf.Entry, error) {
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
