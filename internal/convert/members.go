package convert

import (
	"bytes"
	"errors"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/parallel"
)

// errMember says that a member cannot be converted. The result has the reason.
var errMember = errors.New("a member cannot be converted")

// member is a member of an archive in memory.
type member struct {
	*conversion
	src    *input.Source
	change archive.Change // of a regular archive, where there is an output
}

// members converts all members in memory, one batch after the other, and hands on those
// that can be converted in their order, until one cannot. That is errMember.
func (c *Converter) members(a *input.Archive, r *Result, work func(m *member) error) error {
	failed := false
	err := a.Batches(func(batch []*input.Source) error {
		members := make([]member, len(batch))
		parallel.Each(len(batch), c.memberJobs, func(i int) { members[i] = c.member(a, batch[i]) })
		for i := range members {
			m := &members[i]
			if m.err == nil && !failed {
				m.err = work(m)
			}
			if errors.Is(m.err, input.ErrChanged) {
				return m.err
			}
			failed = failed || m.err != nil
			r.member(m.conversion)
		}
		return nil
	})
	if err == nil && failed {
		err = errMember
	}
	return err
}

// member converts a member in memory.
func (c *Converter) member(a *input.Archive, src *input.Source) member {
	m := member{conversion: c.source(src, nil), src: src}
	if m.err == nil && m.output != nil && !a.Thin {
		m.change, m.err = change(a, m.src, m.object, m.output)
	}
	return m
}

// change returns what becomes of a member that is converted, and of the symbols that it
// defines.
func change(a *input.Archive, src *input.Source, o *input.Object, out *elfreloc.Output) (change archive.Change, err error) {
	change.Output = out
	if !a.HasIndex() {
		return change, nil
	}
	if change.Before, err = archive.Symbols(o.Object); err != nil {
		return change, err
	}
	after, err := elfreloc.Open(out.Reader(src), out.Size, src.Name)
	if err != nil {
		return change, err
	}
	if change.After, err = archive.Symbols(after); slices.Equal(change.Before, change.After) {
		change.Before, change.After = nil, nil
	}
	return change, err
}

// keptMembers bounds what is kept in memory of an archive until it is written, in
// bytes. Members beyond that are converted a second time, when they
// are written.
const keptMembers = 16 << 20

// weight returns how much memory a converted member takes, in bytes: that in which it was
// loaded, its new tables, and what they were made of.
func (m *member) weight() int64 {
	const base, old = 4 << 10, 2
	n := base + m.src.Memory()
	for i := range m.output.Extents {
		if x := &m.output.Extents[i]; x.Data != nil || x.From != nil {
			n += (1 + old) * x.Len
		}
	}
	return n
}

// replace writes an archive whose members are decided on.
func (c *Converter) replace(a *input.Archive, target string, e *archive.Edit, lines *bytes.Buffer, r *Result) error {
	var out *elfreloc.Output
	if e.Changed() {
		var err error
		if out, err = e.Save(); err != nil {
			return err
		}
	}
	if err := c.write(a.File, target, out, nil); err != nil {
		return err
	}
	r.written(lines.Bytes())
	return nil
}
