package lines

import (
	"cmp"
	"fmt"
	"slices"

	"sdtconvert/internal/debuginfo/cursor"
)

// scopes are the functions of a unit that have code, and those that were inlined
// there.
type scopes struct {
	list   []scope
	ranges []scopeRange // by address, and an outer one before an inner one
}

type scope struct {
	entry      uint32 // of the function, from the start of the unit
	parent     int32  // the one that it was inlined into, -1 if it is not inlined
	file, line uint32 // of the call, in the unit's line table
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
func (t *Table) Inlines(section int, off uint64) []Frame {
	u, p, r, address := t.find(section, off)
	if u == nil {
		return nil
	}
	var frames []Frame
	file, line := uint64(r.file), r.line
	s := t.scopesOf(u)
	for i := s.at(address); i >= 0 && len(frames) < maxDepth; i = s.list[i].parent {
		frames = append(frames, t.frame(p, t.function(u, s.list[i].entry), file, line))
		file, line = uint64(s.list[i].file), s.list[i].line
	}
	if frames == nil && line != 0 {
		frames = []Frame{t.frame(p, "", file, line)}
	}
	return frames
}

func (t *Table) frame(p *program, function string, file uint64, line uint32) Frame {
	f := Frame{Function: function}
	if line != 0 {
		f.File, f.Line = t.fileName(p, file), int(line)
	}
	return f
}

// at returns the innermost scope of an address, -1 for none.
func (s *scopes) at(address uint64) int32 {
	lo, hi := 0, len(s.ranges)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); s.ranges[mid].lo <= address {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	i := int32(lo - 1)
	for depth := 0; i >= 0 && depth < maxDepth; depth++ {
		if address < s.ranges[i].hi {
			return s.ranges[i].scope
		}
		i = s.ranges[i].outer
	}
	return -1
}

func (t *Table) scopesOf(u *unit) *scopes {
	if u.scopes == nil {
		u.scopes = &scopes{}
		if err := t.readScopes(u); err != nil {
			t.fail(err)
		}
		u.scopes.nest()
	}
	return u.scopes
}

// nest sorts the ranges and finds which lies in which.
func (s *scopes) nest() {
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
}

// readScopes reads the entries of a unit from first to last (section 2.3): no
// reference is followed, so it comes to an end.
func (t *Table) readScopes(u *unit) error {
	table, err := t.abbrevTable(u.abbrevs, u.params)
	if err != nil {
		return err
	}
	body, err := t.load(u)
	if err != nil {
		return err
	}
	c := t.cursor(body)
	c.At = int(u.first)
	var inside []int32 // the scope of each entry that is open
	current := int32(-1)
	for c.At < len(c.Data) {
		entry := c.At
		code := c.Uleb()
		if code == 0 && !c.Bad() {
			if n := len(inside); n > 0 {
				current, inside = inside[n-1], inside[:n-1]
			}
			continue
		}
		a := table.get(code)
		if a == nil || c.Bad() {
			return t.unitError(u, fmt.Sprintf("entry %#x has no abbreviation %d", entry, code))
		}
		here := current
		switch {
		case a.tag == tagSubprogram || a.tag == tagInlinedSubroutine:
			if here, err = t.readScope(u, &c, a, uint32(entry), current); err != nil {
				return err
			}
		case a.size >= 0:
			c.Skip(uint64(a.size))
		default:
			for _, at := range a.attrs {
				u.skipValue(&c, at)
			}
		}
		if c.Bad() {
			return t.unitError(u, fmt.Sprintf("entry %#x is cut off, or of a form that is not known", entry))
		}
		if a.children {
			inside, current = append(inside, current), here
		}
	}
	return nil
}

// readScope reads the entry of a function (section 3.3). It returns which scope
// that is.
func (t *Table) readScope(u *unit, c *cursor.Cursor, a *abbrev, entry uint32, parent int32) (int32, error) {
	s := scope{entry: entry, parent: parent}
	if a.tag == tagSubprogram {
		s.parent = -1
	}
	var low, high, ranges value
	for _, at := range a.attrs {
		switch at.name {
		case atLowPC:
			low = u.value(c, at)
		case atHighPC:
			high = u.value(c, at)
		case atRanges:
			ranges = u.value(c, at)
		case atCallFile:
			s.file = clamp(u.value(c, at).u)
		case atCallLine:
			s.line = clamp(u.value(c, at).u)
		default:
			u.skipValue(c, at)
		}
	}
	if c.Bad() {
		return parent, nil
	}
	index := int32(len(u.scopes.list))
	before := len(u.scopes.ranges)
	err := t.ranges(u, low, high, ranges, func(lo, hi uint64) {
		u.scopes.ranges = append(u.scopes.ranges, scopeRange{lo: lo, hi: hi, scope: index})
	})
	if err != nil {
		u.scopes.ranges = u.scopes.ranges[:before] // of a scope that is not in the list
		return s.parent, err
	}
	// An inlined function without code of its own may still hold others that
	// have some: DWARF 2 cannot say that code is in several ranges.
	if len(u.scopes.ranges) == before && a.tag == tagSubprogram {
		return s.parent, nil
	}
	u.scopes.list = append(u.scopes.list, s)
	return index, nil
}
