package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"slices"
	"sort"
)

// scopes are the functions of a unit that have code, and those that were inlined
// there.
type scopes struct {
	list   []scope
	ranges []scopeRange // by address, and an outer one before an inner one
}

type scope struct {
	entry      dwarf.Offset // of the function
	parent     int32        // the one that it was inlined into, -1 if it is not inlined
	file, line int64        // of the call, in the unit's line table
}

type scopeRange struct {
	lo, hi uint64
	scope  int32
	outer  int32 // the range that this one starts in, -1 for none
}

// maxDepth bounds how deep functions may be inlined into each other.
const maxDepth = 1 << 10

// Inlines returns the functions that a place lies in: the one that was inlined
// last comes first, and each has the line that the code is of there: that of the
// place, and then that of the call. What is not known is empty.
func (t *Lines) Inlines(section int, off uint64) []Frame {
	u, p, r, address := t.find(section, off)
	if u == nil {
		return nil
	}
	var frames []Frame
	file, line := int64(r.file), int64(r.line)
	s := t.scopesOf(u)
	for i := s.at(address); i >= 0 && len(frames) < maxDepth; i = s.list[i].parent {
		frames = append(frames, t.frame(p, t.function(s.list[i].entry), file, line))
		file, line = s.list[i].file, s.list[i].line
	}
	if frames == nil && line != 0 {
		frames = []Frame{t.frame(p, "", file, line)}
	}
	return frames
}

func (t *Lines) frame(p *program, function string, file, line int64) Frame {
	f := Frame{Function: function}
	if line > 0 {
		f.File, f.Line = t.fileName(p, uint64(file)), int(line)
	}
	return f
}

// at returns the innermost scope of an address, -1 for none.
func (s *scopes) at(address uint64) int32 {
	i := int32(sort.Search(len(s.ranges), func(i int) bool { return s.ranges[i].lo > address }) - 1)
	for depth := 0; i >= 0 && depth < maxDepth; depth++ {
		if address < s.ranges[i].hi {
			return s.ranges[i].scope
		}
		i = s.ranges[i].outer
	}
	return -1
}

// scopesOf reads the scopes of a unit, once, and finds which lies in which.
func (t *Lines) scopesOf(u *unit) *scopes {
	if u.scopes != nil {
		return u.scopes
	}
	s := &scopes{}
	u.scopes = s
	if err := t.readScopes(u); err != nil {
		t.fail(err)
	}
	slices.SortStableFunc(s.ranges, func(a, b scopeRange) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(b.hi, a.hi), cmp.Compare(a.scope, b.scope))
	})
	s.ranges = slices.Clip(s.ranges)
	outer := int32(-1)
	for i := range s.ranges {
		for outer >= 0 && s.ranges[outer].hi <= s.ranges[i].lo {
			outer = s.ranges[outer].outer
		}
		s.ranges[i].outer = outer
		outer = int32(i)
	}
	return s
}

// readScopes reads the entries of a unit from first to last (section 2.3): no
// reference is followed, so it comes to an end.
func (t *Lines) readScopes(u *unit) error {
	var scopes []int32 // that of each entry that is open, by depth
	return t.entries(u, u.entry, func(e *dwarf.Entry, depth int) (err error) {
		scope := int32(-1)
		if depth > 0 {
			scope = scopes[depth-1]
		}
		if e.Tag == dwarf.TagSubprogram || e.Tag == dwarf.TagInlinedSubroutine {
			scope, err = t.readScope(u, e, scope)
		}
		scopes = append(scopes[:depth], scope)
		return err
	})
}

