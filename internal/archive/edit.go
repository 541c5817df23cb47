package archive

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"sdtconvert/elfreloc"
)

// Edit collects the members of an archive that change, and lays the new archive out: members keep their order, and all
// that headers say of them but for the size. The archive does not change before someone writes what is laid out, while
// changes are still to come (Take, End), but for what the archive begins with, which all changes have a say in (Begin).
type Edit struct {
	a       *Archive
	changes []change // in the order of the file
	layout  layout   // of what is behind the index
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

// change is what is kept of a Change.
type change struct {
	*Member
	size          int64 // of the new contents, bytes
	before, after []string
}

// Edit starts to collect changes.
func (a *Archive) Edit() *Edit {
	e := &Edit{a: a}
	e.layout = layout{a: a, at: e.Gap(), size: e.Gap()}
	return e
}

// Replace gives a member new contents. Members are replaced in the order of the
// file, each once.
func (e *Edit) Replace(m *Member, c Change) error {
	if e.a.coff {
		return fmt.Errorf("%s: has the tables that Windows' librarians write, which cannot be kept right; collect its members anew", e.a.Name)
	}
	e.addChange(m, c)
	w := &e.layout
	if err := w.header(m.Header, m.Start, c.Output.Size); err != nil {
		return err
	}
	w.at = m.Next
	for _, x := range c.Output.Extents {
		if x.Data == nil && x.From == nil {
			x.Src += m.Start
		}
		w.emit(x)
	}
	w.even()
	return nil
}

// addChange adds a change for the index alone.
func (e *Edit) addChange(m *Member, c Change) {
	if n := len(e.changes); n > 0 && e.changes[n-1].Header >= m.Header {
		panic("archive: members are replaced out of order")
	}
	e.changes = append(e.changes, change{m, c.Output.Size, c.Before, c.After})
}

// Gap is how long Begin's extents are if the index keeps its length.
func (e *Edit) Gap() int64 {
	if e.a.index == nil {
		return 0
	}
	return min(e.a.index.end+e.a.index.end&1, e.a.size)
}

// Begin lays out what the archive begins with: the index, and what is before it. The
// members have been replaced.
func (e *Edit) Begin() ([]elfreloc.Extent, error) {
	if e.a.index == nil {
		return nil, nil
	}
	w := &layout{a: e.a}
	err := w.writeIndex(e, e.moveHeaders)
	return w.extents, err
}

// Take returns what follows what was returned before, up to the last member that was
// replaced.
func (e *Edit) Take() []elfreloc.Extent { return e.layout.take() }

// End returns what follows, up to the end of the archive.
func (e *Edit) End() []elfreloc.Extent {
	e.layout.copy(e.a.size)
	return e.Take()
}

// layout is a part of a new archive while it is laid out.
type layout struct {
	a       *Archive
	extents []elfreloc.Extent
	size    int64 // of all that was laid out and of what is before it, if the index keeps its length
	at      int64 // offset in the old archive of what is to be copied next
}

func (w *layout) emit(x elfreloc.Extent) {
	if x.Len > 0 {
		w.extents = append(w.extents, x)
		w.size += x.Len
	}
}

// take returns the extents, and leaves none.
func (w *layout) take() []elfreloc.Extent {
	extents := w.extents
	w.extents = nil
	return extents
}

func (w *layout) data(b []byte) { w.emit(elfreloc.Extent{Data: b, Len: int64(len(b))}) }

// even pads a member to where the next header may stand.
func (w *layout) even() {
	if w.size&1 != 0 {
		w.data([]byte{'\n'})
	}
}

// copy copies what stands before an offset.
func (w *layout) copy(to int64) {
	w.emit(elfreloc.Extent{Src: w.at, Len: to - w.at})
	w.at = to
}

// header copies a header with another size, and the BSD name between the header and the
// contents.
func (w *layout) header(off, contents, size int64) error {
	w.copy(off)
	b, err := w.a.read(off, contents-off)
	if err != nil {
		return err
	}
	size += contents - off - headerSize
	if err := w.a.setSize(b, off, size); err != nil {
		return err
	}
	w.data(b)
	w.at = contents
	return nil
}

func (a *Archive) setSize(header []byte, off, size int64) error {
	const maxSize = 9_999_999_999 // ten digits
	if size > maxSize {
		return a.errorf(off, "would be %d bytes long, and a header has room for %d", size, int64(maxSize))
	}
	copy(header[sizeStart:sizeEnd], fmt.Sprintf("%-10d", size))
	return nil
}

// writeIndex lays the index out. setHeaders sets where the headers of the entries will be, for an index of so many
// bytes.
func (w *layout) writeIndex(e *Edit, setHeaders func(entries []entry, size int64) error) error {
	t, data, err := e.newIndex(setHeaders)
	if err != nil {
		return err
	}
	if err := w.header(t.header, t.start, int64(len(data))); err != nil {
		return err
	}
	if t.wide && !e.a.index.wide {
		copy(w.extents[len(w.extents)-1].Data[:nameEnd], wideName)
	}
	w.data(data)
	w.even()
	return nil
}

// wideName is the name of an index of 64 bits, as a header has it.
const wideName = "/SYM64/         "

// newIndex makes the index for the new archive.
func (e *Edit) newIndex(setHeaders func(entries []entry, size int64) error) (*table, []byte, error) {
	t, err := e.a.readIndex()
	if err != nil {
		return nil, nil, err
	}
	t.entries, t.renamed = e.update(t.entries)
	write := func() ([]byte, error) {
		// The size does not depend on the offsets, so the old ones do at first.
		data, err := t.write()
		if err != nil {
			return nil, err
		}
		placed := *t
		placed.entries = slices.Clone(t.entries)
		if err := setHeaders(placed.entries, int64(len(data))); err != nil {
			return nil, err
		}
		return placed.write()
	}
	data, err := write()
	if errors.Is(err, errNarrow) && !t.bsd {
		wide := *t.index
		wide.wide = true
		t.index, t.renamed = &wide, true
		data, err = write()
	}
	if err != nil {
		err = e.a.errorf(t.header, "the symbol index %w", err)
	}
	return t, data, err
}

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
	listed, hasEntries := map[entry]bool{}, map[*change]bool{} // what the index had of those that change
	for _, x := range entries {
		if c := byHeader[x.header]; c != nil {
			listed[x], hasEntries[c] = true, true
		}
	}
	added := map[*change]bool{}
	add := func(c *change) {
		if added[c] {
			return
		}
		added[c] = true
		defined := make(map[string]bool, len(c.before))
		for _, name := range c.before {
			defined[name] = true
		}
		for _, name := range c.after {
			if x := (entry{name, uint64(c.Header)}); listed[x] || !defined[name] {
				updated = append(updated, x)
			}
		}
	}
	passed := 0
	addBefore := func(header uint64) { // entries of members that had none
		for ; passed < len(e.changes) && uint64(e.changes[passed].Header) < header; passed++ {
			if c := &e.changes[passed]; c.renames() && !hasEntries[c] {
				add(c)
			}
		}
	}
	for _, x := range entries {
		addBefore(x.header)
		c := byHeader[x.header]
		if c != nil {
			add(c)
		}
		// What is in the index for an unknown reason stays.
		if c == nil || !slices.Contains(c.before, x.name) {
			updated = append(updated, x)
		}
	}
	addBefore(math.MaxUint64)
	return updated, true
}

