package lines

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
func (t *Table) Inlines(section int, off uint64) []Frame {
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

func (t *Table) frame(p *program, function string, file, line int64) Frame {
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
func (t *Table) readScope(u *unit, e *dwarf.Entry, parent int32) (int32, error) {
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
