package archive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
)

// Collection is a regular archive that is made of a thin one and the files that are
// its members.
type Collection struct {
	edit    *Edit // of the thin archive, for its index
	members []collected
	names   strings.Builder // of members, in the table of long names
}

type collected struct {
	old    int64 // offset of the header in the thin archive
	new    int64 // and in the collection, from the first member on
	header []byte
	output *elfreloc.Output
}

// Collect starts to make a regular archive of a thin one.
func (a *Archive) Collect() *Collection { return &Collection{edit: a.Edit()} }

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
	new := collected{old: m.Header, header: header, output: change.Output}
	if n := len(c.members); n > 0 {
		new.new = c.members[n-1].end()
	}
	c.members = append(c.members, new)
	if !slices.Equal(change.Before, change.After) {
		c.edit.Replace(m, change)
	}
	return nil
}

// end returns where the next header stands.
func (m *collected) end() int64 {
	end := m.new + headerSize + m.output.Size
	return end + end&1
}

// Save lays the archive out.
func (c *Collection) Save() (*elfreloc.Output, error) {
	w := &layout{e: c.edit}
	w.data([]byte(magic))
	if a := c.edit.a; a.index != nil {
		if err := c.writeIndex(w); err != nil {
			return nil, err
		}
	}
	if c.names.Len() > 0 {
		w.data([]byte(c.namesHeader()))
		w.data([]byte(c.names.String()))
		w.even()
	}
	for i := range c.members {
		m := &c.members[i]
		w.data(m.header)
		for _, x := range m.output.Extents {
			w.emit(x)
		}
		w.even()
	}
	return &w.out, nil
}

// namesHeader returns the header of the table of long names: only its size is filled in.
func (c *Collection) namesHeader() string {
	return fmt.Sprintf("%-*s%-*d%s", sizeStart, "//", sizeEnd-sizeStart, c.names.Len()+c.names.Len()&1, trailer)
}

func (c *Collection) writeIndex(w *layout) error {
	a := c.edit.a
	t, data, err := c.edit.newIndex(c.place)
	if err != nil {
		return err
	}
	header, err := a.read(t.header, headerSize)
	if err != nil {
		return err
	}
	if err := a.setSize(header, t.header, int64(len(data))); err != nil {
		return err
	}
	if t.wide {
		copy(header, wideName)
	}
	w.data(header)
	w.data(data)
	w.even()
	return nil
}

// place returns where the headers are, behind an index of so many bytes.
func (c *Collection) place(entries []entry, size int64) error {
	first := int64(len(magic)) + headerSize + size
	first += first & 1
	if n := int64(c.names.Len()); n > 0 {
		first += headerSize + n + n&1
	}
	for i := range entries {
		x := &entries[i]
		k, found := slices.BinarySearchFunc(c.members, x.header, func(m collected, at uint64) int { return cmp.Compare(uint64(m.old), at) })
		if !found {
			return fmt.Errorf("says that %q is at offset %#x, where no member is; run ranlib", x.name, x.header)
		}
		x.header = uint64(first + c.members[k].new)
	}
	return nil
}