// renames reports whether a change may be one of symbols.
func (c *change) renames() bool { return !slices.Equal(c.before, c.after) }

// moveHeaders moves the offsets to where members will be, for an index of so many bytes.
func (e *Edit) moveHeaders(entries []entry, size int64) error {
	x := e.a.index
	first := x.start + size + (x.start+size)&1 - e.Gap()
	grows := first
	ends := make([]int64, len(e.changes)) // by how much all up to each grow
	for i := range e.changes {
		c := &e.changes[i]
		end := c.Start + c.size
		grows += end + end&1 - c.Next
		ends[i] = grows
	}
	last, growth := uint64(0), int64(0) // a member's symbols stand together
	for i := range entries {
		x := &entries[i]
		if i > 0 && x.header == last {
			x.header = uint64(int64(last) + growth)
			continue
		}
		if x.header < uint64(e.a.first) || x.header >= uint64(e.a.size) {
			return fmt.Errorf("says that %q is at offset %#x, where no member is; run ranlib", x.name, x.header)
		}
		k, same := slices.BinarySearchFunc(e.changes, int64(x.header), func(c change, at int64) int { return cmp.Compare(c.Header, at) })
		if !same && k > 0 && int64(x.header) < e.changes[k-1].Next {
			return fmt.Errorf("says that %q is at offset %#x, within another member; run ranlib", x.name, x.header)
		}
		last, growth = x.header, first
		if k > 0 {
			growth = ends[k-1]
		}
		x.header = uint64(int64(x.header) + growth)
	}
	return nil
}
