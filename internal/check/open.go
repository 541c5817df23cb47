package check

import (
	"errors"

	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
)

// Add checks a file, or all members of an archive. If one cannot be checked, the set has an error and is
// incomplete, and the others are checked.
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

// source checks a file or a member of an archive of any type.
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

// object checks an object or an image. After an error some rules were not applied.
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
