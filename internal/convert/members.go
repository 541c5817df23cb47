package convert

import (
	"cmp"
	"errors"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/parallel"
)

// errMemberReported says that a member cannot be converted. The result has the reason.
var errMemberReported = errors.New("a member cannot be converted")

// member is a member of an archive in memory.
type member struct {
	*conversion
	src    *input.Source
	change archive.Change // of a regular archive, where there is an output
}

// convertMembers converts all members in memory, and hands those that can be converted to work in their order, until one
// cannot be: then it returns errMemberReported. It calls failure behind each batch, and stops at its error.
func (c *Converter) convertMembers(a *input.Archive, r *Result, work func(m *member) error, failure func() error) error {
	failed := false
	err := a.Batches(func(batch []*input.Source) error {
		var changed error
		parallel.InOrder(len(batch), c.memberJobs, func(i int) *member { return c.convertMember(a, batch[i]) }, func(_ int, m *member) {
			if m.err == nil && !failed {
				m.err = work(m)
			}
			if errors.Is(m.err, input.ErrChanged) {
				changed = m.err
				return
			}
			failed = failed || m.err != nil
			r.addMember(m.conversion)
		})
		return cmp.Or(changed, failure())
	})
	if err == nil && failed {
		err = errMemberReported
	}
	return err
}

// convertMember converts a member in memory.
func (c *Converter) convertMember(a *input.Archive, src *input.Source) *member {
	m := &member{conversion: c.convertSource(src), src: src}
	if m.err == nil && m.output != nil && !a.Thin {
		m.change, m.err = memberChange(a, m.src, m.object, m.output)
	}
	return m
}

// memberChange returns what becomes of a member that is converted, and of the symbols that it
// defines.
func memberChange(a *input.Archive, src *input.Source, o *input.Object, out *elfreloc.Output) (change archive.Change, err error) {
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
