package convert

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/replace"
)

// convertArchive converts the members of an archive. If any of them cannot be converted,
// none is.
func (c *Converter) convertArchive(in *input.File, target string, r *Result) error {
	a, err := in.Archive(input.Options{FollowThin: c.FollowThin})
	if err != nil {
		return err
	}
	if !a.Thin {
		return c.convertRegular(a, target, r)
	}
	inPlace, err := input.SamePath(target, in.Path)
	switch {
	case err != nil:
		return err
	case inPlace:
		return c.convertThin(a, r)
	}
	return c.collect(a, target, r)
}

// convertRegular converts members inside of their archive.
func (c *Converter) convertRegular(a *input.Archive, target string, r *Result) error {
	e := a.Edit()
	return c.writeArchive(a, target, r, e, func(m *member) error {
		if m.output == nil {
			return nil
		}
		return e.Replace(m.src.Member, m.change)
	})
}

// writeArchive converts the members of an archive, has add lay out what becomes of each, and writes the new
// archive, or what stays as it is if add has laid out nothing.
func (c *Converter) writeArchive(a *input.Archive, target string, r *Result, l layout, add func(m *member) error) error {
	var lines bytes.Buffer
	s := &stream{Converter: c, layout: l, in: a.File, target: target}
	defer func() { s.file.Discard() }()
	changed := a.Thin
	err := c.convertMembers(a, r, func(m *member) error {
		lines.Write(m.lines.Bytes())
		if err := add(m); err != nil {
			return err
		}
		if extents := l.Take(); len(extents) > 0 {
			s.add(extents)
			changed = true
		}
		if !a.Thin || s.err != nil {
			return nil // the members end with it
		}
		return m.src.File.CheckUnchanged()
	}, s.failure)
	switch {
	case err != nil:
		return err
	case !changed:
		return c.write(a.File, target, nil)
	}
	if err := s.finish(); err != nil {
		return err
	}
	r.markWritten(lines.Bytes())
	return nil
}

// layout is a new archive that is laid out member by member, with its beginning last.
type layout interface {
	Gap() int64
	Take() []elfreloc.Extent
	Begin() ([]elfreloc.Extent, error)
	End() []elfreloc.Extent
}

// stream is a new archive that is written while it is laid out, from the first member that
// is added on. A dry run writes nothing.
type stream struct {
	*Converter
	layout
	in     *input.File
	target string
	file   *replace.Stream // nil before the first member
	err    error           // the first in writing it, after which nothing is written
}

// add writes what follows.
func (s *stream) add(extents []elfreloc.Extent) {
	if s.DryRun || s.err != nil {
		return
	}
	if s.file == nil {
		s.file, s.err = s.writer.Stream(s.target, s.in, s.Gap())
	}
	if s.err == nil {
		s.err = s.file.Add(extents)
	}
}

// failure returns the error that kept the archive from being written.
func (s *stream) failure() error { return s.withOutputHint(s.err, s.in, s.target) }

// finish writes the rest of the archive.
func (s *stream) finish() error {
	begin, err := s.Begin()
	if err != nil || s.DryRun {
		return err
	}
	if s.add(s.End()); s.err == nil {
		s.err = s.file.Finish(begin)
	}
	return s.failure()
}

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
			m.src.Unload()
			if m.err == nil && !failed {
				m.err = work(m)
			}
			if errors.Is(m.err, input.ErrChanged) {
				changed = m.err
				return
			}
			failed = failed || m.err != nil
			r.addConversion(m.conversion)
			if m.err != nil {
				r.addError(m.entry, m.err)
			}
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
