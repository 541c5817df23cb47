package convert

import (
	"bytes"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
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
	var lines bytes.Buffer
	s := c.stream(a.File, target, e)
	defer s.discard()
	err := c.convertMembers(a, r, func(m *member) error {
		if m.output == nil {
			return nil
		}
		lines.Write(m.lines.Bytes())
		if err := e.Replace(m.src.Member, m.change); err != nil {
			return err
		}
		s.add(e.Take())
		return nil
	}, s.failure)
	switch {
	case err != nil:
		return err
	case !e.Changed():
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

func (c *Converter) stream(in *input.File, target string, l layout) *stream {
	return &stream{Converter: c, layout: l, in: in, target: target}
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

func (s *stream) discard() { s.file.Discard() }
