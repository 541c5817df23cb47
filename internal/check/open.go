package check

import (
	"errors"

	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
)

// Add looks at a file, or at all members of an archive. What cannot be looked at is an
// error of the set, and what is not found may be there; the rest is looked at.
func (s *Set) Add(path string) {
	if err := input.Each(path, input.Options{FollowThin: s.opts.FollowThin}, func(src *input.Source) error {
		if err := s.source(src); err != nil {
			s.fail(err)
		}
		return nil
	}); err != nil {
		s.fail(err)
	}
}

func (s *Set) fail(err error) {
	s.incomplete = true
	s.errors = append(s.errors, err)
	s.opts.Failed(err)
}

// source looks at a file or a member of an archive, which may be no object at all.
func (s *Set) source(src *input.Source) error {
	o, err := src.ELF(s.opts.Names)
	if err == nil {
		err = input.CheckLTO(o.Object, s.opts.Names)
	}
	var lto *input.LTOError
	switch {
	case errors.As(err, &lto):
		s.files = append(s.files, src.Name)
		s.findings = append(s.findings, Finding{Rule: LTOObject, File: src.Name, Message: lto.What, file: len(s.files) - 1})
	case errors.Is(err, input.ErrSkipped): // it holds nothing
	case err != nil:
		return err
	default:
		if err := s.object(o); err != nil {
			return err
		}
	}
	s.checked = append(s.checked, src.Name)
	return nil
}

// object looks at an object or an image. An error keeps the rules from being applied.
func (s *Set) object(o *input.Object) error {
	l := &fileChecker{Object: o, set: s}
	if o.Machine != nil {
		var err error
		if l.code, err = locate.NewCode(o, locate.Options{Lines: true, Warn: s.opts.Warn}); err != nil {
			return err
		}
		defer l.code.Close()
	}
	return l.check()
}
