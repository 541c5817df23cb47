package main

import (
	"bytes"
	"errors"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/replace"
)

// archive converts the members of an archive inside of it. If any of them cannot
// be converted, none is.
func (c *converter) archive(in *replace.Input, target string, r *result) error {
	a, w, err := openArchive(in)
	if err != nil {
		return err
	}
	r.isArchive()
	e := a.Edit()
	all := &outcome{target: target}
	failed := false
	err = eachMember(in, a, w, func(src *source) error {
		r.begin(src.name)
		change, err := c.member(src, a, all, r)
		switch {
		case errors.Is(err, replace.ErrChanged):
			return err
		case err != nil:
			failed = true
			if !errors.Is(err, errReported) {
				r.fail(err)
			}
		case change != nil && !failed:
			e.Replace(src.member, *change)
		}
		return nil
	})
	r.endMembers()
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
	return c.put(in, all, r)
}

// member converts a member in memory. The change is nil if it stays as it is.
func (c *converter) member(src *source, a *archive.Archive, all *outcome, r *result) (*archive.Change, error) {
	done := &outcome{}
	err := c.object(src, done, r)
	if err != nil || done.out == nil {
		return nil, err
	}
	all.lines.Write(done.lines.Bytes())
	change := &archive.Change{Output: done.out}
	if a.HasIndex() {
		if change.Before, err = archive.Symbols(done.object); err != nil {
			return nil, err
		}
		after, err := elfreloc.Open(done.out.Reader(src), done.out.Size, src.name)
		if err != nil {
			return nil, err
		}
		if change.After, err = archive.Symbols(after); err != nil {
			return nil, err
		}
	}
	return change, keepPadding(src, done)
}

// memberPadding is what LLVM's ar makes the size of a member a multiple of where it
// writes archives for Darwin, in bytes. The padding is counted as contents.
const memberPadding = 8

// padding returns what pads a member behind the end of the object in it.
func padding(src *source, o *elfreloc.Object) ([]byte, error) {
	n := src.size - o.End()
	if src.member == nil || n <= 0 || n >= memberPadding || src.size%memberPadding != 0 {
		return nil, nil
	}
	b, err := o.ReadFile(o.End(), n)
	if len(bytes.Trim(b, "\n")) > 0 {
		b = nil
	}
	return b, err
}

// keepPadding pads the new contents as the old ones were.
func keepPadding(src *source, done *outcome) error {
	old, err := padding(src, done.object)
	if err != nil || old == nil {
		return err
	}
	if n := -done.out.Size & (memberPadding - 1); n > 0 {
		done.out.Extents = append(done.out.Extents, elfreloc.Extent{Data: bytes.Repeat([]byte("\n"), int(n)), Len: n})
		done.out.Size += n
	}
	return nil
}
