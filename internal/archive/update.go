package archive

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// update changes what members define. A symbol that was not in the index before,
// although it was defined, is left out again: the index's maker had reasons.
func (e *Edit) update(entries []entry) (updated []entry, renamed bool) {
	byHeader := make(map[uint64]*change, len(e.changes))
	for i := range e.changes {
		if c := &e.changes[i]; c.renames() {
			byHeader[uint64(c.Header)] = c
		}
	}
	if len(byHeader) == 0 {
		return entries, false
	}
	listed := make(map[*change]map[string]bool, len(byHeader))
	for _, x := range entries {
		if c := byHeader[x.header]; c != nil {
			if listed[c] == nil {
				listed[c] = make(map[string]bool)
			}
			listed[c][x.name] = true
		}
	}
	u := &updater{listed: listed, done: make(map[*change]bool)}
	for _, x := range entries {
		c := byHeader[x.header]
		if c == nil {
			u.before(e.changes, x.header)
			u.entries = append(u.entries, x)
			continue
		}
		u.before(e.changes, x.header)
		u.add(c)
		if !c.beforeUnknown && !slices.Contains(c.before, x.name) { // for an unknown reason, so it stays
			u.entries = append(u.entries, x)
		}
	}
	u.before(e.changes, math.MaxUint64)
	return u.entries, true
}

// renames reports whether a change may be one of symbols.
func (c *change) renames() bool { return c.beforeUnknown || !slices.Equal(c.before, c.after) }

// updater makes the new list of symbols.
type updater struct {
	entries []entry
	listed  map[*change]map[string]bool // what the index had of each that changes
	done    map[*change]bool
	passed  int // changes that stand before the member that is next
}

// before adds the symbols of members that stand before another and had none.
func (u *updater) before(changes []change, header uint64) {
	for ; u.passed < len(changes) && uint64(changes[u.passed].Header) < header; u.passed++ {
		if c := &changes[u.passed]; c.renames() && u.listed[c] == nil {
			u.add(c)
		}
	}
}

// add adds the symbols of a member, once.
func (u *updater) add(c *change) {
	if u.done[c] {
		return
	}
	u.done[c] = true
	defined := make(map[string]bool, len(c.before))
	for _, name := range c.before {
		defined[name] = true
	}
	for _, name := range c.after {
		if c.beforeUnknown || u.listed[c][name] || !defined[name] {
			u.entries = append(u.entries, entry{name, uint64(c.Header)})
		}
	}
}

// moveHeaders moves the offsets to where members will be, for an index of so many bytes.
func (e *Edit) moveHeaders(entries []entry, size int64) error {
	x := e.a.index
	first := x.start + size + (x.start+size)&1 - e.Gap()
	grows := first
	ends := make([]int64, len(e.changes)) // by how much all up to each grow
	for i := range e.changes {
		grows += e.grows(&e.changes[i])
		ends[i] = grows
	}
	last, by := uint64(0), int64(0) // a member's symbols stand together
	for i := range entries {
		x := &entries[i]
		if i > 0 && x.header == last {
			x.header = uint64(int64(last) + by)
			continue
		}
		if x.header < uint64(e.a.first) || x.header >= uint64(e.a.size) {
			return fmt.Errorf("says that %q is at offset %#x, where no member is; run ranlib", x.name, x.header)
		}
		k, same := slices.BinarySearchFunc(e.changes, int64(x.header), func(c change, at int64) int { return cmp.Compare(c.Header, at) })
		if !same && k > 0 && int64(x.header) < e.changes[k-1].Next {
			return fmt.Errorf("says that %q is at offset %#x, within another member; run ranlib", x.name, x.header)
		}
		last, by = x.header, first
		if k > 0 {
			by = ends[k-1]
		}
		x.header = uint64(int64(x.header) + by)
	}
	return nil
}
