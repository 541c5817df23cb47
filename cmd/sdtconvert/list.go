package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/internal/listing"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
)

// The flags of list that no other command has.
var (
	listVerboseOption = &option{name: "verbose", letter: "v",
		help: "list every site too, with its address, function, kind, state, source line and semaphore, and the types of arguments"}
	listJSONOption = &option{name: "json",
		help: "print the listing, with all sites, in JSON"}
	listNamesOption = &option{name: "names",
		help: "print provider:module:function:name of each probe, sorted, and nothing else: for check --require @FILE"}
	listPIDOption = &option{name: "pid", letter: "p", value: "PID",
		help: "list what is loaded in a process (Linux)"}
	listSystemOption = &option{name: "system",
		help: "list what processes have mapped, and the libraries of this system, each with its path (Linux)"}
	providerGlobOption = &option{name: "provider", letter: "P", value: "GLOB", help: "only probes whose provider matches"}
	moduleOption       = &option{name: "module", letter: "m", value: "GLOB", help: "only probes whose module matches"}
	functionOption     = &option{name: "function", letter: "f", value: "GLOB", help: "only probes whose function matches"}
	nameOption         = &option{name: "name", letter: "n", value: "GLOB", help: "only probes whose name matches"}
	probeArgument      = &option{head: "PROBE",
		help: "provider:module:function:name; parts on the left may be missing, and an empty part matches anything"}
	listLayoutOption = &option{name: "layout", value: "LAYOUT",
		help:    "only records in this layout: pairs, relative, freebsd",
		choices: choicesOf(linkerset.Formats())}
)

// listCommand lists the probes of images and processes.
var listCommand = &command{
	name: "list", synopsis: "list [flags] IMAGE...", brief: "list the probes of objects, archives, programs, libraries, kernels and processes",
	usage: []string{"sdtconvert list [flags] [PROBE...] IMAGE...", "sdtconvert list [flags] --pid PID [PROBE...]", "sdtconvert list [flags] --system [PROBE...]"},
	text: `Lists the probes that objects, archives, linked images or a running process have
records or notes of, each with the function that holds its sites, as dtrace -l does.`,
	groups: []group{
		{options: []*option{listVerboseOption, listJSONOption, listNamesOption, listPIDOption, listSystemOption}},
		{title: "Which probes; each value is a glob", options: []*option{
			providerGlobOption, moduleOption, functionOption, nameOption, probeArgument,
		}},
		{title: "Where they are", options: []*option{listLayoutOption},
			asConvert: []*option{sectionOption, probePrefixOption, followOption}},
		{title: "Names of stubs, which distinguish unconverted calls of them from disabled forms", asConvert: []*option{prefixOption, enabledPrefixOption, symbolOption}},
		{title: "How functions are shown", options: []*option{demangleOption, inlinesOption}},
	},
	after: `The kind of a site is probe, tail, cond-tail, or of a guard isenabled, isenabled-tail
or isenabled-cond-tail. Its state is unconverted, disabled, armed while a tracer has
patched it, or unknown. inspect has the same words, and refused.`,
	exit: "0 success, 1 something was wrong with an image or a record, or no probe matches, 2 the command line is wrong.",
	new:  func() invocation { return &listFlags{} },
}

// listFlags are the flags of list.
type listFlags struct {
	conversionFlags
	verbose, json, names bool
	pid                  int
	system               bool
	probes               listing.Pattern
	shown                locate.Options
}

func (f *listFlags) bindFlags(s *flagSet) {
	f.conversionFlags.bindFlags(s)
	s.bind("verbose", &f.verbose)
	s.bind("json", &f.json)
	s.bind("names", &f.names)
	s.bind("pid", &f.pid)
	s.bind("system", &f.system)
	s.bind("provider", &f.probes.Provider)
	s.bind("module", &f.probes.Module)
	s.bind("function", &f.probes.Function)
	s.bind("name", &f.probes.Name)
	s.bind("demangle", &f.shown.Demangle)
	s.bind("inlines", &f.shown.Inlines)
}

// run lists the probes of images and processes.
func (f *listFlags) run(p *program, args []string) (bool, error) {
	o, err := f.options(args)
	if err != nil {
		return false, err
	}
	o.Places.Warn = func(err error) { message.Warning(p.Stderr, err) }
	out := &listPrinter{listFlags: f, w: p.Stdout, stderr: p.Stderr, listings: []*listing.Listing{}, lines: map[string]bool{}, progress: p.newProgress()}
	switch {
	case f.pid != 0:
		err = listing.Process(f.pid, o, out.print)
	case f.system:
		out.unread, err = listing.System(o, defaultJobs(), out.print, out.progress.resume)
		out.progress.pause()
	}
	for _, file := range f.files {
		listing.File(file, o, out.print)
	}
	return out.close(err)
}

