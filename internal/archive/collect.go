package archive

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
)

// Collection is a regular archive that is made of a thin one and the files that are
// its members. It is laid out as an Edit is.
type Collection struct {
	edit    *Edit // of the thin archive, for its index
	members []collectedMember
	names   strings.Builder // of members, in the table of long names
	layout  layout          // of the members; its size is theirs
}

// collectedMember has the offsets of its header in the thin archive, and behind the
// tables of the collection.
type collectedMember struct{ old, new int64 }

// Resized returns a thin archive whose headers have the sizes of some of the files that it names, by path, or nil if they
// have them. GNU ar reads as many bytes of a file as its header says. The index stays as it is: conversions define
// nothing that others search for in it.
func (a *Archive) Resized(sizes map[string]int64) (*elfreloc.Output, error) {
	w, changed := &layout{a: a}, false
	for m, err := range a.Members() {
		if err != nil {
			return nil, err
		}
		n, ok := sizes[a.Path(m)]
		if !ok || n == m.Size {
			continue
		}
		changed = true
		if err := w.header(m.Header, m.Start, n); err != nil {
			return nil, err
		}
	}
	if !changed {
		return nil, nil
	}
	w.copy(a.size)
	return &elfreloc.Output{Extents: w.extents, Size: a.size}, nil
}

// Collect starts to make a regular archive of a thin one.
func (a *Archive) Collect() *Collection {
	return &Collection{edit: a.Edit(), layout: layout{a: a}}
}

// Add adds a member, in the order of the thin archive, under the name that it is to
// have. The extents of its output name bytes of no input but their own (From). What
// the thin archive's header says about date, owner and mode is kept.
func (c *Collection) Add(m *Member, name string, change Change) error {
	a := c.edit.a
	header, err := a.read(m.Header, headerSize)
	if err != nil {
		return err
	}
	if err := a.setSize(header, m.Header, change.Output.Size); err != nil {
		return err
	}
	field := name + "/"
	if len(field) > nameEnd {
		field = fmt.Sprintf("/%d", c.names.Len())
		c.names.WriteString(name + "/\n")
	}
	if len(field) > nameEnd {
		return a.errorf(m.Header, "there is no room for its name")
	}
	copy(header[:nameEnd], fmt.Sprintf("%-*s", nameEnd, field))
	c.members = append(c.members, collectedMember{old: m.Header, new: c.layout.size})
	c.layout.data(header)
	for _, x := range change.Output.Extents {
		c.layout.emit(x)
	}
	c.layout.even()
	if !slices.Equal(change.Before, change.After) {
		c.edit.addChange(m, change)
	}
	return nil
}

// Gap is how long Begin's extents are if the index keeps its length, and each member the
// name of its file.
func (c *Collection) Gap() int64 {
	a := c.edit.a
	names := int64(0)
	for m, err := range a.Members() {
		if err != nil {
			break // whoever reads the members meets it
		}
		if n := int64(len(filepath.Base(m.Name)) + len("/")); n > nameEnd {
			names += n + int64(len("\n"))
		}
	}
	index := int64(0)
	if a.index != nil {
		index = a.index.end - a.index.start
	}
	return c.tables(index, names)
}

// tables returns how long the tables are: an index and names of so many bytes.
func (c *Collection) tables(index, names int64) int64 {
	n := int64(len(magic))
	if c.edit.a.index != nil {
		n += headerSize + index + index&1
	}
	if names > 0 {
		n += headerSize + names + names&1
	}
	return n
}

// Begin lays out what the archive begins with: its tables. The members have been added.
func (c *Collection) Begin() ([]elfreloc.Extent, error) {
	w := &layout{a: c.edit.a}
	w.data([]byte(magic))
	if c.edit.a.index != nil {
		w.at = c.edit.a.index.header
		if err := w.writeIndex(c.edit, c.setHeaders); err != nil {
			return nil, err
		}
	}
	if c.names.Len() > 0 {
		// Only its size is filled in.
		w.data(fmt.Appendf(nil, "%-*s%-*d%s", sizeStart, "//", sizeEnd-sizeStart, c.names.Len()+c.names.Len()&1, trailer))
		w.data([]byte(c.names.String()))
		w.even()
	}
	return w.extents, nil
}

// Take returns what follows what was returned before, up to the last member that was added.
func (c *Collection) Take() []elfreloc.Extent { return c.layout.take() }

// End returns what follows the last member: nothing.
func (c *Collection) End() []elfreloc.Extent { return c.Take() }

// setHeaders sets where the headers are, behind an index of so many bytes.
func (c *Collection) setHeaders(entries []entry, size int64) error {
	first := c.tables(size, int64(c.names.Len()))
	for i := range entries {
		x := &entries[i]
		k, found := slices.BinarySearchFunc(c.members, x.header, func(m collectedMember, at uint64) int { return cmp.Compare(uint64(m.old), at) })
		if !found {
			return fmt.Errorf("says that %q is at offset %#x, where no member is; run ranlib", x.name, x.header)
		}
		x.header = uint64(first + c.members[k].new)
	}
	return nil
}
