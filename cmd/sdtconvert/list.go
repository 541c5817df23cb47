package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"sdtconvert/image"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/linkerset"
)

// listSettings are what the flags of list say.
type listSettings struct {
	lookup
	verbose bool
	json    bool
	pid     int
	follow  bool
	prefix  string
	layouts []linkerset.Layout
	filter  filter
	files   []string
}

// lookup says how addresses are shown.
type lookup struct {
	demangle, inlines bool
	source            bool // wants file and line
}

func (l *lookup) define(f *pflag.FlagSet) {
	f.BoolVar(&l.demangle, "demangle", false, "")
	f.BoolVar(&l.inlines, "inlines", false, "")
}

// list is the command that lists the probes of images and processes.
func (p *program) list(args []string) (bool, error) {
	s, err := parseList(args)
	if err != nil {
		return false, err
	}
	out := &listPrinter{w: p.Stdout, stderr: p.Stderr, listSettings: s, listings: []*listing{}}
	if s.pid != 0 {
		err := s.listProcess(out)
		return out.close(err)
	}
	for _, file := range s.files {
		s.listFile(file, out.warn, out.listing)
	}
	return out.close(nil)
}

func parseList(args []string) (*listSettings, error) {
	s := &listSettings{}
	var format, section string
	f := newFlagSet("list")
	s.lookup.define(f)
	f.BoolVarP(&s.verbose, "verbose", "v", false, "")
	f.BoolVar(&s.json, "json", false, "")
	f.IntVar(&s.pid, "pid", 0, "")
	f.StringVarP(&s.filter.all.provider, "provider", "P", "", "")
	f.StringVarP(&s.filter.all.module, "module", "m", "", "")
	f.StringVarP(&s.filter.all.function, "function", "f", "", "")
	f.StringVarP(&s.filter.all.name, "name", "n", "", "")
	f.StringVar(&format, "layout", "", "")
	f.StringVar(&section, "section", "", "")
	f.StringVar(&s.prefix, "probe-object-prefix", "sdt_", "")
	defineFollow(f, &s.follow)
	if err := parseFlags(f, args); err != nil {
		return nil, err
	}
	if err := s.filter.all.compile(); err != nil {
		return nil, err
	}
	var err error
	if s.filter.alternatives, s.files, err = splitProbes(f.Args()); err != nil {
		return nil, err
	}
	if s.layouts, err = listedLayouts(format, section); err != nil {
		return nil, usageError{err}
	}
	s.source = s.verbose || s.json
	switch {
	case f.Changed("pid") && s.pid <= 0:
		return nil, usagef("--pid %d is no process", s.pid)
	case f.Changed("pid") && len(s.files) > 0:
		return nil, usagef("--pid takes no files, and %s is given", s.files[0])
	case !f.Changed("pid") && len(s.files) == 0:
		return nil, usagef("no file is given")
	case s.json && s.verbose:
		return nil, usagef("--json and -v exclude each other")
	case s.prefix == "":
		return nil, usagef("the prefix of probe objects is empty")
	case s.inlines && !s.source:
		return nil, usagef("--inlines is of no use without -v or --json")
	}
	return s, nil
}

// listedLayouts are those that --layout and --section ask for; without --layout
// all of them.
func listedLayouts(format, section string) ([]linkerset.Layout, error) {
	if format == "" {
		l, err := linkerset.ParseLayout(linkerset.Pairs.String(), section)
		return l.All(), err
	}
	l, err := linkerset.ParseLayout(format, section)
	return []linkerset.Layout{l}, err
}

// listFile lists an object or a linked image, or the members of an archive that
// hold records.
func (s *listSettings) listFile(file string, warn func(error), done func(*listing)) {
	fail := func(err error) {
		done(&listing{Image: file, Probes: []*listedProbe{}, Errors: []string{err.Error()}})
	}
	in, err := input.Open(file)
	if err != nil {
		fail(err)
		return
	}
	defer in.Close()
	found := false
	err = in.Each(input.Options{FollowThin: s.follow}, func(src *input.Source) error {
		out, err := s.listSource(src, warn)
		if src.Member != nil && errors.Is(err, errNoProbes) {
			return nil
		}
		if err != nil {
			out.Errors = append(out.Errors, err.Error())
		}
		found = true
		done(out)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", file, errNoProbes)
	}
	if err != nil {
		fail(err)
	}
}

// listSource lists a file or a member of an archive.
func (s *listSettings) listSource(src *input.Source, warn func(error)) (*listing, error) {
	out := &listing{Image: src.Name, Probes: []*listedProbe{}}
	if typ, err := src.Type(); err == nil && typ != filetype.ELF && src.Member != nil {
		return out, errNoProbes
	}
	u, err := newUnit(src, s.lookup, warn)
	if err != nil {
		return out, err
	}
	defer u.Close()
	return out, s.listUnit(u, u.image, out)
}

// listUnit lists what a unit holds in a memory.
func (s *listSettings) listUnit(u *unit, memory image.Image, out *listing) error {
	out.Machine = u.image.Machine().Traits().Name
	l := &lister{
		im: memory, unit: u, probes: linkerset.NewProbes(memory, s.prefix),
		layouts: s.layouts, filter: &s.filter, out: out,
	}
	found, err := l.read()
	switch {
	case err != nil:
		return err
	case !found:
		return l.errNoRecords()
	}
	return nil
}

// listProcess lists all that is loaded in a process and holds records.
func (s *listSettings) listProcess(p *listPrinter) error {
	process, err := image.OpenProcess(s.pid)
	if err != nil {
		return err
	}
	defer process.Close()
	found := false
	for _, m := range process.Modules {
		if m.Note != "" {
			p.warn(fmt.Errorf("%s: %s: %s", process.Name(), m.Path, m.Note))
		}
		if m.Image == nil {
			continue
		}
		out := &listing{Image: m.Path, Probes: []*listedProbe{}}
		u := moduleUnit(m, s.lookup, p.warn)
		err := s.listUnit(u, moduleView{process, m}, out)
		u.Close()
		if errors.Is(err, errNoProbes) {
			continue
		}
		if err != nil {
			out.Errors = append(out.Errors, err.Error())
		}
		found = true
		p.listing(out)
	}
	if !found {
		return fmt.Errorf("%s: %w", process.Name(), errNoProbes)
	}
	return nil
}

// moduleView is the memory of a process, with the arrays of one module.
type moduleView struct {
	*image.Process
	module *image.Module
}

func (v moduleView) Arrays(name string) ([]image.Range, error) {
	return v.ModuleArrays(v.module, name)
}
