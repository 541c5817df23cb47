package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/internal/listing"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
)

// listSettings are what the flags of list say.
type listSettings struct {
	listing.Options
	verbose         bool
	json            bool
	pid             int
	layout, section string
	files           []string // unless pid is given
}

// defineShown defines the flags that say how functions are shown.
func defineShown(f *pflag.FlagSet, o *locate.Options) {
	f.BoolVar(&o.Demangle, "demangle", false, "")
	f.BoolVar(&o.Inlines, "inlines", false, "")
}

// list is the command that lists the probes of images and processes.
func (p *program) list(args []string) (bool, error) {
	s, err := parseList(args)
	if err != nil {
		return false, err
	}
	s.Warn = func(err error) { message.Warning(p.Stderr, err) }
	out := &listPrinter{listSettings: s, w: p.Stdout, stderr: p.Stderr, listings: []*listing.Listing{}}
	if s.pid != 0 {
		return out.close(listing.Process(s.pid, &s.Options, out.print))
	}
	for _, file := range s.files {
		listing.File(file, &s.Options, out.print)
	}
	return out.close(nil)
}

// listFlags defines the flags of list.
func listFlags() (*pflag.FlagSet, *listSettings) {
	s := &listSettings{}
	f := newFlagSet("list")
	defineShown(f, &s.Options.Options)
	f.BoolVarP(&s.verbose, "verbose", "v", false, "")
	f.BoolVar(&s.json, "json", false, "")
	f.IntVar(&s.pid, "pid", 0, "")
	f.StringVarP(&s.Filter.All.Provider, "provider", "P", "", "")
	f.StringVarP(&s.Filter.All.Module, "module", "m", "", "")
	f.StringVarP(&s.Filter.All.Function, "function", "f", "", "")
	f.StringVarP(&s.Filter.All.Name, "name", "n", "", "")
	f.StringVar(&s.layout, "layout", "", "")
	f.StringVar(&s.section, "section", "", "")
	defineStubNames(f, &s.Names)
	f.StringVar(&s.ProbePrefix, "probe-object-prefix", "sdt_", "")
	defineFollow(f, &s.FollowThin)
	return f, s
}

func parseList(args []string) (*listSettings, error) {
	f, s := listFlags()
	if err := parseFlags(f, args); err != nil {
		return nil, err
	}
	if err := checkStubNames(&s.Names); err != nil {
		return nil, err
	}
	if err := s.Filter.All.Compile(); err != nil {
		return nil, usageError{err}
	}
	var err error
	if s.Filter.Alternatives, s.files, err = splitProbes(f.Args()); err != nil {
		return nil, usageError{err}
	}
	if s.Layouts, err = listedLayouts(s.layout, s.section); err != nil {
		return nil, usageError{err}
	}
	s.Lines = s.verbose || s.json
	s.Semaphores = s.Lines
	switch {
	case f.Changed("pid") && s.pid <= 0:
		return nil, usagef("--pid %d is no process", s.pid)
	case f.Changed("pid") && len(s.files) > 0:
		return nil, usagef("--pid takes no files, and %s is given", s.files[0])
	case !f.Changed("pid") && len(s.files) == 0:
		return nil, usagef("no file is given")
	case s.json && s.verbose:
		return nil, usagef("--json and -v exclude each other")
	case s.ProbePrefix == "":
		return nil, usagef("the prefix of probe objects is empty")
	case s.Inlines && !s.Lines:
		return nil, usagef("--inlines is of no use without -v or --json")
	}
	return s, nil
}

// listedLayouts are those that --layout and --section ask for; without --layout
// all of them, and without both the kernel's own too.
func listedLayouts(format, section string) ([]linkerset.Layout, error) {
	if format == "" {
		l, err := linkerset.ParseLayout(linkerset.Pairs.String(), section)
		if err != nil || section != "" {
			return l.All(), err
		}
		return append(l.All(), linkerset.Layout{Format: linkerset.Tracepoints}), nil
	}
	l, err := linkerset.ParseLayout(format, section)
	return []linkerset.Layout{l}, err
}

