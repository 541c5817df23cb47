package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"sdtconvert/internal/check"
	"sdtconvert/internal/check/report"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
)

// checkSettings are what the flags of check say.
type checkSettings struct {
	*flags
	options check.Options
	format  report.Format
	allowed []string // rules
	known   report.Baseline
	write   string // the baseline to write, "" for none
}

// check is the command that finds out what is wrong with the probes of a build.
// Its exit status tells what it has found from what has kept it from looking.
func (p *program) check(args []string) (bool, error) {
	s, err := parseCheck(args)
	if err != nil {
		return false, checkError(err)
	}
	r := p.runCheck(s)
	if s.write != "" {
		data, err := r.Baseline()
		if err != nil {
			return false, checkError(fmt.Errorf("%s: %w", s.write, err))
		}
		if err := p.files.New(s.write, data); err != nil {
			return false, checkError(err)
		}
	}
	s.known.Apply(r)
	if err := s.format.Write(p.Stdout, r); err != nil || len(r.Errors) > 0 {
		return false, checkError(err)
	}
	return s.write == "" && r.Count(check.Error) > 0, nil
}

// checkError is an error that a check ends with, nil for one that was told: it cannot
// say that the build is as it should be, nor that it is not.
func checkError(err error) error {
	if errors.As(err, new(usageError)) || errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return &statusError{exitNotChecked, err}
}

// runCheck looks at all files. What cannot be looked at is told at once.
func (p *program) runCheck(s *checkSettings) *report.Report {
	s.options.Warn = func(err error) { message.Warning(p.Stderr, err) }
	s.options.Failed = func(err error) { message.Error(p.Stderr, err) }
	set := check.New(s.options)
	for _, name := range s.files {
		set.Add(name)
	}
	r := &report.Report{Allowed: s.allowed, Checkout: p.Getenv("GITHUB_WORKSPACE"), Release: release}
	if folder, err := os.Getwd(); err == nil {
		r.Folder = folder
	}
	r.Add(set)
	return r
}

// checkFlags are the values of the flags of check, before they are checked.
type checkFlags struct {
	require, manifests []string
	requireNotes       bool
	format, baseline   string
}

// newCheckFlags defines the flags of check.
func newCheckFlags() (*checkSettings, *checkFlags) {
	s, values := &checkSettings{flags: &flags{FlagSet: newFlagSet("check")}}, &checkFlags{}
	s.defineNames()
	s.Var(&repeated{to: &values.require}, "require", "")
	s.BoolVar(&values.requireNotes, "require-notes", false, "")
	s.Var(&repeated{to: &s.allowed}, "allow", "")
	s.Var(&repeated{to: &values.manifests}, "manifest", "")
	s.StringVar(&values.baseline, "baseline", "", "")
	s.StringVar(&s.write, "write-baseline", "", "")
	s.StringVar(&values.format, "format", report.Default, "")
	return s, values
}

func parseCheck(args []string) (*checkSettings, error) {
	s, values := newCheckFlags()
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
	s.options = check.Options{
		Names: s.patch.Names, ProbePrefix: s.patch.ProbePrefix, Layouts: append(layouts[0].Candidates(), linkerset.Layout{Format: linkerset.Tracepoints}), FollowThin: s.follow,
		RequireNotes: values.requireNotes,
	}
	if s.options.Require, err = readRequirements(values.require); err != nil {
		return nil, err
	}
	for _, name := range s.allowed {
		if check.RuleNamed(name) == nil {
			return nil, usagef("--allow %s is no rule; sdtconvert help check lists them", name)
		}
	}
	if s.format = report.Named(values.format); s.format == nil {
		return nil, usagef("unknown format %q; known are %s", values.format, report.Names())
	}
	if s.options.Manifest, err = readManifests(values.manifests); err != nil {
		return nil, err
	}
	s.known, err = report.ReadBaseline(values.baseline)
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
