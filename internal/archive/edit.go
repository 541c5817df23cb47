package archive

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"sdtconvert/elfreloc"
)

// Edit collects the members of an archive that change. The archive does not change
// before someone writes what Save lays out.
type Edit struct {
	a       *Archive
	changes []change // in the order of the file
}

// Change is what becomes of a member.
type Change struct {
	// Output is the new contents; its extents name bytes of the old ones, by their
	// offset in the member.
	Output *elfreloc.Output
	// Before and After are the symbols that the member has defined and will define,
	// in the order of its symbol table: see Symbols. They are not needed where
	// the archive has no index.
	Before, After []string
}

type change struct {
	*Member
	Change
	pad int64 // what follows the new contents, which is not counted as such
}

// Edit starts to collect changes.
func (a *Archive) Edit() *Edit { return &Edit{a: a} }

// Replace gives a member new contents. Members are replaced in the order of the
// file, each once.
func (e *Edit) Replace(m *Member, c Change) {
	if n := len(e.changes); n > 0 && e.changes[n-1].Header >= m.Header {
		panic("archive: members are replaced out of order")
	}
	e.changes = append(e.changes, change{Member: m, Change: c, pad: c.Output.Size & 1})
}

// Changed reports whether any member was replaced.
func (e *Edit) Changed() bool { return len(e.changes) > 0 }

// Save lays the new archive out. Members keep their order, and all that headers
// say of them but for the size.
func (e *Edit) Save() (*elfreloc.Output, error) {
	if e.a.coff {
		return nil, fmt.Errorf("%s: has the second index that Windows' librarians write, which cannot be kept right; collect its members anew", e.a.Name)
	}
	w := &layout{e: e}
	if e.a.index != nil {
		if err := w.writeIndex(); err != nil {
			return nil, err
		}
	}
	for i := range e.changes {
		if err := w.member(&e.changes[i]); err != nil {
			return nil, err
		}
	}
	w.copy(e.a.size)
	return &w.out, nil
}

// layout is a new archive while it is laid out.
type layout struct {
	e   *Edit
	out elfreloc.Output
	at  int64 // offset in the old archive of what is to be copied next
}

func (w *layout) emit(x elfreloc.Extent) {
	if x.Len > 0 {
		w.out.Extents = append(w.out.Extents, x)
		w.out.Size += x.Len
	}
}

func (w *layout) data(b []byte) { w.emit(elfreloc.Extent{Data: b, Len: int64(len(b))}) }

// copy copies what stands before an offset.
func (w *layout) copy(to int64) {
	w.emit(elfreloc.Extent{Src: w.at, Len: to - w.at})
	w.at = to
}

// header copies a header, with another size, and what stands between it and the
// contents: a name of BSD.
func (w *layout) header(off, contents, size int64) error {
	w.copy(off)
	b, err := w.e.a.read(off, contents-off)
	if err != nil {
		return err
	}
	size += contents - off - headerSize
	if err := w.e.a.setSize(b, off, size); err != nil {
		return err
	}
	w.data(b)
	w.at = contents
	return nil
}

func (a *Archive) setSize(header []byte, off, size int64) error {
	const most = 9_999_999_999 // ten digits
	if size > most {
		return a.errorf(off, "would be %d bytes long, and a header has room for %d", size, int64(most))
	}
	copy(header[sizeStart:sizeEnd], fmt.Sprintf("%-10d", size))
	return nil
}

// member lays out a member that changes.
func (w *layout) member(c *change) error {
	if err := w.header(c.Header, c.Start, c.Output.Size); err != nil {
		return err
	}
	for _, x := range c.Output.Extents {
		if x.Data == nil {
			x.Src += c.Start
		}
		w.emit(x)
	}
	if c.pad > 0 {
		w.data([]byte{'\n'})
	}
	w.at = c.Next
	return nil
}

// grows is by how much a change makes the archive longer.
func (c *change) grows() int64 {
	return c.Start - c.Header + c.Output.Size + c.pad - (c.Next - c.Header)
}

// writeIndex lays the index out. How long it is has a say in where the members are.
func (w *layout) writeIndex() error {
	a := w.e.a
	t, err := a.readIndex()
	if err != nil {
		return err
	}
	data, err := w.e.newIndex(t)
	if errors.Is(err, errNarrow) && !t.bsd {
		wide := *t.index
		wide.wide = true
		t.index = &wide
		data, err = w.e.newIndex(t)
	}
	if err != nil {
		return a.errorf(t.header, "the symbol index %w", err)
	}
	if err := w.header(t.header, t.start, int64(len(data))); err != nil {
		return err
	}
	if t.wide && !a.index.wide {
		copy(w.out.Extents[len(w.out.Extents)-1].Data[:nameEnd], fmt.Sprintf("%-16s", "/SYM64/"))
	}
	w.data(data)
	w.at = min(t.end+t.end&1, a.size)
	return nil
}

// newIndex makes the index for the new archive.
func (e *Edit) newIndex(old *table) ([]byte, error) {
	t := &table{index: old.index, order: old.order, raw: old.raw}
	t.entries = e.update(old.entries)
	// The size does not depend on the offsets, so they may be wrong at first.
	data, err := t.write()
	if err != nil {
		return nil, err
	}
	grows := old.start + int64(len(data)) - (old.end + old.end&1)
	if err := e.shift(t.entries, grows); err != nil {
		return nil, err
	}
	return t.write()
}

// update changes what members define. A symbol that was not in the index before,
// although it was defined, is left out again: whoever made the index had reasons.
func (e *Edit) update(entries []entry) []entry {
	byHeader := make(map[uint64]*change, len(e.changes))
	for i := range e.changes {
		if c := &e.changes[i]; !slices.Equal(c.Before, c.After) {
			byHeader[uint64(c.Header)] = c
		}
	}
	if len(byHeader) == 0 {
		return slices.Clone(entries)
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
		if !slices.Contains(c.Before, x.name) { // nobody knows why, so it stays
			u.entries = append(u.entries, x)
		}
	}
	u.before(e.changes, math.MaxUint64)
	return u.entries
}

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
		if c := &changes[u.passed]; !slices.Equal(c.Before, c.After) && u.listed[c] == nil {
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
	defined := make(map[string]bool, len(c.Before))
	for _, name := range c.Before {
		defined[name] = true
	}
	for _, name := range c.After {
		if u.listed[c][name] || !defined[name] {
			u.entries = append(u.entries, entry{name, uint64(c.Header)})
		}
	}
}

// shift moves the offsets to where members will be, when the index grows by so many
// bytes.
func (e *Edit) shift(entries []entry, grows int64) error {
	ends := make([]int64, len(e.changes)) // by how much all up to each grow
	for i := range e.changes {
		grows += e.changes[i].grows()
		ends[i] = grows
	}
	first := int64(0)
	if len(ends) > 0 {
		first = ends[0] - e.changes[0].grows()
	}
	for i := range entries {
		x := &entries[i]
		if x.header < uint64(e.a.first) || x.header >= uint64(e.a.size) {
			return fmt.Errorf("says that %q is at offset %#x, where no member is; run ranlib", x.name, x.header)
		}
		k, same := slices.BinarySearchFunc(e.changes, int64(x.header), func(c change, at int64) int { return cmp.Compare(c.Header, at) })
		if !same && k > 0 && int64(x.header) < e.changes[k-1].Next {
			return fmt.Errorf("says that %q is at offset %#x, within another member; run ranlib", x.name, x.header)
		}
		by := first
		if k > 0 {
			by = ends[k-1]
		}
		x.header = uint64(int64(x.header) + by)
	}
	return nil
}
