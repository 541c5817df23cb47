package main

import (
	"errors"
	"fmt"
	"os"

	"sdtconvert/image"
	"sdtconvert/internal/check"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/resolve"
)

// checkSettings are what the flags of check say.
type checkSettings struct {
	*flags
	options check.Options
	format  reportFormat
	allow   map[string]bool
	known   baseline
	write   string // the baseline to write, "" for none
}

// checkProbes is the command that finds out what is wrong with the probes of a
// build.
func (p *program) check(args []string) (bool, error) {
	s, err := parseCheck(args)
	if err != nil {
		return false, err
	}
	set := check.New(s.options)
	r := newCheckReport(p)
	warn := func(err error) { message.Warning(p.Stderr, err) }
	fail := func(err error) {
		message.Error(p.Stderr, err)
		r.errors = append(r.errors, err)
		set.Failed()
	}
	for _, name := range s.files {
		if err := s.file(set, name, warn, fail); err != nil {
			fail(err)
		}
	}
	r.files = set.Files()
	for _, f := range set.Findings() {
		if !s.allow[f.Rule.Name] {
			r.findings = append(r.findings, f)
		}
	}
	if s.write != "" {
		if err := p.writeBaseline(s.write, r); err != nil {
			return false, err
		}
	}
	s.known.apply(r, s.allow)
	failed := len(r.errors) > 0 || s.write == "" && r.count(check.Error) > 0
	return failed, s.format(r, p.Stdout)
}

func parseCheck(args []string) (*checkSettings, error) {
	s := &checkSettings{flags: &flags{FlagSet: newFlagSet("check")}, allow: map[string]bool{}}
	var require, allow, manifests []string
	var format, known string
	s.defineNames()
	s.Var(&repeated{to: &require}, "require", "")
	s.Var(&repeated{to: &allow}, "allow", "")
	s.Var(&repeated{to: &manifests}, "manifest", "")
	s.StringVar(&known, "baseline", "", "")
	s.StringVar(&s.write, "write-baseline", "", "")
	s.StringVar(&format, "format", "text", "")
	if err := parseFlags(s.FlagSet, args); err != nil {
		return nil, err
	}
	s.files = s.Args()
	if err := s.checkNames(); err != nil {
		return nil, err
	}
	layouts, err := listedLayouts("", s.section)
	if err != nil {
		return nil, usageError{err}
	}
	if s.files, err = input.Distinct(s.files); err != nil {
		return nil, err
	}
	s.options = check.Options{Names: s.patch.Names, ProbePrefix: s.patch.ProbePrefix, Layouts: layouts[0].Candidates()}
	for _, text := range require {
		t, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		s.options.Require = append(s.options.Require, check.Requirement{Text: text, Match: func(p check.Probe) bool {
			return t.match(&listedProbe{Provider: p.Provider, Module: p.Module, Function: p.Function, Name: p.Name})
		}})
	}
	for _, name := range allow {
		if check.RuleNamed(name) == nil {
			return nil, usagef("--allow %s is no rule; sdtconvert help check lists them", name)
		}
		s.allow[name] = true
	}
	if s.format = reportFormats[format]; s.format == nil {
		return nil, usagef("unknown format %q; known are text, json, sarif and github", format)
	}
	if s.options.Manifest, err = readManifests(manifests); err != nil {
		return nil, err
	}
	s.known, err = readBaseline(known)
	return s, err
}

// readManifests reads what --manifest names, nil for nothing.
func readManifests(names []string) (*check.Manifest, error) {
	if len(names) == 0 {
		return nil, nil
	}
	m := &check.Manifest{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = m.Read(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return m, nil
}

// file looks at a file, or at all members of an archive, and calls fail with what
// keeps it from looking at one of them.
func (s *checkSettings) file(set *check.Set, name string, warn, fail func(error)) error {
	in, err := input.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.Each(input.Options{FollowThin: s.follow}, func(src *input.Source) error {
		if err := s.add(set, src, warn); err != nil {
			fail(err)
		}
		return nil
	})
}

// add looks at an object or an image. Others may be members of archives.
func (s *checkSettings) add(set *check.Set, src *input.Source, warn func(error)) error {
	o, err := src.ELF(s.patch.Names)
	if err == nil {
		err = input.CheckLTO(o.Object, s.patch.Names)
	}
	var lto *input.LTOError
	switch {
	case errors.As(err, &lto):
		set.AddLTO(src.Name, lto.What)
		return nil
	case errors.Is(err, input.ErrPassedOver):
		set.AddClean(src.Name)
		return nil
	case err != nil:
		return err
	}
	u := unitOf(src, o.Object, lookup{source: true}, warn)
	defer u.Close()
	f := &check.File{Name: src.Name, Module: u.module, Object: o.Object, Machine: o.Machine}
	if o.Machine != nil {
		if u.image, err = image.Open(o.Object, o.Machine); err != nil {
			return err
		}
		f.Image = u.image
	}
	f.Locate = func() (*resolve.Table, *lines.Table, error) {
		err := u.readNames()
		return u.functions, u.source, err
	}
	return set.Add(f)
}
