package convert

import (
	"bytes"

	"sdtconvert/internal/input"
)

// archive converts the members of an archive. If any of them cannot be converted,
// none is.
func (c *Converter) archive(in *input.File, target string, r *Result) error {
	a, err := in.Archive(input.Options{FollowThin: c.FollowThin})
	if err != nil {
		return err
	}
	if !a.Thin {
		return c.regular(a, target, r)
	}
	inPlace, err := input.SamePath(target, in.Path)
	switch {
	case err != nil:
		return err
	case inPlace:
		return c.thin(a, r)
	}
	return c.collect(a, target, r)
}

// regular converts members inside of their archive.
func (c *Converter) regular(a *input.Archive, target string, r *Result) error {
	if a.File.Size() >= largeArchive {
		c.reserve()
	}
	e := a.Edit()
	var lines bytes.Buffer
	kept := int64(0)
	err := c.members(a, r, func(m *member) error {
		if m.output == nil {
			return nil
		}
		lines.Write(m.lines.Bytes())
		if w := m.weight(); kept+w <= c.keep {
			kept += w
		} else {
			m.change.Output = c.reconvertMember(m.src, m.output.Size).output()
		}
		e.Replace(m.src.Member, m.change)
		return nil
	})
	if err != nil {
		return err
	}
	return c.replace(a, target, e, &lines, r)
}
