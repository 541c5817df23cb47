package main

import (
	"bytes"
	"errors"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/parallel"
)

// archive converts the members of an archive. If any of them cannot be converted,
// none is.
func (c *converter) archive(in *input.File, target string, r *result) error {
	l, err := in.Archive(input.Options{FollowThin: c.follow})
	if err != nil {
		return err
	}
	r.isArchive()
	if !l.Thin {
		return c.regularArchive(l, target, r)
	}
	inPlace, err := input.SamePath(target, in.Path)
	switch {
	case err != nil:
		return err
	case inPlace:
		return c.thinArchive(l, r)
	}
	return c.collect(l, target, r)
}

// memberJobs is how many members each of so many files has worked on at once.
func memberJobs(jobs, files int) int { return max(1, jobs/max(1, files)) }

// members converts all members in memory, and hands on what has come of each, in
// their order. It reports whether any of them cannot be converted.
func (c *converter) members(l *input.Archive, r *result, work func(src *input.Source, done *outcome) error) (failed bool, err error) {
	type part struct {
		done outcome
		r    *result
		err  error
	}
	err = l.Batches(func(batch []*input.Source) error {
		parts := make([]part, len(batch))
		parallel.Each(len(batch), c.memberJobs, func(i int) {
			p := &parts[i]
			p.r = newResult(batch[i].Name, r.manifest)
			p.err = c.member(l, batch[i], &p.done, p.r)
		})
		for i := range parts {
			p := &parts[i]
			if p.err == nil && !failed {
				p.err = work(batch[i], &p.done)
			}
			switch {
			case p.err == nil:
			case errors.Is(p.err, input.ErrChanged):
				return p.err
			case !errors.Is(p.err, errReported):
				p.r.fail(p.err)
			}
			failed = failed || p.err != nil
			r.add(p.r)
		}
		return nil
	})
	return failed, err
}

// member converts a member in memory.
func (c *converter) member(l *input.Archive, src *input.Source, done *outcome, r *result) error {
	err := c.object(src, done, r)
	if err == nil && done.out != nil && !l.Thin {
		done.change, err = c.change(src, l.Archive, done)
	}
	return err
}

// keptMembers bounds what is kept in memory of an archive until it is written, in
// bytes. Members for which there is no room are converted a second time, when they
// are written.
const keptMembers = 16 << 20

// weight is how much memory a converted member takes, in bytes: that in which it was
// loaded, its new tables, and what they were made of.
func weight(src *input.Source, out *elfreloc.Output) int64 {
	const base, old = 4 << 10, 2
	n := base + src.Memory()
	for i := range out.Extents {
		n += (1 + old) * int64(len(out.Extents[i].Data))
	}
	return n
}

// regularArchive converts members inside of their archive.
func (c *converter) regularArchive(l *input.Archive, target string, r *result) error {
	e := l.Edit()
	all := &outcome{target: target}
	kept := int64(0)
	failed, err := c.members(l, r, func(src *input.Source, done *outcome) error {
		if done.out == nil {
			done.release()
			return nil
		}
		all.lines.Write(done.lines.Bytes())
		if w := weight(src, done.out); kept+w <= c.keep {
			kept += w
		} else {
			done.change.Output = c.memberLater(src, done.out.Size).output()
		}
		e.Replace(src.Member, done.change)
		return nil
	})
	if err != nil {
		return err
	}
	if failed {
		return errReported
	}
	if e.Changed() {
		if all.out, err = e.Save(); err != nil {
			return err
		}
	}
	return c.put(l.File, all, r)
}

// change is what becomes of a member that is converted, and of the symbols that it
// defines.
func (c *converter) change(src *input.Source, a *archive.Archive, done *outcome) (change archive.Change, err error) {
	change.Output = done.out
	if !a.HasIndex() {
		return change, nil
	}
	if change.Before, err = archive.Symbols(done.object.Object); err != nil {
		return change, err
	}
	after, err := elfreloc.Open(done.out.Reader(src), done.out.Size, src.Name)
	if err != nil {
		return change, err
	}
	if change.After, err = archive.Symbols(after); slices.Equal(change.Before, change.After) {
		change.Before, change.After = nil, nil
	}
	return change, err
}

// memberPadding is what LLVM's ar makes the size of a member a multiple of where it
// writes archives for Darwin, in bytes. The padding is counted as contents.
const memberPadding = 8

// padding returns what pads a member behind the end of the object in it.
func padding(s *input.Object) ([]byte, error) {
	n := s.Source.Size - s.End()
	if s.Source.Start == 0 || n <= 0 || n >= memberPadding || s.Source.Size%memberPadding != 0 {
		return nil, nil
	}
	b, err := s.ReadFile(s.End(), n)
	if len(bytes.Trim(b, "\n")) > 0 {
		b = nil
	}
	return b, err
}

// keepPadding pads the new contents as the old ones were.
func keepPadding(s *input.Object, out *elfreloc.Output) error {
	old, err := padding(s)
	if err != nil || old == nil {
		return err
	}
	if n := -out.Size & (memberPadding - 1); n > 0 {
		out.Extents = append(out.Extents, elfreloc.Extent{Data: bytes.Repeat([]byte("\n"), int(n)), Len: n})
		out.Size += n
	}
	return nil
}