// readScope reads the entry of a function (section 3.3). It returns which scope
// that is.
func (t *Lines) readScope(u *unit, e *dwarf.Entry, parent int32) (int32, error) {
	s := scope{entry: e.Offset, parent: parent}
	if e.Tag == dwarf.TagSubprogram {
		s.parent = -1
	}
	s.file, _ = e.Val(dwarf.AttrCallFile).(int64)
	s.line, _ = e.Val(dwarf.AttrCallLine).(int64)
	ranges, err := t.ranges(u, e)
	if err != nil {
		return s.parent, err
	}
	// An inlined function without code of its own may still hold others that
	// have some: DWARF 2 cannot say that code is in several ranges.
	if len(ranges) == 0 && e.Tag == dwarf.TagSubprogram {
		return s.parent, nil
	}
	index := int32(len(u.scopes.list))
	for _, r := range ranges {
		u.scopes.ranges = append(u.scopes.ranges, scopeRange{lo: r[0], hi: r[1], scope: index})
	}
	u.scopes.list = append(u.scopes.list, s)
	return index, nil
}

// maxOrigins bounds how many references lead from a function to its name: from
// an inlined copy to the function to the declaration in its class, in practice.
const maxOrigins = 8

const attrMIPSLinkageName dwarf.Attr = 0x2007 // before DWARF 4

// function returns the name of the function at an entry: what the linker calls it, else
// what the source does.
func (t *Lines) function(entry dwarf.Offset) string {
	if name, ok := t.names[entry]; ok {
		return name
	}
	name, err := t.readName(entry)
	if err != nil {
		t.fail(err)
	}
	t.names[entry] = name
	return name
}

func (t *Lines) readName(entry dwarf.Offset) (string, error) {
	plain := ""
	for range maxOrigins {
		_, e, err := t.at(entry)
		if err != nil || e == nil {
			return plain, err
		}
		linkage, name := namesOf(e)
		if linkage != "" {
			return linkage, nil
		}
		plain = cmp.Or(plain, name)
		origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if origin, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				break
			}
		}
		entry = origin
	}
	return plain, nil
}

// namesOf returns what the linker calls a function, and what the source does; "" for what
// its entry does not say.
func namesOf(e *dwarf.Entry) (linkage, name string) {
	linkage, _ = e.Val(dwarf.AttrLinkageName).(string)
	if linkage == "" {
		linkage, _ = e.Val(attrMIPSLinkageName).(string)
	}
	name, _ = e.Val(dwarf.AttrName).(string)
	return linkage, name
}

// ranges returns the ranges of code that an entry covers, by its attributes
// DW_AT_low_pc, DW_AT_high_pc and DW_AT_ranges (section 2.17). Those of functions
// that the linker has dropped are left out.
func (t *Lines) ranges(u *unit, e *dwarf.Entry) ([][2]uint64, error) {
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
func (t *Lines) checkRanges(u *unit, offset any) error {
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
	t.sections.list[k].bytesRead += uint64(c.at)
	if c.bad() {
		return t.sections.fault(k, off, "a list of ranges without an end, or many that overlap")
	}
	return nil
}

// skipOldRanges reads a list of .debug_ranges (DWARF 4, section 2.17.3).
func skipOldRanges(u *unit, c *cursor) {
	for size := int(u.addrSize); !c.bad(); {
		if lo, hi := c.uint(size), c.uint(size); lo == 0 && hi == 0 {
			return
		}
	}
}

// rangeOperands are the operands of each kind of entry of .debug_rnglists (section 7.25): u
// is an integer, a an address.
var rangeOperands = [...]string{"", "u", "uu", "uu", "uu", "a", "aa", "au"}

// skipRanges reads a list of .debug_rnglists (section 2.17.3), up to an entry of kind 0 or
// of one that is not known, and returns that kind.
func skipRanges(u *unit, c *cursor) uint8 {
	for {
		kind := c.u8()
		if kind == 0 || kind >= uint8(len(rangeOperands)) {
			return kind
		}
		for _, operand := range rangeOperands[kind] {
			if operand == 'u' {
				c.skipLEB()
			} else {
				c.skip(uint64(u.addrSize))
			}
		}
	}
}