// options checks a command line that was parsed, of a process or images.
func (f *listFlags) options(args []string) (o *listing.Options, err error) {
	f.shown.Lines = f.verbose || f.json
	o = &listing.Options{
		Options: sites.Options{Names: f.patch.Names, ProbePrefix: f.patch.ProbePrefix},
		Places:  f.shown, Semaphores: f.shown.Lines, FollowThin: f.follow, Filter: listing.Filter{All: f.probes},
	}
	if err := f.checkStubNames(); err != nil {
		return nil, err
	}
	if err := o.Filter.All.Compile(); err != nil {
		return nil, usageError{err}
	}
	if o.Filter.Alternatives, f.files, err = splitProbes(args); err != nil {
		return nil, usageError{err}
	}
	layout := ""
	if f.set.Changed("layout") {
		layout = f.layout
	}
	if o.Layouts, err = listedLayouts(layout, f.section); err != nil {
		return nil, usageError{err}
	}
	process := f.set.Changed("pid")
	switch {
	case process && f.pid <= 0:
		err = usagef("--pid %d is not a process", f.pid)
	case process && f.system:
		err = usagef("--pid and --system exclude each other")
	case process && len(f.files) > 0:
		err = usagef("--pid takes no files, and %s is given", f.files[0])
	case f.system && len(f.files) > 0:
		err = usagef("--system takes no files, and %s is given", f.files[0])
	case !process && !f.system && len(f.files) == 0:
		err = usagef("no file is given")
	case f.json && f.verbose:
		err = usagef("--json and -v exclude each other")
	case f.names && (f.json || f.verbose || f.shown.Demangle):
		err = usagef("--names excludes -v, --json and --demangle")
	case o.ProbePrefix == "":
		err = usagef("the prefix of probe objects is empty")
	case o.Places.Inlines && !o.Places.Lines:
		err = usagef("--inlines is of no use without -v or --json")
	}
	return o, err
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

// listPrinter prints listings as dtrace -l does, as one JSON document, or as names.
type listPrinter struct {
	*listFlags
	w, stderr io.Writer
	listings  []*listing.Listing // for JSON
	lines     map[string]bool    // for names
	unread    []listing.Unread
	progress  *progress
	printed   int // probes
	failed    bool
	err       error
}

// print prints what came of one image, and numbers its probes.
func (p *listPrinter) print(l *listing.Listing) {
	p.progress.pause()
	for _, err := range l.Errors {
		p.failed = true
		message.Error(p.stderr, errors.New(err))
	}
	first := p.printed == 0
	for _, probe := range l.Probes {
		p.printed++
		probe.Number = p.printed
	}
	switch {
	case p.json:
		p.listings = append(p.listings, l)
		return
	case p.names:
		for _, probe := range l.Probes {
			p.lines[probe.Pattern()] = true
		}
		return
	}
	w := bufio.NewWriter(p.w)
	if first && len(l.Probes) > 0 {
		p.row(w, "FILE", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")
	}
	for _, probe := range l.Probes {
		p.probe(w, l.Image, probe)
	}
	p.err = errors.Join(p.err, w.Flush())
}

// row prints the columns of dtrace -l, and for a whole system the file.
func (p *listPrinter) row(w io.Writer, file string, columns ...any) {
	format := "%5v %10s %17s %33s %s"
	if p.system {
		format, columns = "%5v %10s %17s %33s %-31s %s", append(columns, file)
	}
	message.Line(w, format, columns...)
}

func (p *listPrinter) probe(w io.Writer, file string, probe *listing.Probe) {
	p.row(w, file, probe.Number, message.OrDash(probe.Provider), probe.Module, probe.Function, message.OrDash(probe.Name))
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
	if s.Operands != "" {
		message.Line(w, "        operands %s", s.Operands)
	}
	if s.Semaphore != nil {
		address, value := s.Semaphore.Address, ""
		if s.Semaphore.Section != "" {
			address = s.Semaphore.Section + "+" + address
		}
		if s.Semaphore.Value != nil {
			value = strconv.Itoa(int(*s.Semaphore.Value))
		}
		message.Line(w, "        semaphore %s  %s  %s", message.OrDash(address), message.OrDash(s.Semaphore.Symbol), message.OrDash(value))
	}
}

// close ends the output, and reports whether anything failed.
func (p *listPrinter) close(err error) (bool, error) {
	for _, u := range p.unread {
		message.Warning(p.stderr, fmt.Errorf("%d not read: %s", u.Count, u.Reason))
	}
	if p.json && (err == nil || len(p.listings) > 0) {
		enc := json.NewEncoder(message.JSONWriter{W: p.w})
		enc.SetIndent("", "  ")
		p.err = errors.Join(p.err, enc.Encode(listing.Document{Version: listing.Version, Images: p.listings, Unread: p.unread}))
	}
	w := bufio.NewWriter(p.w)
	for _, line := range slices.Sorted(maps.Keys(p.lines)) {
		message.Line(w, "%s", line)
	}
	p.err = errors.Join(p.err, w.Flush())
	if p.printed == 0 && !p.failed && err == nil {
		err = errors.New("no probe matches")
	}
	return p.failed, errors.Join(err, p.err)
}