// splitProbes divides arguments into descriptions of probes and files: a
// description has a colon, and is not the name of a file.
func splitProbes(args []string) (patterns []listing.Pattern, files []string, err error) {
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || !strings.Contains(arg, ":") {
			files = append(files, arg)
			continue
		}
		t, err := listing.ParsePattern(arg)
		if err != nil {
			return nil, nil, err
		}
		patterns = append(patterns, t)
	}
	return patterns, files, nil
}

// listPrinter prints listings as dtrace -l does, or as one JSON document.
type listPrinter struct {
	*listSettings
	w, stderr io.Writer
	listings  []*listing.Listing // for JSON
	printed   int                // probes
	failed    bool
	err       error
}

// print prints what came of one image, and numbers its probes.
func (p *listPrinter) print(l *listing.Listing) {
	for _, err := range l.Errors {
		p.failed = true
		message.Error(p.stderr, errors.New(err))
	}
	first := p.printed == 0
	for _, probe := range l.Probes {
		p.printed++
		probe.Number = p.printed
	}
	if p.json {
		p.listings = append(p.listings, l)
		return
	}
	w := bufio.NewWriter(p.w)
	if first && len(l.Probes) > 0 {
		message.Line(w, rowFormat, "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")
	}
	for _, probe := range l.Probes {
		p.probe(w, probe)
	}
	p.err = errors.Join(p.err, w.Flush())
}

// rowFormat has the columns of dtrace -l.
const rowFormat = "%5v %10s %17s %33s %s"

func (p *listPrinter) probe(w io.Writer, probe *listing.Probe) {
	message.Line(w, rowFormat, probe.Number, message.OrDash(probe.Provider), probe.Module, probe.Function, message.OrDash(probe.Name))
	if !p.verbose {
		return
	}
	for _, a := range probe.Arguments {
		translated := ""
		if a.Translated != "" {
			translated = " -> " + a.Translated
		}
		message.Line(w, "      args[%d]  %s%s", a.Index, a.Native, translated)
	}
	for i := range probe.Sites {
		printSite(w, &probe.Sites[i])
	}
}

func printSite(w io.Writer, s *listing.Site) {
	address := s.Address
	if s.Section != "" {
		address = s.Section + "+" + address
	}
	source := ""
	if s.Source != "" {
		source = "  " + s.Source
	}
	message.Line(w, "      site     %s  %s  %s  %s%s", address, s.Place.String(), s.Kind, s.State, source)
	for _, f := range s.Inlines {
		message.Line(w, "        inline %s  %s", f.Function, message.OrDash(f.Source))
	}
	if s.Semaphore != nil {
		printSemaphore(w, s.Semaphore)
	}
}

// printSemaphore prints where a semaphore is, and how many tracers have raised it.
func printSemaphore(w io.Writer, s *listing.Semaphore) {
	address, value := s.Address, ""
	if s.Section != "" {
		address = s.Section + "+" + address
	}
	if s.Value != nil {
		value = strconv.Itoa(int(*s.Value))
	}
	message.Line(w, "        semaphore %s  %s  %s", message.OrDash(address), message.OrDash(s.Symbol), message.OrDash(value))
}

// close ends the output, and reports whether anything failed.
func (p *listPrinter) close(err error) (bool, error) {
	if p.json && (err == nil || len(p.listings) > 0) {
		enc := json.NewEncoder(p.w)
		enc.SetIndent("", "  ")
		p.err = errors.Join(p.err, enc.Encode(listing.Document{Version: listing.Version, Images: p.listings}))
	}
	if p.printed == 0 && !p.failed && err == nil {
		err = errors.New("no probe matches")
	}
	return p.failed, errors.Join(err, p.err)
}
